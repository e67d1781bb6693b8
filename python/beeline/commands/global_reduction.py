# SPDX-License-Identifier: Apache-2.0
"""`beeline app global-reduction`: many values on each rank to one sum on all, beside MPI."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
from beeline.display import VERIFIED, Cell, against, devices_of, field, figure, format_verified, per_joule, result_table
from beeline.jobs import Event

BASELINE = "mpi"  # the method that the others are compared with


def study(
    asked: Asked,
    ranks: options.Ranks = "4",
    mpirun: Annotated[
        bool, typer.Option("--mpirun", help="Let mpirun start the ranks: the baseline mpi needs it.")
    ] = False,
) -> None:
    if mpirun and asked.world.threads:
        raise options.refusal("--mpirun", "mpirun starts processes: leave --threads or --mpirun out")
    asked = replace(asked, world=replace(asked.world, mpirun=mpirun))
    run_studies(asked, [asked.study(ranks)], render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">values\na rank": field("values"),
        ">reductions\na second": figure("reductions_per_second"),
        ">against\nMPI": lambda one: against(one, results, BASELINE, "reductions_per_second", ("ranks", "values")),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        **per_joule(results, "reductions", "reductions_per_joule"),
        VERIFIED: field("verified", format_verified),
    }
    title = f"Global reduction of float32 values on {devices_of(results)}"
    directions = "reductions, against MPI (times as fast): higher is better; CPU time: lower"
    return result_table(title, columns, results, directions, keys=3)
