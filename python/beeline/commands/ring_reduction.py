# SPDX-License-Identifier: Apache-2.0
"""`beeline app ring-reduction`: one ring all-reduce under every control, on growing numbers of ranks."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Study, run_studies
from beeline.display import (
    VERIFIED,
    Cell,
    against,
    devices_of,
    field,
    figure,
    format_bytes,
    format_verified,
    per_joule,
    result_table,
)
from beeline.jobs import Event
from beeline.programs import World, given

ELEMENT_BYTES = 4
BASELINE = "host"  # the scheme that the others are compared with


def parse_size(text: str) -> int:
    sizes = options.parse_sizes(text, "--size")
    if len(sizes) != 1 or sizes[0] % ELEMENT_BYTES != 0:
        raise options.refusal(
            "--size", f"{text!r} is no vector of float32; valid: one size in bytes, a multiple of {ELEMENT_BYTES}"
        )
    return sizes[0]


def ring_reduction(
    size: Annotated[
        str, typer.Option("--size", metavar="BYTES", help="Bytes of a rank's vector of float32, like 1024, 4K or 64M.")
    ] = "64M",
    ranks: Annotated[
        str, typer.Option("--ranks", "-n", metavar="N[,N..]", help="Numbers of ranks; the vector stays the same.")
    ] = "2,4",
    method: options.Methods = "all",
    reductions: Annotated[
        int | None, options.timed("--reductions", "Reductions to time.", "about a second for each scheme")
    ] = None,
    energy: options.Energy = None,
    threads: options.Threads = False,
    device: options.Device = None,
    split_nodes: options.SplitNodes = None,
    no_verify: options.NoVerify = False,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Replace a float32 vector on each rank by the sum over the ranks: one ring, under each scheme of control."""
    arguments = [
        "--size",
        str(parse_size(size)),
        *given("reductions", reductions),
        *given("energy", energy),
        *given("no-verify", no_verify),
    ]
    names, world = options.parse_names(method), World(1, threads, device, split_nodes=split_nodes)
    study = Study({"ring-reduction": None}, options.parse_ranks(ranks), names, world, lambda _: arguments)
    run_studies([study], as_json, output, render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">time,\nus": figure("seconds", factor=1e6),
        ">against\nhost": lambda one: against(one, results, BASELINE, "seconds", ("ranks",)),
        ">bus,\nGB/s": figure("bus_bytes_per_second", factor=1e-9),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        ">blocks": field("lanes"),
        **per_joule(results, "reductions", "reductions_per_joule"),
        VERIFIED: field("verified", format_verified),
    }
    size = format_bytes(results[0].get("bytes") or 0)
    title = f"Ring reduction of {size} on {devices_of(results)}"
    directions = "times: lower is better; GB/s, against host (times as fast): higher"
    return result_table(title, columns, results, directions, keys=2)
