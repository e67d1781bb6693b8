# SPDX-License-Identifier: Apache-2.0
"""`beeline bench`: latency, bandwidth and rates of the methods, measured by the program `beeline-bench`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from rich.console import Group, RenderableType

from beeline.description import PROGRAM, Call
from beeline.display import (
    ResultView,
    better,
    explained,
    format_bytes,
    format_figure,
    format_number,
    measured_of,
    new_table,
    not_measured,
)
from beeline.fitted_table import FittedTable
from beeline.jobs import Event
from beeline.programs import World, find_program, launch_command


def measure(call: Call, view: ResultView, world: World) -> None:
    command = launch_command(world, find_program(PROGRAM), call.arguments)
    view.run(command, lambda event: " ".join(str(event.get(key, "")) for key in ("method", "operation", "bytes")))


def network(call: Call, view: ResultView, world: World) -> None:
    """All ranks are on this machine: unless told otherwise, it counts as two nodes, with a network between them."""
    if world.split_nodes is None and not os.environ.get("BEELINE_SPLIT_NODES"):
        world = replace(world, split_nodes=2)
        view.show_line("ranks on this machine, as if on two nodes (--split-nodes 2)")
    measure(call, view, world)


def render(results: list[Event]) -> RenderableType:
    """A table for each operation and unit: methods down, sizes across; below, what this machine lacks."""
    return render_operations(results, operation_table)


def render_sweeps(results: list[Event]) -> RenderableType:
    """A table for each operation and unit: what was swept across, of counts all settings; below, what this machine
    lacks."""
    return render_operations(results, sweep_table)


def render_adapters(results: list[Event]) -> RenderableType:
    """As `render`; costs of posts and polls have a line for each setting, with their counts."""
    measured = measured_of(results)
    costs = [one for one in measured if one["operation"] in ("post", "poll")]
    others = [one for one in measured if one not in costs]
    return Group(*tables_of(others, operation_table), *tables_of(costs, settings_table), *not_measured(results))


def is_of_commands(result: Event) -> bool:
    """Whether it was measured with many settings, each of which is a result of its own."""
    return str(result["operation"]).startswith(("command_", "part_", "engine_", "kernel_", "buffer_", "exchange"))


def render_methods(results: list[Event]) -> RenderableType:
    """A table of what each method occupies; one for each operation, with sizes across, or with a line for each setting
    where several tell something; below, what this machine lacks."""
    measured = [one for one in measured_of(results) if not is_of_commands(one)]
    parts = [one for one in measured_of(results) if is_part(one)]
    of_commands = [one for one in measured_of(results) if is_of_commands(one) and not is_part(one)]
    table = new_table("methods: what they occupy (lower is better)", "method", ">multiprocessors", ">CPU cores")
    for method in dict.fromkeys(str(one["method"]) for one in measured):
        mine = [one for one in measured if one["method"] == method]
        table.add_row(
            method,
            multiprocessors_of(method, mine),
            range_of([one["cpu_cores"] for one in mine if one.get("cpu_cores") is not None], 1),
        )
    tables = [*([explained(table)] if measured else []), *tables_of(measured, operation_table)]
    tables += [*tables_of(of_commands, settings_table), *([parts_table(parts)] if parts else [])]
    return Group(*tables, *not_measured(results))


def is_part(result: Event) -> bool:
    return str(result["operation"]).startswith("part_")


def parts_table(results: list[Event]) -> FittedTable:
    """A line for each hand-over, with a column for each part: seed 003's parts, and others that were measured.

    A part that could not be separated from the preceding parts names these.
    """
    names = ["post", "engine", "transfer", "start", "execution", "completion", "whole"]
    names += [name for name in dict.fromkeys(str(one["operation"])[5:] for one in results) if name not in names]
    lines: dict[str, dict[str, str]] = {}
    for one in results:
        settings = dict(one.get("settings", {}))
        merged = settings.pop("with", None)
        shown = ", ".join([f"{one['bytes']} B", *(f"{name} {value}" for name, value in settings.items())])
        line = lines.setdefault(f"{one['method']}, {shown}", {})
        line[str(one["operation"])[5:]] = cell([one], "us") + (f" with {merged}" if merged else "")
    names = [name for name in names if any(name in line for line in lines.values())]
    table = new_table("parts of a hand-over, us (lower is better)", "method, settings", *(f">{name}" for name in names))
    for hand_over, line in lines.items():
        table.add_row(hand_over, *(line.get(name, "") for name in names))
    return explained(table)


def settings_table(title: str, unit: str, results: list[Event]) -> FittedTable:
    table = new_table(title, "method", "settings", f">{unit}")
    several = len({one.get("bytes") for one in results}) > 1
    for one in results:
        size = [format_bytes(one["bytes"])] if several and one.get("bytes") else []
        shown = ", ".join([*size, *(f"{name} {value}" for name, value in one.get("settings", {}).items())])
        table.add_row(str(one["method"]), shown, cell([one], unit))
    return explained(table)


def multiprocessors_of(method: str, results: list[Event]) -> str:
    """The multiprocessors that its kernels occupy: one per block; none if the host or a stream copies."""
    if method.startswith("host/") or method.startswith("stream/copy_engine/"):
        return "0"
    return range_of([one.get("settings", {}).get("blocks", 1) for one in results], 0)


def range_of(values: list[float], digits: int) -> str:
    shown = dict.fromkeys(f"{value:.{digits}f}" for value in (min(values, default=0), max(values, default=0)))
    return " to ".join(shown) if values else ""


def render_operations(results: list[Event], table_of: Callable[[str, str, list[Event]], FittedTable]) -> RenderableType:
    return Group(*tables_of(measured_of(results), table_of), *not_measured(results))


def tables_of(results: list[Event], table_of: Callable[[str, str, list[Event]], FittedTable]) -> list[FittedTable]:
    """A table for each operation and unit: `table_of` gets the title, the unit and the results."""
    kinds: dict[tuple[str, str], list[Event]] = {}
    for one in results:
        kinds.setdefault((str(one.get("operation")), str(one.get("unit"))), []).append(one)
    return [table_of(title_of(operation, unit, mine), unit, mine) for (operation, unit), mine in kinds.items()]


def title_of(operation: str, unit: str, results: list[Event]) -> str:
    ranks = ", ".join(dict.fromkeys(str(result.get("ranks", "?")) for result in results))
    return f"{operation}, {unit}, {ranks} ranks ({better(unit)})"


def operation_table(title: str, unit: str, results: list[Event]) -> FittedTable:
    methods = dict.fromkeys(map(row_of, results))
    sizes = dict.fromkeys(result.get("bytes") for result in results)
    columns = [f">{format_bytes(size) if isinstance(size, int) and size > 0 else unit}" for size in sizes]
    table = new_table(title, "method", *columns)
    for method in methods:
        mine = [one for one in results if row_of(one) == method]
        table.add_row(method, *(cell([one for one in mine if one.get("bytes") == size], unit) for size in sizes))
    return explained(table)


def row_of(result: Event) -> str:
    """The method, and its data's layout if that differs, because another function sends such data."""
    layout = result.get("settings", {}).get("layout")
    return str(result.get("method")) + (f" ({layout})" if layout else "")


def sweep_table(title: str, unit: str, results: list[Event]) -> FittedTable:
    if unit == "requests":
        return settings_table(title, unit, results)
    swept = "stride" if str(results[0].get("operation")).startswith("strided") else "threads"
    table = new_table(title, f">{swept}", ">bytes", "method", f">{unit}", keys=3)
    for result in results:
        setting = result.get("settings", {}).get(swept)
        size, method = format_number(result.get("bytes")), str(result.get("method"))
        table.add_row(format_number(setting), size, method, cell([result], unit))
    return explained(table)


def cell(results: list[Event], unit: str) -> str:
    """The median; the best median if a method was measured with several settings."""
    if not results:
        return ""
    if any(result.get("verified") is False for result in results):
        return "wrong data"
    best = (max if unit.endswith("/s") else min)(results, key=lambda one: float(one["median"]))
    return format_figure(best["median"], best)
