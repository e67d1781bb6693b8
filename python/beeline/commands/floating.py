# SPDX-License-Identifier: Apache-2.0
"""`beeline bench floating`: one process that drives several devices, beside the bare calls of CUDA or the C library."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from beeline import options
from beeline.commands import bench
from beeline.commands.gaspi import show_environment
from beeline.description import Call
from beeline.display import ResultView, explained, format_bytes, format_figure, measured_of, new_table, not_measured
from beeline.fitted_table import FittedTable
from beeline.jobs import Event
from beeline.programs import World, find_program

SUMMARY = (
    "any thread drives any device (beeline::hpe): copies beside the bare calls, 1 to 16 threads on one device with the "
    "time that locks are held, and copies between devices by scheme"
)
OF_DEVICES = "beeline-bench-hpe"
MEASUREMENTS = ("calls", "threads", "inter_device")


def floating(
    call: Call,
    view: ResultView,
    sizes: Annotated[str, typer.Option("--sizes", metavar="BYTES,..", help="Sizes of copies.")] = "8,64K,1M,16M",
    measurements: Annotated[
        str, typer.Option("--measurements", metavar="NAME,..", help=f"Some of {', '.join(MEASUREMENTS)}.")
    ] = ",".join(MEASUREMENTS),
) -> None:
    named = [item.strip() for item in measurements.split(",")]
    for name in named:
        if name not in MEASUREMENTS:
            raise options.refusal("--measurements", f"{name!r}; valid: {', '.join(MEASUREMENTS)}")
    in_bytes = ",".join(map(str, options.parse_sizes(sizes, "--sizes")))
    show_environment(call, view, World(2, threads=True))
    program = str(find_program(OF_DEVICES))
    for name in named:
        view.run([program, name, in_bytes], lambda _, name=name: name)
        if name == "inter_device":  # once more, as if the devices did not reach each other
            view.run(["env", "BEELINE_PEER_ACCESS=0", program, name, in_bytes], lambda _: "staged")


def render(results: list[Event]) -> RenderableType:
    """Calls and copies by kinds of memory; threads and their locks; schemes of copies between devices."""
    measured = measured_of(results)
    tables = []
    for operation, setting in (("hpe_call", "pair"), ("hpe_copy", "pair"), ("hpe_launch", "pair"), ("hpe_wait", "pair"),
                               ("hpe_threads", "threads"), ("hpe_lock", "threads")):  # fmt: skip
        chosen = [one for one in measured if one["operation"] == operation]
        if chosen:
            tables.append(explained(table_of(operation, setting, chosen)))
    others = [one for one in measured if one["operation"] in ("hpe_one_way", "hpe_two_way")]
    return Group(*tables, *bench.tables_of(others, bench.operation_table), *not_measured(results))


def table_of(operation: str, setting: str, results: list[Event]) -> FittedTable:
    """Settings and methods down, sizes across."""
    sizes = sorted({one["bytes"] for one in results})
    table = new_table(
        f"{operation.removeprefix('hpe_')}, {results[0]['unit']}", setting, "method",
        *(f">{format_bytes(size)}" for size in sizes),
    )  # fmt: skip
    rows: dict[tuple[object, str], dict[int, Event]] = {}
    for one in results:
        rows.setdefault((one["settings"][setting], one["method"]), {})[one["bytes"]] = one
    for (value, method), by_size in rows.items():
        figures = (by_size.get(size) for size in sizes)
        table.add_row(str(value), method, *(format_figure(one["median"], one) if one else "" for one in figures))
    return table
