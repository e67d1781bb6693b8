# SPDX-License-Identifier: Apache-2.0
"""The library's layers, in the order that tools/check enforces."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from pathlib import Path

from canvas import Canvas

PURPOSES = {
    "gaspi": "the GASPI front end, a shared library on the C interface; GASPI in kernels",
    "c": "the C interface: functions for C, Fortran, ctypes and Numba, in a shared library",
    "hpe": "devices, streams, copies and objects of one process, without ranks",
    "host": "World, Team, launch, run, Collectives, Messages: what programs call",
    "energy": "the meter: counters of GPUs and CPUs, windows, samples",
    "collectives": "sessions, schedules, protocols (header only)",
    "selection": "which of the possible methods a call takes",
    "transports": "the engine of ranks on other nodes, over UCX or sockets",
    "control": "engines: threads that carry out what kernels post",
    "transport": "streams and events of GPUs and host ranks; staged rings",
    "memory": "the address range, heaps, segments, allocation by offset",
    "runtime": "bootstrap, devices, residency ledger",
    "device": "operations of kernels (header only)",
    "core": "status and errors, configuration, log, registry of methods, shared layouts",
}
LEFT, WIDTH, HEIGHT, STEP = 20, 700, 34, 40


def draw() -> Canvas:
    check = str(Path(__file__).resolve().parents[2] / "tools/check")
    layers = SourceFileLoader("check", check).load_module().LAYERS  # the file has no suffix
    if set(layers) != set(PURPOSES):
        raise ValueError(
            f"docs/drawings/layers.py describes other layers than tools/check: {set(layers) ^ set(PURPOSES)}"
        )
    canvas = Canvas(800, 60 + STEP * len(layers), "The layers of the library, highest first")
    for place, layer in enumerate(reversed(layers)):
        top = 16 + STEP * place
        kind = "gpu" if layer in ("device", "collectives") else "host" if layer in ("host", "hpe") else ""
        canvas.box(LEFT, top, WIDTH, HEIGHT, kind=kind)
        canvas.text(LEFT + 14, top + 22, layer, anchor="start")
        canvas.text(LEFT + 130, top + 22, PURPOSES[layer], anchor="start", small=True)
    bottom = 16 + STEP * len(layers)
    canvas.arrow((750, 24), (750, bottom - 12))
    canvas.text(760, bottom / 2, "uses", anchor="start", small=True, kind="faint")
    canvas.text(
        LEFT, bottom + 22, "blue: programs start here; green: code that runs in kernels", "start", True, "faint"
    )
    return canvas
