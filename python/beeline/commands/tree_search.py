# SPDX-License-Identifier: Apache-2.0
"""`beeline app tree-search`: an unbalanced tree, searched level by level and by tasks."""

from __future__ import annotations

from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
from beeline.display import VERIFIED, Cell, against, devices_of, field, figure, format_verified, per_joule, result_table
from beeline.jobs import Event

BASELINE = "bulk"  # the method that the others are compared with


def study(asked: Asked, ranks: options.Ranks = "2") -> None:
    run_studies(asked, [asked.study(ranks)], render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">time,\nms": figure("seconds", factor=1e3),
        ">against\nbulk": lambda one: against(one, results, BASELINE, "seconds", ("ranks",)),
        ">million\nnodes/s": figure("nodes_per_second", factor=1e-6),
        ">CPU\ntime, ms": field("cpu_seconds", factor=1e3),
        **per_joule(results, "searches", "searches_per_joule"),
        VERIFIED: field("verified", format_verified),
    }
    first = results[0]
    title = f"Search of a tree of {first.get('nodes')} nodes, {first.get('deepest')} deep, on {devices_of(results)}"
    directions = "times: lower is better; nodes/s, against bulk (times as fast): higher"
    return result_table(title, columns, results, directions, keys=2)
