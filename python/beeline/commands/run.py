# SPDX-License-Identifier: Apache-2.0
"""`beeline run`: starts a program on several ranks."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from beeline import options
from beeline.programs import World, launch_command, resolve_program


def run(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="The program to start.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its arguments.", show_default=False)] = None,
    ranks: Annotated[int, typer.Option("-n", "--ranks", min=1, max=options.MAX_RANKS, help="Number of ranks.")] = 1,
    threads: options.Threads = False,
    device: options.Device = "auto",
    deadline: Annotated[
        float | None, typer.Option("--deadline", min=0.001, metavar="SECONDS", help="End of every wait; 30 without.")
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="A rank that fails does not end the job: the others go on without it.")
    ] = False,
    split_nodes: options.SplitNodes = 1,
    hosts: Annotated[
        str | None,
        typer.Option("--hosts", metavar="A,B,..", help="Start the ranks over ssh on these hosts, by blocks."),
    ] = None,
    ssh: Annotated[
        str | None,
        typer.Option(
            "--ssh", metavar="COMMAND", help="With --hosts: what starts a command on a host, in place of ssh."
        ),
    ] = None,
    bind: Annotated[
        str | None, typer.Option("--bind", metavar="HOST[:PORT]", help="This machine's address, where ranks meet.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Start PROGRAM on N ranks, as processes or as threads of one process.

    Each line of output begins with its rank, except with --threads. A rank that dies ends the job; with --keep-going
    the others go on, if the program does. With --json, standard output holds only those lines of the ranks that are
    JSON; the others go to standard error.
    """
    command = launch_command(
        World(ranks, threads, device, deadline, keep_going, split_nodes, hosts, ssh, bind),
        resolve_program(program),
        arguments or [],
        as_json,
    )
    os.execv(command[0], command)
