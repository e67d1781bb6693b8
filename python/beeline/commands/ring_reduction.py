# SPDX-License-Identifier: Apache-2.0
"""`beeline app ring-reduction`: one ring all-reduce under every control, on growing numbers of ranks."""

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
    format_bytes,
    format_verified,
    per_joule,
    result_table,
)
from beeline.jobs import Event

BASELINE = "host"  # the scheme that the others are compared with


def study(asked: Asked, ranks: options.Ranks = "2,4") -> None:
    run_studies(asked, [asked.study(ranks)], render)


def render(results: list[Event]) -> RenderableType:
    sizes = dict.fromkeys(one.get("bytes") or 0 for one in results)
    chunks = {one.get("chunk_bytes") for one in results if one.get("method") == results[0].get("method")}
    columns: dict[str, Cell] = {
        "method": field("method", str),
        **({">size": field("bytes", format_bytes)} if len(sizes) > 1 else {}),
        **({">chunk,\nKiB": field("chunk_bytes", factor=1 / 1024)} if len(chunks) > len(sizes) else {}),
        ">ranks": field("ranks"),
        ">time,\nus": figure("seconds", factor=1e6),
        ">against\nhost": lambda one: against(one, results, BASELINE, "seconds", ("ranks", "bytes")),
        ">bus,\nGB/s": figure("bus_bytes_per_second", factor=1e-9),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        ">blocks": field("lanes"),
        **per_joule(results, "reductions", "reductions_per_joule"),
        VERIFIED: field("verified", format_verified),
    }
    title = f"Ring reduction of {', '.join(map(format_bytes, sizes))} on {devices_of(results)}"
    directions = "times: lower is better; GB/s, against host (times as fast): higher"
    return result_table(title, columns, results, directions, keys=2)
