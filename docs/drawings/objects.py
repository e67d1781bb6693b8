# SPDX-License-Identifier: Apache-2.0
"""A coherent object: the states of a block, and the mappings of its pages."""

from __future__ import annotations

from canvas import Canvas


def draw() -> Canvas:
    canvas = Canvas(900, 560, "A coherent object: the states of a block, and shadow mapping")
    states(canvas)
    mappings(canvas)
    return canvas


def states(canvas: Canvas) -> None:
    canvas.text(450, 26, "states of a block, and what the program may do with its mapping")
    canvas.box(20, 80, 200, 60, "host\nread and write", "host")
    canvas.box(350, 80, 200, 60, "both\nread", "mark")
    canvas.box(680, 80, 200, 60, "device\nno access", "gpu")
    canvas.arrow((350, 94), (222, 94), "host")
    canvas.text(286, 86, "CPU writes: fault", small=True, kind="host")
    canvas.arrow((680, 94), (552, 94), "host")
    canvas.text(616, 86, "CPU reads: fetch", small=True, kind="host")
    canvas.arrow((220, 126), (348, 126), "gpu")
    canvas.text(285, 146, "kernel reads: send", small=True, kind="gpu")
    canvas.arrow((550, 126), (678, 126), "gpu")
    canvas.text(615, 146, "kernel writes", small=True, kind="gpu")
    canvas.line((120, 140), (120, 186), "gpu")
    canvas.line((120, 186), (780, 186), "gpu")
    canvas.arrow((780, 186), (780, 142), "gpu")
    canvas.text(450, 180, "launch of a kernel that may write: close, then send", small=True, kind="gpu")
    canvas.line((740, 80), (740, 48), "host")
    canvas.line((740, 48), (120, 48), "host")
    canvas.arrow((120, 48), (120, 78), "host")
    canvas.text(450, 62, "CPU writes: wait for the kernel, fetch, open", small=True, kind="host")


def mappings(canvas: Canvas) -> None:
    canvas.text(450, 236, "shadow mapping: while a transfer runs, the program's mapping of the block is closed")
    canvas.box(20, 260, 190, 54, "threads of the program", "host")
    canvas.box(280, 260, 230, 54, "the program's mapping\nprotected, block by block", "mark")
    canvas.box(280, 370, 230, 54, "pages in host memory\nof a memfd", "host")
    canvas.box(280, 480, 230, 54, "shadow mapping\nalways read and write", "host")
    canvas.box(650, 370, 230, 54, "memory of the GPU\nseen by kernels", "gpu")
    canvas.box(650, 260, 230, 54, "page table of the GPU\nthe same addresses", "gpu")
    canvas.arrow((210, 287), (278, 287))
    canvas.text(244, 280, "loads", small=True, kind="faint")
    canvas.arrow((395, 314), (395, 368))
    canvas.arrow((395, 480), (395, 426))
    canvas.arrow((765, 314), (765, 368))
    canvas.line((510, 287), (648, 287), dashed=True)
    canvas.text(580, 279, "one pointer", small=True, kind="faint")
    canvas.line((510, 507), (765, 507), "gpu")
    canvas.arrow((765, 507), (765, 426), "gpu")
    canvas.arrow((550, 507), (512, 507), "gpu")
    canvas.text(640, 499, "copy engine: fetch and send", small=True, kind="gpu")
    canvas.box(
        20, 370, 190, 74, "a thread that touches a\nclosed block faults, and\nsleeps until it is current", "fault"
    )
    canvas.arrow((280, 305), (212, 380), "fault", dashed=True)
