# SPDX-License-Identifier: Apache-2.0
"""Who starts a transfer under each control, and how far the kernel, the stream and the CPU take part."""

from __future__ import annotations

from itertools import pairwise

from canvas import Canvas

COLUMNS = {"kernel": 165, "stream": 307, "CPU program": 449, "engine": 597, "peer's memory": 752}
# Of each control: the steps, each (column, words); a step follows the one before.
ARRIVED = ("peer's memory", "data, signal")
CONTROLS = {
    "device": (("kernel", "computes,\nstores"), ARRIVED),
    "stream": (("kernel", "computes,\nends"), ("stream", "copies,\nsignals"), ARRIVED),
    "host": (("kernel", "computes,\nends"), ("CPU program", "waits, copies,\nsignals"), ARRIVED),
    "proxy": (("kernel", "computes,\nposts, goes on"), ("engine", "takes it,\ncopies, signals"), ARRIVED),
    "triggered": (("kernel", "computes,\ntriggers, goes on"), ("engine", "fires what\nthe CPU armed"), ARRIVED),
    "task": (("kernel", "computes,\nposts, goes on"), ("peer's memory", "data, task:\na worker runs it")),
}
STEP, WIDTH = 76, 122


def draw() -> Canvas:
    height = 60 + STEP * len(CONTROLS)
    canvas = Canvas(850, height, "The steps from a kernel's data to the peer's memory, under each control")
    for name, x in COLUMNS.items():
        canvas.text(x + 10, 28, name)
        canvas.line((x + 10, 38), (x + 10, height - 12), dashed=True)
    for place, (control, steps) in enumerate(CONTROLS.items()):
        y = 50 + STEP * place
        canvas.text(16, y + 31, control, "start")
        for (start, _), (end, _) in pairwise(steps):
            canvas.arrow((COLUMNS[start] + 10 + WIDTH / 2, y + 26), (COLUMNS[end] + 8 - WIDTH / 2, y + 26))
        for column, words in steps:
            kind = {"kernel": "gpu", "peer's memory": "mark"}.get(column, "host")
            canvas.box(COLUMNS[column] + 10 - WIDTH / 2, y, WIDTH, 52, words, kind)
    return canvas
