# SPDX-License-Identifier: Apache-2.0
"""`beeline app spin-glass`: a 3-D Heisenberg spin glass with each method, over lattices and numbers of ranks."""

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
    format_share,
    format_verified,
    per_joule,
    result_table,
)
from beeline.jobs import Event

BASELINE = "off"  # the other methods are compared with this one


def study(asked: Asked, ranks: options.Ranks = "2") -> None:
    run_studies(asked, [asked.study(ranks)], render)


def lattice_of(result: Event) -> str:
    return "×".join(map(str, result.get("size") or []))


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        ">lattice": lattice_of,
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">ps a spin\nupdate": figure("picoseconds_per_update"),
        ">against\noff": lambda one: against(one, results, BASELINE, "seconds", ("ranks", "size")),
        ">of copy\nspeed, %": figure("bound_share", format_percent),
        ">comm.\nshare, %": figure("communication_share", format_share),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        **per_joule(results, "updates", "updates_per_joule"),
        VERIFIED: field("verified", format_verified),
    }
    directions = "times, share: lower is better; against off (times as fast), of copy speed: higher"
    return result_table(f"Heisenberg spin glass on {devices_of(results)}", columns, results, directions, keys=3)
