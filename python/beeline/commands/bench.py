# SPDX-License-Identifier: Apache-2.0
"""`beeline bench`: latency, bandwidth and rates of the methods, measured by the program `beeline-bench`."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.table import Table

from beeline.description import PROGRAM, Call
from beeline.display import ResultView, format_bytes, format_number, measured_of, new_table, not_measured
from beeline.jobs import Event
from beeline.programs import World, find_program, launch_command


def measure(call: Call, view: ResultView, world: World) -> None:
    command = launch_command(world, find_program(PROGRAM), call.arguments)
    view.run(command, lambda event: " ".join(str(event.get(key, "")) for key in ("method", "operation", "bytes")))


def render(results: list[Event]) -> RenderableType:
    """A table for each operation and unit: methods down, sizes across; below, what this machine lacks."""
    return render_operations(results, operation_table)


def render_sweeps(results: list[Event]) -> RenderableType:
    """A table for each operation and unit: what was swept across; below, what this machine lacks."""
    return render_operations(results, sweep_table)


def is_of_commands(result: Event) -> bool:
    """Whether it was measured with many settings, each of which says something by itself."""
    return str(result["operation"]).startswith(("command_", "part_", "engine_", "kernel_", "buffer_"))


def render_methods(results: list[Event]) -> RenderableType:
    """One table: methods down, operations and sizes across; a line for each setting where several tell something;
    below, what this machine lacks."""
    measured = [one for one in measured_of(results) if not is_of_commands(one)]
    settings = new_table("commands, and the ends of kernels", "operation", "method", "settings", ">median", "unit")
    for one in filter(is_of_commands, measured_of(results)):
        shown = ", ".join(f"{name} {value}" for name, value in one.get("settings", {}).items())
        settings.add_row(str(one["operation"]), str(one["method"]), shown, cell([one], one["unit"]), str(one["unit"]))
    columns = dict.fromkeys((one["operation"], one["bytes"], one["unit"]) for one in measured)
    titles = [f">{operation} {format_bytes(size)}\n{unit}" for operation, size, unit in columns]
    table = new_table("methods", "method", ">multi-\nprocessors", ">CPU\ncores", *titles)
    for method in dict.fromkeys(str(one["method"]) for one in measured):
        mine = [one for one in measured if one["method"] == method]
        table.add_row(
            method,
            multiprocessors_of(method, mine),
            range_of([one["cpu_cores"] for one in mine if one.get("cpu_cores") is not None], 1),
            *(cell([one for one in mine if (one["operation"], one["bytes"], one["unit"]) == column], column[2])
              for column in columns),
        )  # fmt: skip
    return Group(table, settings, *not_measured(results))


def multiprocessors_of(method: str, results: list[Event]) -> str:
    """Those that the kernels of its measurements occupy: a block each, and none where the host or a stream copies."""
    if method.startswith("host/") or method.startswith("stream/copy_engine/"):
        return "0"
    return range_of([one.get("settings", {}).get("blocks", 1) for one in results], 0)


def range_of(values: list[float], digits: int) -> str:
    shown = dict.fromkeys(f"{value:.{digits}f}" for value in (min(values, default=0), max(values, default=0)))
    return " to ".join(shown) if values else ""


def render_operations(results: list[Event], table_of: Callable[[str, str, list[Event]], Table]) -> RenderableType:
    measured = measured_of(results)
    kinds = dict.fromkeys((str(result.get("operation")), str(result.get("unit"))) for result in measured)
    parts: list[RenderableType] = []
    for operation, unit in kinds:
        mine = [one for one in measured if (str(one.get("operation")), str(one.get("unit"))) == (operation, unit)]
        parts.append(table_of(operation, unit, mine))
    return Group(*parts, *not_measured(results))


def operation_table(operation: str, unit: str, results: list[Event]) -> Table:
    methods = dict.fromkeys(str(result.get("method")) for result in results)
    sizes = dict.fromkeys(result.get("bytes") for result in results)
    ranks = ", ".join(dict.fromkeys(str(result.get("ranks", "?")) for result in results))
    columns = [f">{format_bytes(size) if isinstance(size, int) and size > 0 else unit}" for size in sizes]
    table = new_table(f"{operation}, {unit}, {ranks} ranks", "method", *columns)
    for method in methods:
        mine = [one for one in results if str(one.get("method")) == method]
        table.add_row(method, *(cell([one for one in mine if one.get("bytes") == size], unit) for size in sizes))
    return table


def sweep_table(operation: str, unit: str, results: list[Event]) -> Table:
    ranks = ", ".join(dict.fromkeys(str(result.get("ranks", "?")) for result in results))
    swept = "stride" if operation.startswith("strided") else "threads"
    table = new_table(f"{operation}, {unit}, {ranks} ranks", f">{swept}", f">{unit}", ">bytes", "method")
    for result in results:
        setting = result.get("settings", {}).get(swept)
        size, method = format_number(result.get("bytes")), str(result.get("method"))
        table.add_row(format_number(setting), cell([result], unit), size, method)
    return table


def cell(results: list[Event], unit: str) -> str:
    """The median; the best one where a method was measured with several settings."""
    if not results:
        return ""
    if any(result.get("verified") is False for result in results):
        return "wrong data"
    medians = [result["median"] for result in results]
    # Times are good when small, rates when large.
    return format_number(max(medians) if unit.endswith("/s") else min(medians))
