# SPDX-License-Identifier: Apache-2.0
"""`beeline app breadth-first`: breadth-first search on Graph500 graphs, by each method."""

from __future__ import annotations

from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
from beeline.display import (
    VERIFIED,
    Cell,
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

BASELINE = "alltoallv"  # the method that the others are compared with


def study(asked: Asked, ranks: options.Ranks = "2") -> None:
    run_studies(asked, [asked.study(ranks)], render)


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
