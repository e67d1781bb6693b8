# SPDX-License-Identifier: Apache-2.0
"""A put with its signal on the sender's stream, and the wait on the receiver's: no kernel and no CPU takes part."""

from __future__ import annotations

from canvas import Canvas

LANES = {"CPU, rank 0": 72, "stream, rank 0": 142, "memory of rank 1": 222, "stream, rank 1": 302, "CPU, rank 1": 372}


def draw() -> Canvas:
    canvas = Canvas(880, 430, "A put with its signal on a stream, and the wait for it on the receiver's stream")
    canvas.text(160, 28, "time", "start", small=True, kind="faint")
    canvas.arrow((195, 24), (860, 24))
    for name, y in LANES.items():
        canvas.text(16, y + 5, name, "start")
        canvas.line((150, y), (864, y), dashed=True)
    first, sender, memory, receiver, last = LANES.values()
    canvas.box(160, first - 20, 150, 40, "enqueues, goes on", "host")
    canvas.box(160, last - 20, 150, 40, "enqueues, goes on", "host")
    canvas.box(230, sender - 20, 130, 40, "kernel computes", "gpu")
    canvas.box(370, sender - 20, 140, 40, "copy engine", "mark")
    canvas.box(520, sender - 20, 110, 40, "signal", "mark")
    canvas.box(640, sender - 20, 130, 40, "next kernel", "gpu")
    canvas.box(370, memory - 20, 140, 40, "data", "mark")
    canvas.box(520, memory - 20, 110, 40, "signal = 1", "mark")
    canvas.box(330, receiver - 20, 300, 40, "stream waits for signal >= 1")
    canvas.box(660, receiver - 20, 170, 40, "kernel reads the data", "gpu")
    canvas.box(660, last - 20, 170, 40, "synchronize", "host")
    canvas.arrow((440, sender + 20), (440, memory - 22))
    canvas.arrow((575, sender + 20), (575, memory - 22))
    canvas.arrow((590, memory + 20), (590, receiver - 22))
    canvas.arrow((310, first + 20), (310, sender - 22), dashed=True)
    canvas.arrow((270, last - 20), (345, receiver + 22), dashed=True)
    canvas.text(
        16, 418, "The signal is stored after the data is visible at rank 1. No CPU waits in between.", "start", True
    )
    return canvas
