# SPDX-License-Identifier: Apache-2.0
"""`beeline app jacobi`: 2-D Jacobi relaxation with each method, over grids and numbers of ranks."""

from __future__ import annotations

from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
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

BASELINE = "host"  # the method that the others are compared with


def study(asked: Asked, ranks: options.Ranks = "2") -> None:
    run_studies(asked, [asked.study(ranks)], render)


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
