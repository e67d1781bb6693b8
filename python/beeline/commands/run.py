# SPDX-License-Identifier: Apache-2.0
"""`beeline run`: starts a program on several ranks."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from beeline import options
from beeline.programs import World, launch_command, resolve_program


def check_stdin(text: str | None) -> str | None:
    if text not in (None, "none", "0", "all"):
        raise typer.BadParameter(f"{text!r} is no choice; valid: none, 0, all")
    return text


def run(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="The program to start.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Its arguments.", show_default=False)
    ] = None,
    ranks: Annotated[int, typer.Option("-n", "--ranks", min=1, max=options.MAX_RANKS, help="Number of ranks.")] = 1,
    threads: options.Threads = False,
    device: options.Device = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline",
            min=0.001,
            max=1e6,
            metavar="SECONDS",
            help="Seconds after which a wait fails.",
            show_default="BEELINE_DEADLINE_S, or 30",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Warn of signals whose word already has their value: a wait cannot tell them from those before.",
        ),
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="A rank that fails does not end the job: the others go on without it.")
    ] = False,
    split_nodes: options.SplitNodes = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            metavar="A,B,..",
            help="Hosts that ssh starts the ranks on, by blocks: a,b.",
        ),
    ] = None,
    ssh: Annotated[
        str | None,
        typer.Option(
            "--ssh",
            metavar="COMMAND",
            help="What starts a command on a host, in place of ssh: it gets the host, then the command. Needs --hosts.",
        ),
    ] = None,
    bind: Annotated[
        str | None,
        typer.Option(
            "--bind",
            metavar="HOST[:PORT]",
            help="Address of this machine that all ranks connect to.",
            show_default="127.0.0.1; with --hosts, the address that these reach",
        ),
    ] = None,
    stdin: Annotated[
        str | None,
        typer.Option(
            "--stdin",
            metavar="none|0|all",
            help="Which ranks get standard input; of all, each gets all of it.",
            show_default="0; with --hosts, none",
            callback=check_stdin,
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            "--grace",
            min=0,
            max=1e6,
            metavar="SECONDS",
            help="Seconds after SIGTERM, which ranks get, in which they go on together, to save their state.",
            show_default="25",
        ),
    ] = None,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="Encrypt the ranks' connections (TLS 1.3), for which they need the world's token.",
            show_default="BEELINE_SECURE, or off",
        ),
    ] = False,
    trusted_network: Annotated[
        bool,
        typer.Option(
            "--trusted-network",
            help="With --hosts, without --secure: only hosts and users that may write to the ranks' memory reach them.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Start PROGRAM on N ranks, as processes or as threads of one process.

    Each line of output begins with its rank, except with --threads. A rank that fails ends the job; with --keep-going
    the other ranks go on, if the program handles the failure. With --json, standard output holds only the ranks' lines
    that are JSON; other lines go to standard error.

    SIGTERM reaches all ranks, which then have the grace to save their state together; SIGINT (Ctrl-C) and SIGQUIT end
    the job at once. SIGUSR1, SIGUSR2, SIGHUP, SIGWINCH, SIGTSTP and SIGCONT are passed on: what they do is up to the
    program.
    """
    command = launch_command(
        World(
            ranks,
            threads,
            device,
            deadline,
            keep_going,
            split_nodes,
            hosts,
            ssh,
            bind,
            stdin,
            grace,
            check,
            secure,
            trusted_network,
        ),
        resolve_program(program),
        arguments or [],
        as_json,
    )
    os.execv(command[0], command)
