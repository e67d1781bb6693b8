# SPDX-License-Identifier: Apache-2.0
"""The address range of a node, its slots, and the two computations on addresses."""

from __future__ import annotations

from canvas import Canvas

SLOT, TOP = 190, 50


def draw() -> Canvas:
    canvas = Canvas(880, 400, "One address range for the ranks of a node: a slot for each rank, four parts in each")
    canvas.text(20, 30, "the same addresses in every process of the node", "start")
    for place, name in enumerate(("rank 0's slot", "rank 1's slot", "rank 2's slot", "...")):
        canvas.box(20 + SLOT * place, TOP, SLOT, 44, name, "mark" if place == 1 else "")
    canvas.box(20 + SLOT * 4, TOP, 80, 44, "arrays")
    canvas.text(20, TOP + 62, "base", "start", True, "faint")
    canvas.text(20 + SLOT, TOP + 62, "base + 1 slot", "start", True, "faint")
    canvas.text(20 + SLOT * 2, TOP + 62, "base + 2 slots", "start", True, "faint")
    canvas.text(20 + SLOT * 4, TOP + 62, "distributed", "start", True, "faint")
    canvas.line((20 + SLOT, TOP + 70), (20, 170), dashed=True)
    canvas.line((20 + 2 * SLOT, TOP + 70), (860, 170), dashed=True)
    parts = [
        ("heap\nsymmetric objects", "gpu"), ("device segments\nmade by name, of any size", "gpu"),
        ("free\naliases", ""), ("host area\ncontrol block, pinned heap", "host"),
    ]  # fmt: skip
    for place, (name, kind) in enumerate(parts):
        canvas.box(20 + 210 * place, 170, 210, 54, name.strip(), kind)
        canvas.text(20 + 210 * place, 242, ("0", "1/4", "1/2", "3/4")[place], "start", True, "faint")
    canvas.text(860, 242, "1 slot = 2^38 bytes", "end", True, "faint")
    canvas.text(20, 276, "A symmetric object has one offset in every slot, so", "start")
    canvas.box(20, 290, 410, 44, "its address on rank p = address + (p - rank) x slot\none addition")
    canvas.box(450, 290, 410, 44, "owner of an address = (address - base) >> 38\none subtraction and one shift")
    canvas.text(20, 366, "green: on a GPU rank memory of the GPU, on a host rank host memory;", "start", True, "faint")
    canvas.text(20, 384, "blue: host memory on every rank, which CPUs and GPUs load and store", "start", True, "faint")
    return canvas
