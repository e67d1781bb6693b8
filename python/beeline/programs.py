# SPDX-License-Identifier: Apache-2.0
"""Finding the C++ programs, running them under the launcher, and reading the JSON lines that they print."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Event = dict[str, Any]

INSTALLED_PROGRAMS = Path(__file__).resolve().parent / "bin"
BUILD_PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"


class CliError(Exception):
    """What went wrong, in words for the user; `main` prints it and exits with `status`."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class World:
    """The ranks that a program runs on."""

    ranks: int
    threads: bool = False
    device: str = "auto"
    deadline_s: float | None = None


def find_program(name: str) -> Path:
    """The program's path: in BEELINE_BIN if set, otherwise in this package, in its checkout's build, or on PATH."""
    configured = os.environ.get("BEELINE_BIN")
    if configured:
        program = Path(configured) / name
        if not os.access(program, os.X_OK):
            raise CliError(f"program {name} is not in {configured} (BEELINE_BIN)")
        return program
    for folder in (INSTALLED_PROGRAMS, BUILD_PROGRAMS):
        if os.access(folder / name, os.X_OK):
            return folder / name
    if found := shutil.which(name):
        return Path(found)
    raise CliError(f"program {name} is neither in {BUILD_PROGRAMS} nor on PATH: run tools/build, or set BEELINE_BIN")


def resolve_program(name: str) -> str:
    """What a user calls PROGRAM: a path, one of Beeline's programs, or whatever the launcher finds on PATH."""
    if os.sep not in name:
        with suppress(CliError):
            return str(find_program(name))
    return name


def launch_command(world: World, program: str | Path, arguments: list[str], as_json: bool = True) -> list[str]:
    """The command line that runs `program` on the ranks of `world`; of their output, only JSON lines, or all."""
    command = [str(find_program("beeline-launch")), "-n", str(world.ranks)]
    if as_json:
        command.append("--json")
    if world.threads:
        command.append("--threads")
    if world.device != "auto":
        command += ["--device", world.device]
    if world.deadline_s is not None:
        command += ["--deadline", f"{world.deadline_s:g}"]
    return [*command, "--", str(program), *arguments]


def parse_event(line: str) -> Event | None:
    """The JSON object on a line of output; None if the line is something else."""
    with suppress(json.JSONDecodeError):
        event = json.loads(line)
        if isinstance(event, dict):
            return event
    return None


def print_error_line(line: str) -> None:
    print(line, file=sys.stderr)


def run_events(
    command: list[str], show: Callable[[str], None] = print_error_line, environment: Mapping[str, str] | None = None
) -> Iterator[Event]:
    """Runs `command` and yields its JSON lines as they arrive; `show` gets every other line, of standard error too.

    Raises CliError when the command fails, after its last line.
    """
    merged = {**os.environ, **(environment or {})}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env=merged,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        errors = process.stderr

        def forward() -> None:
            for line in errors:
                show(line.rstrip("\n"))

        forwarder = threading.Thread(target=forward, daemon=True)
        forwarder.start()
        try:
            for line in process.stdout:
                event = parse_event(line)
                if event is not None:
                    yield event
                elif line.strip():
                    show(line.rstrip("\n"))
        except GeneratorExit:
            process.terminate()
            raise
        process.wait()
        forwarder.join()
    if process.returncode != 0:
        message = f"{describe_end(process.returncode)}: {' '.join(command)}"
        raise CliError(message, status=process.returncode if process.returncode > 0 else 1)


def describe_end(returncode: int) -> str:
    return f"ended by signal {-returncode}" if returncode < 0 else f"exit status {returncode}"


def collect_info() -> Event:
    """What beeline-info prints: one object that describes this machine and build."""
    events = list(run_events([str(find_program("beeline-info"))]))
    if not events:
        raise CliError("beeline-info printed no JSON object")
    return events[0]
