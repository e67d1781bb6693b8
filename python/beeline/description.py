# SPDX-License-Identifier: Apache-2.0
"""What `beeline-bench --describe` says of its commands: the command line is made from it, and values checked by it."""

from __future__ import annotations

import functools
import json
import subprocess
from dataclasses import dataclass
from typing import Any

from beeline.programs import CliError, find_program

PROGRAM = "beeline-bench"
Described = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A command of the program."""

    command: str
    arguments: list[str]
    """All of the program's, the command's name first."""
    values: dict[str, Any]
    """Of all options, as the program reads them."""


def describe(*arguments: str) -> list[Described]:
    """The commands, or the one that `arguments` begin with; raises CliError with what the program refuses."""
    command = [str(find_program(PROGRAM)), *arguments, "--describe"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CliError(done.stderr.strip() or f"no description from {' '.join(command)}", done.returncode)
    commands: list[Described] = json.loads(done.stdout)["commands"]
    return commands


@functools.cache
def commands() -> dict[str, Described]:
    return {one["name"]: one for one in describe()}


def call_of(*arguments: str) -> Call:
    (described,) = describe(*arguments)
    return Call(arguments[0], list(arguments), {one["name"]: one["value"] for one in described["options"]})
