# SPDX-License-Identifier: Apache-2.0
"""`beeline app fft`: the Fourier transform of a vector over the devices of one process."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
from beeline.display import (
    MISSING,
    VERIFIED,
    Cell,
    against,
    devices_of,
    field,
    figure,
    format_bytes,
    format_share,
    format_verified,
    result_table,
)
from beeline.jobs import Event

BASELINE = "one_device"  # the method that the others are compared with


def study(asked: Asked, devices: options.Devices = "2") -> None:
    run_studies(asked, [asked.study_on_devices(devices)], render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        ">size": field("bytes", format_bytes),
        "method": field("method", str),
        ">devices": field("devices"),
        ">time,\nus": figure("seconds", factor=1e6),
        ">against\none device": lambda one: against(one, results, BASELINE, "seconds", ("bytes",)),
        ">transfer\nshare, %": field("transfer_share", format_share),
        ">share of\nbound, %": field("share_of_bound", format_share),
        ">with the\nlocal as\nmeasured": field("share_of_exchange_bound", format_share),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        ">relative\nerror": field("relative_error", format_error),
        VERIFIED: field("verified", format_verified),
    }
    notes = "times, transfer share: lower is better; against one device (times as fast), share of the bound: higher"
    return result_table(f"Fourier transform on {devices_of(results)}", columns, results, notes, keys=3)


def format_error(error: Any) -> str:
    return MISSING if error is None else f"{error:.1e}"
