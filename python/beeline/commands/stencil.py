# SPDX-License-Identifier: Apache-2.0
"""`beeline app stencil`: 3-D finite differences in the four listings of seed 001."""

from __future__ import annotations

from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
from beeline.display import (
    BELOW_NOISE,
    VERIFIED,
    Cell,
    against,
    against_one_device,
    devices_of,
    field,
    figure,
    format_share,
    format_verified,
    result_table,
)
from beeline.jobs import Event

BASELINE = "proxy"  # the method that the others are compared with


def study(asked: Asked, devices: options.Devices = "2") -> None:
    run_studies(asked, [asked.study_on_devices(devices)], render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        ">volume": lambda one: "×".join(str(extent) for extent in one.get("size") or []),
        "method": field("method", str),
        ">devices": field("devices"),
        ">step,\nus": figure("seconds", factor=1e6),
        ">against\nproxy": lambda one: against(one, results, BASELINE, "seconds", ("devices", "size")),
        **against_one_device(results, ("size", "method")),
        ">million\nupdates\na second": figure("updates_per_second", factor=1e-6),
        ">transfer\nshare, %": figure("communication_share", format_share),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        VERIFIED: field("verified", format_verified),
    }
    notes = ["times, share: lower is better; updates/s, against proxy, against one device (times as fast): higher"]
    if any(format_share(one.get("communication_share")) == BELOW_NOISE for one in results):
        notes.append(f"{BELOW_NOISE}: runs without transfers took longer than those with them")
    return result_table(f"3-D finite differences on {devices_of(results)}", columns, results, *notes, keys=3)
