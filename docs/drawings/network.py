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
    canvas.box(POSTER, 116, 240, 52, "put_signal:\none command")
    canvas.box(UCX, 116, 200, 52, "message 7: the signal\nand the data", "mark")
    canvas.box(TARGET, 116, 270, 52, "checks both addresses,\ncopies the data to their place", "host")
    canvas.box(TARGET, 194, 270, 52, "stores the signal (release)", "host")
    canvas.box(POSTER, 290, 240, 52, "quiet waits until\n7 is acknowledged")
    canvas.box(UCX, 290, 200, 52, "acknowledged: 7", "mark")
    canvas.box(TARGET, 290, 270, 52, "acknowledges in its next message,\nor alone if there is none", "host")
    canvas.arrow((POSTER + 240, 142), (UCX - 2, 142))
    canvas.arrow((UCX + 200, 142), (TARGET - 2, 142))
    canvas.arrow((TARGET + 135, 96), (TARGET + 135, 114), dashed=True)
    canvas.arrow((TARGET + 135, 168), (TARGET + 135, 192))
    canvas.arrow((TARGET + 135, 246), (TARGET + 135, 288))
    canvas.arrow((TARGET, 316), (UCX + 202, 316))
    canvas.arrow((UCX, 316), (POSTER + 242, 316))
    order = "Messages are carried out in the order of their numbers: a rank that sees the signal sees the data."
    canvas.text(POSTER, 372, order, "start", True)
    return canvas
