# SPDX-License-Identifier: Apache-2.0
"""`beeline app random-access`: random updates of a table that all ranks share, beside MPI and a bare loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
from beeline.display import VERIFIED, Cell, against, devices_of, field, figure, format_verified, per_joule, result_table
from beeline.jobs import Event

RATE = "updates_per_second"


def study(
    asked: Asked,
    ranks: options.Ranks = "2",
    mpirun: Annotated[
        bool, typer.Option("--mpirun", help="Let mpirun start the ranks: the baseline mpi needs it.")
    ] = False,
) -> None:
    if mpirun and asked.world.threads:
        raise options.refusal("--mpirun", "mpirun starts processes: leave --threads or --mpirun out")
    asked = replace(asked, world=replace(asked.world, mpirun=mpirun))
    run_studies(asked, [asked.study(ranks)], render)


def render(results: list[Event]) -> RenderableType:
    same = ("ranks", "words")
    columns: dict[str, Cell] = {
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">words": field("words"),
        ">share of\nupdates": field("update_share"),
        ">giga-\nupdates/s": figure(RATE, factor=1e-9),
        ">against\nMPI": lambda one: against(one, results, "mpi", RATE, same),
        ">against\nbare": lambda one: against(one, results, "bare", RATE, same),
        ">CPU\ntime, ms": field("cpu_seconds", factor=1e3),
        **per_joule(results, "updates", "updates_per_joule"),
        ">errors": field("errors"),
        VERIFIED: field("verified", format_verified),
    }
    title = f"RandomAccess on {devices_of(results)}"
    directions = "updates/s, against MPI and the bare loop (times as fast): higher is better; CPU time: lower"
    return result_table(title, columns, results, directions, keys=3)
