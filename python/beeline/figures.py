# SPDX-License-Identifier: Apache-2.0
"""The spread of a result's samples."""

from __future__ import annotations

import statistics
from typing import Any

# A figure is uncertain if a quartile is farther from the median than this share of the median. Quartiles are used
# because the median deviation stays small even if two fifths of the samples are several times as long.
LARGE_DEVIATION = 0.1
SAMPLES = ("samples", "samples_seconds")  # the first of benchmarks, the second of applications


def spread(samples: list[float]) -> float:
    """Distance of the farther quartile from the median, as a share of the median; 0 of fewer than two samples."""
    if len(samples) < 2:
        return 0.0
    lower, middle, upper = statistics.quantiles(samples, n=4)
    return max(upper - middle, middle - lower) / middle if middle > 0 else 0.0


def is_uncertain(*results: dict[str, Any] | None) -> bool:
    """Whether the samples of any of the results vary much. None, or a result without samples, does not count."""
    return any(spread(one.get(name) or []) > LARGE_DEVIATION for one in results if one for name in SAMPLES)
