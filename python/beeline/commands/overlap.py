# SPDX-License-Identifier: Apache-2.0
"""`beeline bench overlap`: what an all-reduce and a product of matrices on the same GPU cost each other."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Group, RenderableType

from beeline import options
from beeline.commands import bench
from beeline.commands.collectives import ElementType, parse_blocks
from beeline.display import ResultView, format_bytes, format_number, format_percent, format_verified, new_table
from beeline.jobs import Event
from beeline.on_ranks import measure_on_ranks, names_among
from beeline.programs import World
from beeline.ranks.names import BESIDE_MATMUL

RANKS = "beeline.ranks.overlap"


def overlap(
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            metavar="ID,..",
            help=f"{', '.join(BESIDE_MATMUL)}, or all.",
        ),
    ] = "all",
    size: Annotated[str, typer.Option("--size", metavar="BYTES", help="Vector of the all-reduce, like 256M.")] = "256M",
    matrix: Annotated[
        int, typer.Option("--matrix", min=64, max=65536, help="Rows and columns of the bfloat16 matrices.")
    ] = 8192,
    element_type: Annotated[
        ElementType, typer.Option("--type", help="Type of the vector's elements.")
    ] = ElementType.bfloat16,
    blocks: Annotated[
        str, typer.Option("--blocks", metavar="N,..", help="Blocks of two_shot and bulk: each is measured.")
    ] = "8,16,32",
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=100, help="Samples of each method, in turns.")] = 5,
    ranks: bench.Ranks = 2,
    device: options.Device = "auto",
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Slowdown of a product of matrices (torch) beside all-reduces by each method and by NCCL, and theirs."""
    sizes = options.parse_sizes(size)
    if len(sizes) != 1 or sizes[0] % 16 != 0:
        raise typer.BadParameter(f"--size {size!r}; valid: one size, a multiple of 16 bytes, like 256M")
    arguments = ["--bytes", str(sizes[0]), "--matrix", str(matrix), "--type", element_type.value]
    arguments += ["--blocks", ",".join(map(str, parse_blocks(blocks))), "--rounds", str(rounds)]
    arguments += ["--methods", ",".join(names_among(methods, BESIDE_MATMUL, "method"))]
    with ResultView(as_json, output, render) as view:
        measure_on_ranks(World(ranks, device=device), RANKS, "overlap", arguments, view)
    bench.check_results(view.results)


def render(results: list[Event]) -> RenderableType:
    measured = [one for one in results if one.get("median") is not None]
    parts: list[RenderableType] = []
    if measured:
        first = measured[0]
        settings, size = first["settings"], format_bytes(first["bytes"])
        columns = (">blocks", ">alone us", ">beside us", ">matmul alone TFLOP/s", ">beside", ">slower by %", ">lost us")
        title = f"all-reduce of {size} {settings['type']} beside {settings['matrix']}³, {first['ranks']} ranks"
        table = new_table(title, "method", *columns, "verified")
        for one in measured:
            numbers = [one["allreduce_alone_us"], one["allreduce_beside_us"]]
            numbers += [one["matmul_alone_tflops"], one["matmul_beside_tflops"]]
            table.add_row(
                one["method"], format_number(one["settings"].get("blocks")), *(format_number(each) for each in numbers),
                format_percent(one["matmul_slowdown"] - 1), format_number(one["lost_us"]),
                format_verified(one["verified"]),
            )  # fmt: skip
        parts.append(table)
    lacking = {(str(one.get("method")), str(one.get("reason"))): None for one in results if one.get("median") is None}
    return Group(*parts, *(f"not measured: {method}: {reason}" for method, reason in lacking))
