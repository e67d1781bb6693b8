# SPDX-License-Identifier: Apache-2.0
"""`gaspi_run`: starts a GASPI program on the hosts of a file, by `beeline run`, as users of GPI-2 do."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from beeline import options
from beeline.programs import USAGE_ERROR, CliError, World, launch_command, resolve_program


def read_hosts(file: Path) -> list[str]:
    """The host of each rank: one line per rank, without empty lines and comments (#). Raises CliError."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CliError(f"{file}: {reason}", USAGE_ERROR) from error
    hosts = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if len(words) > 1 or any(word.startswith("-") or "," in word for word in words):
            raise CliError(
                f"{file}:{number}: {line.strip()!r} is no host; a line holds one name or address", USAGE_ERROR
            )
        hosts += words
    if not hosts:
        raise CliError(f"{file} names no host; it has one line per rank", USAGE_ERROR)
    return hosts


def is_this_machine(host: str) -> bool:
    name = socket.gethostname()
    return host in ("localhost", "127.0.0.1", "::1", name, name.partition(".")[0], socket.getfqdn())


def world_of(hosts: list[str], ranks: int | None, secure: bool, ssh: str | None) -> World:
    """Without a host elsewhere the ranks are started here, and need no ssh. Raises CliError."""
    if ranks is not None and ranks > len(hosts):
        raise CliError(f"-n {ranks}: the file has {len(hosts)} lines, one per rank", USAGE_ERROR)
    hosts = hosts[:ranks]
    if len(hosts) > options.MAX_RANKS:
        raise CliError(f"{len(hosts)} ranks: {options.MAX_RANKS} at most", USAGE_ERROR)
    if ssh is None and all(map(is_this_machine, hosts)):
        return World(len(hosts), keep_going=True)
    return World(
        len(hosts), keep_going=True, hosts=",".join(hosts), ssh=ssh, secure=secure, trusted_network=not secure
    )  # fmt: skip


def gaspi_run(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="The program to start.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENTS", help="Its arguments.", show_default=False)
    ] = None,
    machines: Annotated[
        Path,
        typer.Option("-m", "--machines", metavar="HOSTS", help="File with one line per rank: the name of its host."),
    ] = ...,  # type: ignore[assignment]
    ranks: Annotated[
        int | None,
        typer.Option("-n", "--ranks", min=1, metavar="N", help="Number of ranks.", show_default="lines of the file"),
    ] = None,
    trusted_network: Annotated[
        bool,
        typer.Option(
            "--trusted-network",
            help="Do not encrypt connections: only hosts and users that may write to the ranks' memory reach them.",
        ),
    ] = False,
    ssh: Annotated[
        str | None,
        typer.Option("--ssh", metavar="COMMAND", help="What starts a command on a host, in place of ssh."),
    ] = None,
) -> None:
    """Start PROGRAM on N ranks, on the hosts that the file HOSTS names.

    Rank 0 runs on the host of the first line, rank 1 on that of the second, and so on; a host with several ranks has
    several lines. Ranks on this machine alone are started without ssh. A rank that fails leaves the others alive.
    Further settings, such as BEELINE_DEVICE and BEELINE_DEADLINE_S, are variables of the environment.
    """
    world = world_of(read_hosts(machines), ranks, not trusted_network, ssh)
    command = launch_command(world, resolve_program(program), arguments or [], as_json=False)
    os.execv(command[0], command)


def start() -> None:
    """The entry point of the command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    # Arguments after PROGRAM belong to PROGRAM, options included.
    app.command(context_settings={"help_option_names": ["-h", "--help"], "allow_interspersed_args": False})(gaspi_run)
    try:
        app(prog_name="gaspi_run")
    except CliError as error:
        print(f"gaspi_run: {error}", file=sys.stderr)
        sys.exit(error.status)


if __name__ == "__main__":
    start()
