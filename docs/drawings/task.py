# SPDX-License-Identifier: Apache-2.0
"""A task's way: from a poster's kernel into the target's memory, through a worker, and back."""

from __future__ import annotations

from canvas import Canvas


def draw() -> Canvas:
    canvas = Canvas(900, 400, "A task's way: a kernel posts it into the target's memory, a worker there runs it")
    for x, width, name in (
        (10, 250, "poster: any kernel of rank A"),
        (320, 260, "memory of rank B"),
        (640, 230, "worker of rank B: a warp"),
    ):
        canvas.text(x + width / 2, 28, name)
    canvas.box(10, 44, 250, 54, "ticket = next++\nwhile ticket < done + depth", "gpu")
    canvas.box(10, 122, 250, 44, "stores a long payload", "gpu")
    canvas.box(10, 190, 250, 54, "stores the words of the task,\neach with its sequence number", "gpu")
    canvas.box(10, 268, 250, 44, "reply: a signal, if it wants one", "gpu")
    canvas.box(10, 336, 250, 54, "done: a count\nquiet; places for later tasks", "gpu")
    canvas.box(320, 122, 260, 44, "registered buffer:\na place for each task", "mark")
    canvas.box(320, 190, 260, 54, "slots[ticket % depth]: header,\narguments, short payload", "mark")
    canvas.box(640, 190, 230, 54, "checks it: registered? sizes?\notherwise the team ends", "gpu")
    canvas.box(640, 268, 230, 44, "runs the function", "gpu")
    canvas.box(640, 336, 230, 54, "counts it as done, several\nat a time, in the ring's order", "gpu")
    for start, end in (
        ((135, 98), (135, 120)),
        ((135, 166), (135, 188)),
        ((260, 144), (318, 144)),
        ((260, 217), (318, 217)),
        ((580, 217), (638, 217)),
        ((755, 244), (755, 266)),
        ((755, 312), (755, 334)),
        ((640, 290), (262, 290)),
        ((640, 363), (262, 363)),
    ):
        canvas.arrow(start, end)
    canvas.line((580, 144), (886, 144), dashed=True)
    canvas.line((886, 144), (886, 290), dashed=True)
    canvas.arrow((886, 290), (872, 290), dashed=True)
    canvas.text(720, 136, "read by the function", small=True, kind="faint")
    canvas.text(450, 282, "stores to A's memory", small=True, kind="faint")
    return canvas
