# SPDX-License-Identifier: Apache-2.0
"""`beeline bench overlap`: what an all-reduce and a product of matrices on the same GPU cost each other."""

from __future__ import annotations

from rich.console import Group, RenderableType

from beeline import options
from beeline.description import Call
from beeline.display import (
    ResultView,
    explained,
    format_bytes,
    format_number,
    format_percent,
    format_verified,
    measured_of,
    new_table,
    not_measured,
)
from beeline.jobs import Event
from beeline.on_ranks import measure_on_ranks
from beeline.programs import World

RANKS = "beeline.ranks.overlap"


def overlap(call: Call, view: ResultView, ranks: options.RankCount = 2, device: options.Device = None) -> None:
    measure_on_ranks(World(ranks, device=device), RANKS, call, view)


def render(results: list[Event]) -> RenderableType:
    measured = measured_of(results)
    parts: list[RenderableType] = []
    if measured:
        first = measured[0]
        settings, size = first["settings"], format_bytes(first["bytes"])
        columns = (">blocks", ">alone us", ">beside us", ">matmul alone TFLOP/s", ">beside", ">slower by %", ">lost us")
        title = f"all-reduce of {size} {settings['type']} beside {settings['matrix']}³, {first['ranks']} ranks"
        table = new_table(title, "method", *columns, "verified", keys=2)
        for one in measured:
            numbers = [one["allreduce_alone_us"], one["allreduce_beside_us"]]
            numbers += [one["matmul_alone_tflops"], one["matmul_beside_tflops"]]
            table.add_row(
                one["method"], format_number(one["settings"].get("blocks")), *(format_number(each) for each in numbers),
                format_percent(one["matmul_slowdown"] - 1), format_number(one["lost_us"]),
                format_verified(one["verified"]),
            )  # fmt: skip
        parts.append(explained(table, "us, slower by: lower is better; TFLOP/s: higher"))
    return Group(*parts, *not_measured(results))
