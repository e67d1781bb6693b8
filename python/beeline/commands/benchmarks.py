# SPDX-License-Identifier: Apache-2.0
"""The commands of `beeline bench`, made from the program's description; each has a handler, and the handler's options
are those of starting and showing it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from beeline.commands.accuracy import accuracy
from beeline.commands.bench import measure
from beeline.commands.collectives import collectives
from beeline.commands.overlap import overlap
from beeline.description import Described, call_of, commands
from beeline.programs import CliError

HANDLERS: dict[str, Callable[..., None]] = {"collectives": collectives, "accuracy": accuracy, "overlap": overlap}
POSITION_OR_NAME = inspect.Parameter.POSITIONAL_OR_KEYWORD
ABSENT = {"ignore_unknown_options": True, "allow_extra_args": True}  # whatever is asked of it, the reason is the answer
METAVARS = {"integer": "N", "size": "BYTES", "name": "NAME"}


class Benchmarks(TyperGroup):
    """The program is asked what it has when a command or the help needs it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        described = commands().get(cmd_name)
        return None if described is None else make_command(described, ctx.command.context_settings)


def make_command(described: Described, settings: dict[str, Any]) -> Any:
    is_absent = described["reason"] is not None
    handler = HANDLERS.get(described["name"], measure)
    of_program = {identifier(option["name"]): option for option in described.get("options", [])}
    of_handler = list(inspect.signature(handler, eval_str=True).parameters.values())[1:]

    def run(**values: Any) -> None:
        if is_absent:
            raise CliError(described["reason"])
        arguments = [text for name in of_program for text in given(of_program[name]["name"], values[name])]
        handler(call_of(described["name"], *arguments), **{one.name: values[one.name] for one in of_handler})

    parameters = [*map(parameter_of, of_program.values()), *of_handler]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False, context_settings=settings | (ABSENT if is_absent else {}))
    app.command(described["name"], help=described["summary"], epilog=methods_of(described))(run)
    return get_command(app)


def methods_of(described: Described) -> str | None:
    """A paragraph for each."""
    lines = [
        f"{one['name']}: {one['summary']}" + (f" (needs {one['needs']})" if one["needs"] else "")
        for one in described.get("methods", [])
    ]
    return "\n\n".join(["Methods:", *lines]) if lines else None


def identifier(name: str) -> str:
    return name.replace("-", "_")


def parameter_of(option: Described) -> inspect.Parameter:
    is_flag = option["type"] == "flag"
    about = typer.Option(
        f"--{option['name']}", help=option["help"], show_default=option["default"] or False,
        metavar=None if is_flag else METAVARS[option["type"]] + ",.." * option["list"],
    )  # fmt: skip
    kind = bool if is_flag else str | None
    default = False if is_flag else None
    name = identifier(option["name"])
    return inspect.Parameter(name, POSITION_OR_NAME, default=default, annotation=Annotated[kind, about])


def given(name: str, value: Any) -> list[str]:
    """On the program's command line."""
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [] if value is None else [f"--{name}", value]
