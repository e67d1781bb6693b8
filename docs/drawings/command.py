# SPDX-License-Identifier: Apache-2.0
"""A command's way from a kernel through a ring in host memory to the engine, and back."""

from __future__ import annotations

from canvas import Canvas


def draw() -> Canvas:
    canvas = Canvas(880, 380, "A command's way: a kernel posts it, the rank's engine takes it and does it")
    for x, width, name in (
        (20, 230, "kernel, any block"),
        (310, 230, "ring in host memory"),
        (600, 260, "engine: thread of the host"),
    ):
        canvas.text(x + width / 2, 28, name)
    canvas.box(10, 44, 240, 54, "ticket = next++\nonce the slot of the ticket is free", "gpu")
    canvas.box(10, 116, 240, 54, "writes the command,\nits sequence number last", "gpu")
    canvas.box(10, 206, 240, 44, "fetch, get: wait for the answer", "gpu")
    canvas.box(10, 264, 240, 44, "flush: sources may be reused", "gpu")
    canvas.box(10, 322, 240, 44, "quiet: all is in place", "gpu")
    canvas.box(310, 116, 230, 54, "commands[ticket % 256]\n64 bytes: verb, peer, place, rows", "mark")
    canvas.box(310, 206, 230, 44, "answers[ticket % 256]", "mark")
    canvas.box(310, 264, 230, 44, "reusable: a count", "mark")
    canvas.box(310, 322, 230, 44, "completed: a count", "mark")
    canvas.box(600, 116, 260, 54, "copies it; taken = ticket + 1\nnow the slot is free again", "host")
    canvas.box(600, 184, 260, 44, "checks it, does it", "host")
    canvas.box(600, 264, 260, 102, "counts what is done,\nin the order of the queue", "host")
    for start, end in (
        ((135, 98), (135, 114)),
        ((250, 143), (308, 143)),
        ((540, 143), (598, 143)),
        ((730, 170), (730, 182)),
        ((730, 228), (730, 262)),
    ):
        canvas.arrow(start, end)
    canvas.arrow((600, 212), (542, 224))
    for y in (286, 344):
        canvas.arrow((600, y), (542, y))
        canvas.arrow((310, y), (252, y))
    canvas.arrow((310, 228), (252, 228))
    canvas.line((730, 116), (730, 71), dashed=True)
    canvas.arrow((730, 71), (252, 71), dashed=True)
    canvas.text(600, 64, "taken, looked at only when the ring seems full", small=True, kind="faint")
    return canvas
