# SPDX-License-Identifier: Apache-2.0
"""What the measurements on ranks know by name; for the command line too, which has neither numpy nor the library."""

from __future__ import annotations

INTEGERS = ("int32", "int64", "uint8", "uint32", "uint64")
TREE = "stream/tree"  # combines in another order than that of ranks
NCCL = "nccl/stream"
BY_BLOCKS = ("stream/two_shot", "stream/bulk")
