# SPDX-License-Identifier: Apache-2.0
"""`beeline bench objects`: coherent objects beside explicit copies and managed memory."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from beeline import options
from beeline.commands.floating import OF_DEVICES
from beeline.commands.gaspi import show_environment
from beeline.description import Call
from beeline.display import ResultView, explained, format_bytes, format_figure, measured_of, new_table, not_measured
from beeline.fitted_table import FittedTable
from beeline.jobs import Event
from beeline.programs import World, find_program

SUMMARY = (
    "coherent objects (beeline::hpe) by protocol, hint and size of blocks, beside explicit copies and "
    "cudaMallocManaged: the CPU writes all or reads a part between kernels; first accesses beside a bare fault"
)
MEASUREMENTS = ("streaming", "sparse", "scattered", "irregular", "random", "sequential", "first_access")


def objects(
    call: Call,
    view: ResultView,
    sizes: Annotated[str, typer.Option("--sizes", metavar="BYTES,..", help="Sizes of objects.")] = "64M,256M",
    blocks: Annotated[
        str, typer.Option("--blocks", metavar="BYTES,..", help="Sizes of blocks, for first accesses.")
    ] = "16K,64K,256K,1M",
    measurements: Annotated[
        str, typer.Option("--measurements", metavar="NAME,..", help=f"Some of {', '.join(MEASUREMENTS)}.")
    ] = ",".join(MEASUREMENTS),
) -> None:
    named = [item.strip() for item in measurements.split(",")]
    for name in named:
        if name not in MEASUREMENTS:
            raise options.refusal("--measurements", f"{name!r}; valid: {', '.join(MEASUREMENTS)}")
    lengths = {name: (blocks, "--blocks") if name == "first_access" else (sizes, "--sizes") for name in named}
    in_bytes = {name: ",".join(map(str, options.parse_sizes(*given))) for name, given in lengths.items()}
    show_environment(call, view, World(2, threads=True))
    program = str(find_program(OF_DEVICES))
    for name in named:
        view.run([program, name, in_bytes[name]], lambda _, name=name: name)


def render(results: list[Event]) -> RenderableType:
    """A table for each operation: methods with their hints and blocks down, sizes across."""
    measured = measured_of(results)
    chosen = {name: [one for one in measured if one["operation"] == f"hpe_{name}"] for name in MEASUREMENTS}
    return Group(*(explained(table_of(name, some)) for name, some in chosen.items() if some), *not_measured(results))


def table_of(name: str, results: list[Event]) -> FittedTable:
    of_blocks = name == "first_access"
    sizes = sorted({one["bytes"] for one in results})
    labels = ("method",) if of_blocks else ("method", "hint", "block")
    table = new_table(f"{name}, us", *labels, *(f">{format_bytes(size)}" for size in sizes))
    rows: dict[tuple[str, ...], dict[int, Event]] = {}
    for one in results:
        settings = one["settings"]
        block = settings["block"]
        shown = format_bytes(int(block)) if block.isdigit() else block
        key = (one["method"],) if of_blocks else (one["method"], settings["hint"], shown)
        rows.setdefault(key, {})[one["bytes"]] = one
    for key, by_size in rows.items():
        figures = (by_size.get(size) for size in sizes)
        table.add_row(*key, *(format_figure(one["median"], one) if one else "" for one in figures))
    return table
