# SPDX-License-Identifier: Apache-2.0
"""The options of programs, as `--describe` prints them: the command line is made from them, and the programs check
the values."""

from __future__ import annotations

import functools
import inspect
import json
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.main import get_command

from beeline.programs import CliError, find_program, given

PROGRAM = "beeline-bench"
POSITION_OR_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD
ABSENT = {"ignore_unknown_options": True, "allow_extra_args": True}  # any arguments get the reason as answer
METAVARS = {"integer": "N", "size": "BYTES", "name": "NAME", "INT": "N", "UINT": "N", "FLOAT": "NUMBER"}
Described = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of one of the program's commands."""

    command: str
    arguments: list[str]
    """All of the program's, the command's name first."""
    values: dict[str, Any]
    """Of all options, as the program reads them."""


def describe(program: str, *arguments: str) -> Described:
    """The output of `program` for `arguments`, which include `--describe`; raises CliError if the program refuses."""
    command = [str(find_program(program)), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CliError(done.stderr.strip() or f"no description from {' '.join(command)}", done.returncode)
    described: Described = json.loads(done.stdout)
    return described


@functools.cache
def description_of(program: str, *arguments: str) -> Described:
    """The same, cached: for output that does not change while this process runs."""
    return describe(program, *arguments)


def commands() -> dict[str, Described]:
    return {one["name"]: one for one in description_of(PROGRAM, "--describe")["commands"]}


def call_of(*arguments: str) -> Call:
    (described,) = describe(PROGRAM, *arguments, "--describe")["commands"]
    return Call(arguments[0], list(arguments), {one["name"]: one["value"] for one in described["options"]})


def identifier(name: str) -> str:
    return name.replace("-", "_")


def parameter_of(option: Described) -> inspect.Parameter:
    is_flag = option["type"] == "flag"
    metavar = METAVARS.get(option["type"], option["type"]) + ",.." * option.get("list", False)
    about = typer.Option(
        f"--{option['name']}", help=option["help"], show_default=bool(option["default"]),
        metavar=None if is_flag else metavar,
    )  # fmt: skip
    kind = bool if is_flag else str | None
    default = False if is_flag else option["default"]  # the program's default when the option is absent
    name = identifier(option["name"])
    return inspect.Parameter(name, POSITION_OR_NAME, default=default, annotation=Annotated[kind, about])


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())


def command_of(
    run: Callable[..., None], parameters: list[inspect.Parameter], described: Described, settings: dict[str, Any],
    epilog: str | None = None,
) -> Any:  # fmt: skip
    """Adds the command that a program describes; `run` gets the values by name. An absent command reports the
    reason."""
    reason = described.get("reason")
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False, context_settings=settings | (ABSENT if reason else {}))
    app.command(described["name"], help="\n\n".join(filter(None, (described["summary"], reason))), epilog=epilog)(run)
    return get_command(app)


def absent(name: str, reason: object) -> Described:
    return {"name": name, "summary": "Not built", "reason": str(reason), "options": []}


def arguments_of(options: Iterable[Described], values: dict[str, Any]) -> list[str]:
    """The program's arguments for the options whose values are not the defaults."""
    changed = [one for one in options if values[identifier(one["name"])] not in (one["default"], False)]
    return [text for one in changed for text in given(one["name"], values[identifier(one["name"])])]
