# SPDX-License-Identifier: Apache-2.0
"""`beeline app jacobi`: 2-D Jacobi relaxation with each method, over grids and numbers of ranks."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Study, run_studies
from beeline.display import (
    BELOW_NOISE,
    VERIFIED,
    Cell,
    against,
    devices_of,
    field,
    figure,
    format_share,
    format_verified,
    per_joule,
    result_table,
)
from beeline.jobs import Event
from beeline.programs import World, given

BASELINE = "host"  # the method that the others are compared with
GRID = re.compile(r"([1-9]\d*[KM]?)(x([1-9]\d*[KM]?))?")
LARGEST = 1 << 20  # points of a column or a row


def parse_grids(text: str, ranks: list[int]) -> str:
    """Checks a list like 16,1K,1000x600, and that each rank has a row."""
    for item in text.split(","):
        match = GRID.fullmatch(item)
        extents = options.parse_sizes(",".join(filter(None, match.group(1, 3))), "--size") if match else []
        if not extents or max(extents) > LARGEST:
            valid = "N (for each rank) or COLUMNSxROWS, of 1 to 1M each"
            raise options.refusal("--size", f"{item!r} is no size; valid: {valid}")
        if len(extents) == 2 and extents[1] < max(ranks):
            raise options.refusal("--size", f"{item} has too few rows for {max(ranks)} ranks: each needs one")
    return text


def jacobi(
    size: Annotated[
        str,
        typer.Option(
            "--size",
            metavar="GRID[,GRID..]",
            help="Grids of float32 points: N (N x N for each rank) or COLUMNSxROWS, whose rows the ranks share.",
        ),
    ] = "16,64,256,1K,4K",
    ranks: options.Ranks = "2",
    method: options.Methods = "all",
    iterations: Annotated[
        int | None,
        options.timed("--iterations", "Iterations to time; with --until, at most.", "about a tenth of a second each"),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(
            "--until", metavar="CHANGE", help="Iterate until no point of any rank changes by more than CHANGE."
        ),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            "--every",
            min=1,
            max=1_000_000,
            help="Iterations between two looks at the largest change. Needs --until.",
            show_default="100",
        ),
    ] = None,
    threads: options.Threads = False,
    device: options.Device = None,
    split_nodes: options.SplitNodes = None,
    energy: options.Energy = None,
    no_verify: options.NoVerify = False,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Run 2-D Jacobi relaxation, a halo exchange in each iteration, with each method."""
    if every is not None and until is None:
        raise options.refusal("--every", "it says how often --until looks: give both")
    if until is not None and not until > 0:
        raise options.refusal("--until", f"{until} is no change; valid: more than 0")
    counts = options.parse_ranks(ranks)
    arguments = [
        "--size",
        parse_grids(size, counts),
        *given("iterations", iterations),
        *given("until", until),
        *given("every", every),
        *given("energy", energy),
        *given("no-verify", no_verify),
    ]
    names, world = options.parse_names(method), World(1, threads, device, split_nodes=split_nodes)
    run_studies([Study({"jacobi": None}, counts, names, world, lambda _: arguments)], as_json, output, render)


def render(results: list[Event]) -> RenderableType:
    ends = any(one.get("converged") is not None for one in results)
    columns: dict[str, Cell] = {
        ">grid": lambda one: f"{one.get('columns')}×{one.get('rows')}",
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">itera-\ntion, us": figure("seconds", factor=1e6),
        ">against\nhost": lambda one: against(one, results, BASELINE, "seconds", ("ranks", "columns", "rows")),
        ">million\nupdates\na second": figure("updates_per_second", factor=1e-6),
        ">comm.\nshare, %": figure("communication_share", format_share),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        **per_joule(results, "updates", "updates_per_joule"),
        **({">itera-\ntions": field("iterations"), ">largest\nchange": field("max_change")} if ends else {}),
        VERIFIED: field("verified", format_verified),
    }
    notes = ["times, share: lower is better; updates/s, against host (times as fast): higher"]
    if any(format_share(one.get("communication_share")) == BELOW_NOISE for one in results):
        notes.append(f"{BELOW_NOISE}: runs without communication took longer than those with it")
    return result_table(f"2-D Jacobi on {devices_of(results)}", columns, results, *notes, keys=3)
