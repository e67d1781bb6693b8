# SPDX-License-Identifier: Apache-2.0
"""Rounds of a session: why two areas are enough, and no acknowledgement is needed."""

from __future__ import annotations

from canvas import Canvas

LANES = {"rank 0": 120, "rank 1": 250}
ROUNDS = ("round 1", "round 2", "round 3")


def draw() -> Canvas:
    canvas = Canvas(860, 400, "Three rounds of a session between two ranks, whose packets go to two areas in turn")
    for name, y in LANES.items():
        canvas.text(20, y + 5, name, "start")
        canvas.line((80, y), (840, y))
    for place, name in enumerate(ROUNDS):
        left = 110 + 240 * place
        area = "area A" if place % 2 == 0 else "area B"
        kind = "host" if place % 2 == 0 else "mark"
        canvas.text(left + 100, 34, f"{name}: packets go to {area}")
        canvas.box(left, 100, 60, 40, "send", kind)
        canvas.box(left + 20, 230, 60, 40, "send", kind)
        canvas.box(left + 130, 100, 76, 40, "receive", kind)
        canvas.box(left + 130, 230, 76, 40, "receive", kind)
        canvas.arrow((left + 60, 140), (left + 140, 230), kind)
        canvas.arrow((left + 80, 230), (left + 140, 140), kind)
        canvas.line((left + 218, 50), (left + 218, 290), dashed=True)
    canvas.text(60, 315, "Rank 0 has ended round 2: it has rank 1's packets of round 2,", "start")
    canvas.text(60, 334, "and rank 1 sent those only after it had read round 1.", "start")
    canvas.text(60, 353, "So rank 0 may write area A again in round 3, without asking rank 1.", "start")
    canvas.text(
        60,
        382,
        "Every packet carries the number of its round: the receiver polls the data itself.",
        "start",
        True,
        "faint",
    )
    return canvas
