# SPDX-License-Identifier: Apache-2.0
"""`beeline run`: starts a program on several ranks."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Annotated

import typer

from beeline import options
from beeline.programs import RANK_PREFIX, World, launch_command


def run(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help="The program to start.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its arguments.", show_default=False)] = None,
    ranks: Annotated[
        int, typer.Option("-n", "--ranks", min=1, max=options.MAX_RANKS, help="Number of ranks.", show_default=False)
    ] = 1,
    threads: options.Threads = False,
    device: options.Device = "auto",
    deadline: Annotated[
        float | None, typer.Option("--deadline", min=0.001, metavar="SECONDS", help="The end of every wait.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Start PROGRAM on N ranks, as processes or as threads of one process.

    Each line of output carries its rank. A rank that dies ends the job. With --json, each line of standard output
    becomes an object with "rank" and "text", and the last line holds the exit status.
    """
    command = launch_command(World(ranks, threads, device, deadline), program, arguments or [])
    if not as_json:
        os.execv(command[0], command)
    raise typer.Exit(run_as_json(command))


def run_as_json(command: list[str]) -> int:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            match = RANK_PREFIX.match(line)
            rank = int(match[1]) if match else None
            text = line[match.end() :] if match else line
            print(json.dumps({"event": "output", "rank": rank, "text": text.rstrip("\n")}), flush=True)
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    print(json.dumps({"event": "exit", "status": status}), flush=True)
    return status
