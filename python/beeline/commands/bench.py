# SPDX-License-Identifier: Apache-2.0
"""`beeline bench`: latency, bandwidth and rates of the methods, measured by the program `beeline-bench`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from beeline import options
from beeline.display import ResultView, format_bytes, format_number, new_table
from beeline.jobs import Event, running
from beeline.programs import CliError, World, find_program, launch_command

Methods = Annotated[
    str, typer.Option("--methods", metavar="ID,..", help="Methods by identifier (see beeline info), or all.")
]
Sizes = Annotated[
    str | None, typer.Option("--sizes", metavar="BYTES,..", help="Message sizes, like 8,4K,1M.", show_default="a sweep")
]
Operations = Annotated[
    str, typer.Option("--operations", metavar="NAME,..", help="Operations (see beeline-bench COMMAND --help), or all.")
]
Ranks = Annotated[int, typer.Option("--ranks", "-n", min=1, max=options.MAX_RANKS, help="Number of ranks.")]
Iterations = Annotated[
    int | None,
    typer.Option(
        "--iterations", min=1, max=options.MAX_ITERATIONS, help="Operations in one timed batch.",
        show_default="as many as can be timed",
    ),
]  # fmt: skip


def latency(
    methods: Methods = "all",
    sizes: Sizes = None,
    ranks: Ranks = 2,
    iterations: Iterations = None,
    threads: options.Threads = False,
    device: options.Device = "auto",
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Time of one message, one way, from the start of the send until the receiver has it."""
    arguments = program_arguments("latency", methods, sizes, iterations)
    measure(World(ranks, threads, device), arguments, as_json, output)


def bandwidth(
    methods: Methods = "all",
    sizes: Sizes = None,
    ranks: Ranks = 2,
    iterations: Iterations = None,
    threads: options.Threads = False,
    device: options.Device = "auto",
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Bytes a second of large messages."""
    arguments = program_arguments("bandwidth", methods, sizes, iterations)
    measure(World(ranks, threads, device), arguments, as_json, output)


def rate(
    methods: Methods = "all",
    operations: Operations = "all",
    sizes: Sizes = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="BYTES",
            help="A rank's table of random updates: a power of two, like 16M.",
            show_default="512M on GPUs, 16M on CPUs",
        ),
    ] = None,
    ranks: Ranks = 2,
    iterations: Iterations = None,
    threads: options.Threads = False,
    device: options.Device = "auto",
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Messages a second of many senders, atomics, and random updates of all ranks' memory."""
    arguments = program_arguments("rate", methods, sizes, iterations, operations)
    if table is not None:
        arguments += ["--table", str(parse_table(table))]
    measure(World(ranks, threads, device), arguments, as_json, output)


def address_space(
    operations: Operations = "all",
    ranks: Ranks = 2,
    iterations: Iterations = None,
    threads: options.Threads = False,
    device: options.Device = "auto",
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Loads from a peer's memory and stores to it, against the number of threads and the stride."""
    arguments = program_arguments("address-space", "all", None, iterations, operations)
    measure(World(ranks, threads, device), arguments, as_json, output, render_sweeps)


def parse_table(text: str) -> int:
    sizes = options.parse_sizes(text)
    if len(sizes) != 1 or sizes[0] < 8 or sizes[0] & (sizes[0] - 1):
        raise typer.BadParameter(f"{text!r} is no table; valid: a power of two from 8 bytes, like 16M")
    return sizes[0]


def program_arguments(
    command: str, methods: str, sizes: str | None, iterations: int | None, operations: str = "all"
) -> list[str]:
    arguments = [command]
    if names := options.parse_names(operations):
        arguments += ["--operations", ",".join(names)]
    if names := options.parse_names(methods):
        arguments += ["--methods", ",".join(names)]
    if sizes is not None:
        arguments += ["--sizes", ",".join(str(size) for size in options.parse_sizes(sizes))]
    if iterations is not None:
        arguments += ["--iterations", str(iterations)]
    return arguments


def measure(
    world: World,
    arguments: list[str],
    as_json: bool,
    output: Path | None,
    show: Callable[[list[Event]], RenderableType] | None = None,
) -> None:
    command = launch_command(world, find_program("beeline-bench"), arguments)
    with ResultView(as_json, output, show or render) as view, running(command, view.show_line) as events:
        for event in events:
            if event.get("event") == "progress":
                view.set_progress(" ".join(str(event.get(key, "")) for key in ("method", "operation", "bytes")))
            view.add(event)
    check_results(view.results)


def check_results(results: list[Event]) -> None:
    if not results:
        raise CliError("beeline-bench printed no result")
    if any(result.get("verified") is False for result in results):
        raise CliError("some data did not arrive as it was sent: see verified")


def render(results: list[Event]) -> RenderableType:
    """A table for each operation and unit: methods down, sizes across; below, what this machine lacks."""
    return render_operations(results, operation_table)


def render_sweeps(results: list[Event]) -> RenderableType:
    """A table for each operation and unit: what was swept across; below, what this machine lacks."""
    return render_operations(results, sweep_table)


def render_operations(results: list[Event], table_of: Callable[[str, str, list[Event]], Table]) -> RenderableType:
    measured = [result for result in results if result.get("median") is not None]
    kinds = dict.fromkeys((str(result.get("operation")), str(result.get("unit"))) for result in measured)
    parts: list[RenderableType] = []
    for operation, unit in kinds:
        mine = [one for one in measured if (str(one.get("operation")), str(one.get("unit"))) == (operation, unit)]
        parts.append(table_of(operation, unit, mine))
    lacking = {(str(one.get("method")), str(one.get("reason"))): None for one in results if one.get("median") is None}
    parts += [f"not measured: {method}: {reason}" for method, reason in lacking]
    return Group(*parts)


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
        return "[bold red]wrong data[/bold red]"
    medians = [result["median"] for result in results]
    # Times are good when small, rates when large.
    return format_number(max(medians) if unit.endswith("/s") else min(medians))
