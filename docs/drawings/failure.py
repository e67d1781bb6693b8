# SPDX-License-Identifier: Apache-2.0
"""The timeline of a failure: one rank never sends, another one's wait ends at the deadline."""

from __future__ import annotations

from canvas import Canvas

LANES = {"rank 0": 100, "rank 1": 180, "rank 2": 260}
BEGIN, DEADLINE, SEEN, THROWN = 100, 450, 570, 720


def draw() -> Canvas:
    canvas = Canvas(920, 400, "The timeline of a failure, from a wait that nobody answers to the errors of all ranks")
    times = ((BEGIN, "0"), (DEADLINE, "deadline"), (SEEN, "+ 64 polls"), (THROWN, "+ 50 ms"))
    for x, name in times:
        canvas.text(x, 30, name, small=True, kind="faint")
        canvas.line((x, 38), (x, 300), dashed=True)
    for name, y in LANES.items():
        canvas.text(20, y + 25, name, "start")
    canvas.box(BEGIN, 100, DEADLINE - BEGIN, 40, "kernel waits for a signal of rank 2", "gpu")
    canvas.box(BEGIN + 60, 180, SEEN - BEGIN - 60, 40, "kernel waits for rank 0", "gpu")
    canvas.box(BEGIN, 260, 140, 40, "never sends", "fault")
    canvas.box(BEGIN + 140, 260, SEEN - BEGIN - 140, 40, "kernel waits for rank 1", "gpu")
    canvas.box(DEADLINE, 100, SEEN - DEADLINE, 40, "record, abort", "fault")
    canvas.arrow((DEADLINE + 60, 140), (SEEN, 180), "fault")
    canvas.arrow((DEADLINE + 60, 140), (SEEN, 258), "fault")
    canvas.text(DEADLINE - 14, 162, "abort words", "end", True, "fault")
    canvas.line((DEADLINE - 10, 158), (DEADLINE + 62, 150), "fault", dashed=True)
    for y in LANES.values():
        canvas.box(SEEN, y, THROWN - SEEN, 40, "reads records", "host")
        canvas.box(THROWN, y, 180, 40, "throws Error", "fault")
    canvas.text(
        20, 330, "The record has operation, rank, peer, kernel, sequence number, expected and observed value.", "start"
    )
    canvas.text(
        20,
        352,
        "Every error names the first failure (rank 0 waited for rank 2) and lists what the others waited for.",
        "start",
    )
    canvas.text(
        20,
        380,
        "A rank that dies starts the same at once: launcher and rendezvous server raise the abort words.",
        "start",
        True,
        "faint",
    )
    return canvas
