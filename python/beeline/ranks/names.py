# SPDX-License-Identifier: Apache-2.0
"""What the measurements on ranks know by name; for the command line too, which has neither numpy nor the library."""

from __future__ import annotations

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int32", "int64", "uint8")
REDUCTIONS = ("sum", "average", "product")
TREE = "stream/tree"  # combines in another order than that of ranks
ALGORITHMS = (
    "stream/packets_one_shot", "stream/packets_two_shot", "stream/packets128_one_shot", "stream/packets128_two_shot",
    "stream/two_shot", "stream/read", "stream/gather_cast", "stream/allgather", "stream/alltoall_allgather", TREE,
    "stream/bulk", "stream/copy_engine",
)  # fmt: skip
PEERS = ("gloo/host", "nccl/stream", "torch/one_shot/stream", "torch/two_shot/stream", "mpi/host")
NCCL = "nccl/stream"
BY_BLOCKS = ("stream/two_shot", "stream/bulk")
BESIDE_MATMUL = ("stream/automatic", *BY_BLOCKS, "stream/copy_engine", NCCL)
