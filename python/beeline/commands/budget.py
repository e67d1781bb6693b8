# SPDX-License-Identifier: Apache-2.0
"""The time that a set of steps may take, and each step's share of it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from beeline.jobs import Event

OUT_OF_BUDGET = "out of budget"  # beginning of the reasons of rows that were left to a later run
LEAST_S = 7.5  # for one row
START_S = 8.0  # of a step besides its rows: start and end of ranks, idle power, trial of settings


class Budget:
    """Divides the remaining time among the remaining steps, in proportion to the rows that they measure. Where it is
    too short for all of them, earlier steps measure all their rows, and later steps are left out."""

    def __init__(self, seconds: float, rows: Mapping[str, int]) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._rows = rows
        self._later = 0.0

    def begin(self, names: list[str]) -> None:
        """Called when the first of these steps begins; all of them share the remaining time."""
        left, rows = self._end - time.monotonic(), [self._rows[name] for name in names]
        share = max(left - START_S * len(names), 0.0) * rows[0] / max(sum(rows), 1)
        measuring = min(max(share, LEAST_S * rows[0]), left - START_S)
        self.metering_s = int(measuring) if measuring >= LEAST_S else 0
        """What the step may meter for; 0: too little for one row."""
        self._later = max(left - measuring - START_S, 0.0)

    def left(self, progress: Event) -> str:
        """The time of this step and the following ones: the step's own estimate, or an upper limit."""
        own = progress.get("left_s")
        if not isinstance(own, (int, float)):
            return f"at most {max(self._end - time.monotonic(), 0):.0f} s left"
        return f"about {own + self._later:.0f} s left"

    def reason(self) -> str:
        return f"{OUT_OF_BUDGET}: {self.seconds:g} s were granted, and the steps before took them"


def is_out_of_budget(result: Event) -> bool:
    return str(result.get("reason")).startswith(OUT_OF_BUDGET)
