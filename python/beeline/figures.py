# SPDX-License-Identifier: Apache-2.0
"""How far the samples of a result lie apart."""

from __future__ import annotations

import statistics
from typing import Any

# A quartile that lies farther from the median than this share of it makes a figure uncertain. Quartiles rather than
# the median deviation: that stays small while two fifths of the samples are several times as long.
LARGE_DEVIATION = 0.1
SAMPLES = ("samples", "samples_seconds")  # of benchmarks, of applications


def spread(samples: list[float]) -> float:
    """Distance of the farther quartile from the median, as a share of the median; 0 of fewer than two samples."""
    if len(samples) < 2:
        return 0.0
    lower, middle, upper = statistics.quantiles(samples, n=4)
    return max(upper - middle, middle - lower) / middle if middle > 0 else 0.0


def is_uncertain(*results: dict[str, Any] | None) -> bool:
    """Whether the samples of one of the results lie far apart. None, or a result without samples, says nothing."""
    return any(spread(one.get(name) or []) > LARGE_DEVIATION for one in results if one for name in SAMPLES)
