# SPDX-License-Identifier: Apache-2.0
"""Names that the measurements on ranks use; the command line, without numpy and the library, needs them, too."""

from __future__ import annotations

INTEGERS = ("int32", "int64", "uint8", "uint32", "uint64")
TREE = "stream/tree"  # does not combine in rank order
NCCL = "nccl/stream"
BY_BLOCKS = ("stream/two_shot", "stream/bulk")
