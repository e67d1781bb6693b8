# SPDX-License-Identifier: Apache-2.0
"""`beeline app merge-sort`: a merge sort of keys that devices share."""

from __future__ import annotations

from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
from beeline.display import (
    VERIFIED,
    Cell,
    against_one_device,
    devices_of,
    field,
    figure,
    format_share,
    format_verified,
    result_table,
)
from beeline.jobs import Event

PHASES = ("sort", "search", "swap", "merge")


def study(asked: Asked, devices: options.Devices = "1,2") -> None:
    run_studies(asked, [asked.study_on_devices(devices)], render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        ">keys": field("keys"),
        "method": field("method", str),
        ">devices": field("devices"),
        ">time,\nms": figure("seconds", factor=1e3),
        **against_one_device(results, ("keys", "method")),
        ">million\nkeys/s": figure("keys_per_second", factor=1e-6),
        **{f">{phase},\nms": field(f"{phase}_seconds", factor=1e3) for phase in PHASES},
        ">transfer\nshare, %": figure("communication_share", format_share),
        VERIFIED: field("verified", format_verified),
    }
    notes = "times, share (search and swap): lower is better; keys/s, against one device (times as fast): higher"
    return result_table(f"Merge sort of 64-bit keys on {devices_of(results)}", columns, results, notes, keys=3)
