# SPDX-License-Identifier: Apache-2.0
"""The commands of `beeline bench`, made from the program's description. Each has a handler; the handler's options
concern starting and display. A parameter `world` stands for the options of `world_on`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer.core import TyperGroup

from beeline import options
from beeline.commands import (
    accuracy,
    bench,
    calls,
    collectives,
    files,
    floating,
    gaspi,
    joules,
    joules_tables,
    launch,
    objects,
    overlap,
    requests,
)
from beeline.description import (
    Call,
    Described,
    absent,
    arguments_of,
    call_of,
    command_of,
    commands,
    parameter_of,
    parameters_of,
)
from beeline.display import Render, ResultView
from beeline.jobs import Event
from beeline.programs import CliError, World

HANDLERS: dict[str, tuple[Callable[..., None], Render]] = {
    "adapters": (bench.measure, bench.render_adapters),
    "address-space": (requests.address_space, bench.render_sweeps),
    "calls": (calls.calls, calls.render),
    "collectives": (collectives.collectives, collectives.render),
    "accuracy": (accuracy.accuracy, accuracy.render),
    "energy": (joules.energy, joules_tables.render),
    "files": (files.files, files.render),
    "floating": (floating.floating, floating.render),
    "gaspi": (gaspi.gaspi, gaspi.render),
    "launch": (launch.launch, launch.render),
    "methods": (bench.measure, bench.render_methods),
    "objects": (objects.objects, objects.render),
    "network": (bench.network, bench.render),
    "overlap": (overlap.overlap, overlap.render),
}
WITH_COMMON_HANDLER = ("latency", "bandwidth", "rate")
# Commands that the program does not know: programs of their own measure.
OWN: dict[str, Described] = {
    name: {"name": name, "summary": summary, "reason": None, "options": []}
    for name, summary in (
        ("files", files.SUMMARY),
        ("floating", floating.SUMMARY),
        ("gaspi", gaspi.SUMMARY),
        ("objects", objects.SUMMARY),
    )
}


class Benchmarks(TyperGroup):
    """The program is asked what it has when a command or the help needs it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(all_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        described = all_commands().get(cmd_name)
        return None if described is None else make_command(described, ctx.command.context_settings)


def all_commands() -> dict[str, Described]:
    """Those of the program; without it, their names with the reason. And those that are not the program's."""
    try:
        return commands() | OWN
    except CliError as problem:
        names = [*WITH_COMMON_HANDLER, *HANDLERS]
        return {name: absent(name, problem) for name in names if name not in OWN} | OWN


def make_command(described: Described, settings: dict[str, Any]) -> Any:
    handler, render = HANDLERS.get(described["name"], (bench.measure, bench.render))
    of_program = described.get("options", [])
    own = parameters_of(handler)[2:]
    of_handler = [one for one in own if one.name != "world"]
    of_world = parameters_of(world_on) if len(of_handler) < len(own) else []

    def run(as_json: options.Json = False, output: options.Output = None, **values: Any) -> None:
        if described["reason"] is not None:
            raise CliError(described["reason"])
        name = described["name"]
        call = Call(name, [], {}) if name in OWN else call_of(name, *arguments_of(of_program, values))
        asked = {one.name: values[one.name] for one in of_handler}
        if of_world:
            asked["world"] = world_on(**{one.name: values[one.name] for one in of_world})
        with ResultView(as_json, output, render) as view:
            handler(call, view, **asked)
        check(view.results)

    shown = parameters_of(run)[:2]
    parameters = [*map(parameter_of, of_program), *of_handler, *of_world, *shown]
    return command_of(run, parameters, described, settings, methods_of(described))


def world_on(
    ranks: options.RankCount = 2,
    threads: options.Threads = False,
    device: options.Device = None,
    split_nodes: options.SplitNodes = None,
) -> World:
    """The options of handlers that take a world."""
    return World(ranks, threads, device, split_nodes=split_nodes)


def check(results: list[Event]) -> None:
    if not results:
        raise CliError("beeline-bench printed no result")
    if any(result.get("verified") is False for result in results):
        raise CliError(
            'some data did not arrive as it was sent: the table says `wrong data` there, JSON lines `"verified": false`'
        )


def methods_of(described: Described) -> str | None:
    """A paragraph for each."""
    lines = [
        f"{one['name']}: {one['summary']}" + (f" (needs {one['needs']})" if one["needs"] else "")
        for one in described.get("methods", [])
    ]
    return "\n\n".join(["Methods:", *lines]) if lines else None
