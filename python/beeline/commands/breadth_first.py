# SPDX-License-Identifier: Apache-2.0
"""`beeline app breadth-first`: breadth-first search on Graph500 graphs, by each method, and by the official program."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
from beeline.display import (
    VERIFIED,
    Cell,
    ResultView,
    against,
    devices_of,
    field,
    figure,
    format_percent,
    format_verified,
    per_joule,
    result_table,
)
from beeline.jobs import Event
from beeline.programs import mpirun_command

BASELINE = "alltoallv"  # the other methods are compared with this one


def study(
    asked: Asked,
    ranks: options.Ranks = "2",
    official: Annotated[
        Path | None,
        typer.Option(
            "--official", metavar="PROGRAM", exists=True, dir_okay=False,
            help="Run Graph500's own graph500_reference_bfs, too, under mpirun: a power of two ranks.",
        ),
    ] = None,
) -> None:  # fmt: skip
    def beside(view: ResultView, count: int) -> None:
        if official is not None:
            run_official(asked, official, view, count)

    run_studies(asked, [asked.study(ranks)], render, beside)


def run_official(asked: Asked, program: Path, view: ResultView, ranks: int) -> None:
    """Runs the official program on the graph of the methods' last result."""
    last = view.results[-1]
    mpirun = mpirun_command(replace(asked.world, ranks=ranks, device="cpu"), on_a_core=True)
    figures = [str(last["device"]), str(ranks), str(last["scale"])]
    module = [sys.executable, "-m", "beeline.official_graph500"]
    view.run([*module, *figures, "--", *mpirun, str(program.resolve())], lambda _: f"official, {ranks} ranks")


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">million\nTEPS": figure("teps", factor=1e-6),
        ">against\nalltoallv": lambda one: against(one, results, BASELINE, "seconds", ("ranks",)),
        ">time,\nms": figure("seconds", factor=1e3),
        ">comm.\nshare, %": field("communication_share", format_percent),
        ">CPU\ntime, ms": field("cpu_seconds", factor=1e3),
        **per_joule(results, "edges", "edges_per_joule"),
        ">roots": field("roots"),
        ">trees\nchecked": field("validated_roots"),
        VERIFIED: field("verified", format_verified),
    }
    first = results[0]
    title = f"Breadth-first search of a graph of scale {first.get('scale')} on {devices_of(results)}"
    directions = (
        "TEPS (traversed edges per second: harmonic mean over the roots), against alltoallv (times as fast): higher is "
        "better; times (means): lower"
    )
    return result_table(title, columns, results, directions, keys=2)
