# SPDX-License-Identifier: Apache-2.0
"""One-shot and two-shot all-reduce of four ranks."""

from __future__ import annotations

from canvas import Canvas

RANKS = 4
NAMES = "abcd"


def draw() -> Canvas:
    canvas = Canvas(900, 420, "One-shot and two-shot all-reduce on four ranks")
    one_shot(canvas, 20)
    two_shot(canvas, 330)
    canvas.line((310, 20), (310, 400), dashed=True)
    return canvas


def row(place: int) -> int:
    return 80 + 66 * place


def one_shot(canvas: Canvas, left: int) -> None:
    canvas.text(left, 30, "one-shot: each sends its vector to all", "start")
    canvas.text(left, 48, "each rank sends 3 vectors; one round", "start", True, "faint")
    for rank in range(RANKS):
        canvas.box(left, row(rank), 80, 40, f"{NAMES[rank]}", "host")
        canvas.box(left + 180, row(rank), 90, 40, "a+b+c+d", "gpu")
        for to in range(RANKS):
            canvas.arrow((left + 80, row(rank) + 20), (left + 178, row(to) + 12 + 5 * rank))
    canvas.text(left, 360, "least latency: for small vectors", "start", True)
    for rank in range(RANKS):
        canvas.text(left + 4, row(rank) - 4, f"rank {rank}", "start", True, "faint")


def two_shot(canvas: Canvas, left: int) -> None:
    canvas.text(left, 30, "two-shot: each reduces one quarter, then sends it to all", "start")
    canvas.text(left, 48, "each rank sends 3/4 of a vector twice; two rounds", "start", True, "faint")
    for rank in range(RANKS):
        for part in range(RANKS):
            kind = "mark" if part == 1 else ""
            canvas.box(left + 38 * part, row(rank), 38, 40, f"{NAMES[rank]}{part}", kind)
            canvas.box(left + 386 + 42 * part, row(rank), 42, 40, f"S{part}", "mark" if part == 1 else "gpu")
        canvas.box(left + 250, row(rank), 48, 40, f"S{rank}", "mark" if rank == 1 else "gpu")
        canvas.arrow((left + 152, row(rank) + 20), (left + 248, row(1) + 12 + 5 * rank), "mark")
        canvas.arrow((left + 298, row(1) + 20), (left + 384, row(rank) + 20), "mark")
        canvas.text(left + 4, row(rank) - 4, f"rank {rank}", "start", True, "faint")
    canvas.text(left, 360, "least data on the links: for large vectors", "start", True)
    canvas.text(
        left, 380, "arrows: part 1 alone, S1 = a1+b1+c1+d1; the other parts travel likewise", "start", True, "faint"
    )
