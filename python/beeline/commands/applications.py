# SPDX-License-Identifier: Apache-2.0
"""The commands of `beeline app`, made from the programs' descriptions. Each has a handler with the options for
studying the program: numbers of ranks, and what mpirun, a preset or a scaling needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperGroup

from beeline import options
from beeline.applications import Asked
from beeline.commands import (
    breadth_first,
    fft,
    global_reduction,
    himeno,
    jacobi,
    merge_sort,
    random_access,
    ring_reduction,
    spin_glass,
    stencil,
    tree_search,
)
from beeline.description import (
    Described,
    absent,
    command_of,
    description_of,
    identifier,
    parameter_of,
    parameters_of,
)
from beeline.programs import CliError, World

HANDLERS: dict[str, Callable[..., None]] = {
    "breadth-first": breadth_first.study,
    "fft": fft.study,
    "global-reduction": global_reduction.study,
    "himeno": himeno.study,
    "jacobi": jacobi.study,
    "merge-sort": merge_sort.study,
    "random-access": random_access.study,
    "ring-reduction": ring_reduction.study,
    "spin-glass": spin_glass.study,
    "stencil": stencil.study,
    "tree-search": tree_search.study,
}


class Applications(TyperGroup):
    """Beside commands of other kinds, those of HANDLERS, whose programs are asked when a command or the help needs
    it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted([*HANDLERS, *super().list_commands(ctx)])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in HANDLERS:
            return super().get_command(ctx, cmd_name)
        return make_command(describe_or_say_why(cmd_name), ctx.command.context_settings)


def describe_or_say_why(program: str) -> Described:
    try:
        return description_of(program, "--describe", "1") | {"reason": None}
    except CliError as problem:
        return absent(program, problem)


def make_command(described: Described, settings: dict[str, Any]) -> Any:
    handler, of_program = HANDLERS[described["name"]], described["options"]
    of_handler, of_world = parameters_of(handler)[1:], parameters_of(world_on)

    def run(as_json: options.Json = False, output: options.Output = None, **values: Any) -> None:
        if described["reason"] is not None:
            raise CliError(described["reason"])
        asked = {one["name"]: values[identifier(one["name"])] for one in of_program}
        asked = {one["name"]: asked[one["name"]] for one in of_program if asked[one["name"]] != one["default"]}
        world = world_on(**{one.name: values[one.name] for one in of_world})
        handler(Asked(described["name"], asked, world, as_json, output), **{o.name: values[o.name] for o in of_handler})

    shown = parameters_of(run)[:2]
    return command_of(run, [*map(parameter_of, of_program), *of_handler, *of_world, *shown], described, settings)


def world_on(
    threads: options.Threads = False, device: options.Device = None, split_nodes: options.SplitNodes = None
) -> World:
    """Of any number of ranks."""
    return World(1, threads, device, split_nodes=split_nodes)
