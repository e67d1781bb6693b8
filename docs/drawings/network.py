# SPDX-License-Identifier: Apache-2.0
"""A put with its signal to a rank on another node: active messages, which the target's engine carries out."""

from __future__ import annotations

from canvas import Canvas

POSTER, UCX, TARGET = 20, 320, 590


def draw() -> Canvas:
    canvas = Canvas(880, 390, "A put_signal and a quiet to a rank on another node")
    for x, width, name in (
        (POSTER, 240, "rank 0, node A: the thread that posts"),
        (UCX, 200, "UCX, in order of numbers"),
        (TARGET, 270, "rank 2, node B"),
    ):
        canvas.text(x + width / 2, 28, name)
    canvas.line((290, 44), (290, 350), dashed=True)
    canvas.line((555, 44), (555, 350), dashed=True)
    canvas.box(TARGET, 44, 270, 52, "a thread that waits does the work,\notherwise the engine's thread", "host")
    canvas.box(POSTER, 116, 240, 52, "put_signal, command 1:\nput")
    canvas.box(UCX, 116, 200, 52, "message 7:\nput, with the data", "mark")
    canvas.box(TARGET, 116, 270, 52, "checks the address,\ncopies the data to its place", "host")
    canvas.box(POSTER, 194, 240, 52, "put_signal, command 2:\nstore")
    canvas.box(UCX, 194, 200, 52, "message 8:\nstore of the signal", "mark")
    canvas.box(TARGET, 194, 270, 52, "checks the address,\nstores the signal (release)", "host")
    canvas.box(POSTER, 290, 240, 52, "quiet waits until\n8 is acknowledged")
    canvas.box(UCX, 290, 200, 52, "acknowledged: 8", "mark")
    canvas.box(TARGET, 290, 270, 52, "acknowledges in its next message,\nor alone if there is none", "host")
    for y in (142, 220):
        canvas.arrow((POSTER + 240, y), (UCX - 2, y))
        canvas.arrow((UCX + 200, y), (TARGET - 2, y))
    canvas.arrow((TARGET + 135, 96), (TARGET + 135, 114), dashed=True)
    canvas.arrow((TARGET + 135, 168), (TARGET + 135, 192))
    canvas.arrow((TARGET + 135, 246), (TARGET + 135, 288))
    canvas.arrow((TARGET, 316), (UCX + 202, 316))
    canvas.arrow((UCX, 316), (POSTER + 242, 316))
    order = "The target carries out message 8 after message 7: a rank that sees the signal sees the data."
    canvas.text(POSTER, 372, order, "start", True)
    return canvas
