# SPDX-License-Identifier: Apache-2.0
"""One rank of `beeline bench overlap`: all-reduces on one stream at the same time as products of matrices on another.

python -m beeline.ranks.overlap VALUES: the values of the options of `beeline-bench overlap --describe`, as JSON
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import beeline
from beeline.ranks.names import BY_BLOCKS
from beeline.ranks.records import Record, emit, everyones, first_line, lacking, result, run_rank

if TYPE_CHECKING:
    from beeline.ranks.beside import Bench, Calls

LIMIT_S = 400
CHANNEL_BYTES = 256 << 20  # of the heap, in addition to the two vectors
FIGURES = (
    "unit", "median", "samples", "allreduce_alone_us", "allreduce_beside_us", "matmul_alone_tflops",
    "matmul_beside_tflops", "matmul_slowdown", "lost_us", "verified",
)  # fmt: skip


def main() -> None:
    options = SimpleNamespace(**json.loads(sys.argv[1]))
    run_rank(lambda world: measure(world, options), LIMIT_S, heap_bytes=2 * options.size + CHANNEL_BYTES)


def wanted_methods(options: SimpleNamespace) -> list[tuple[str, int]]:
    """Methods with numbers of blocks; 0: chosen by size, or no blocks."""
    return [(name, count) for name in options.methods for count in (options.blocks if name in BY_BLOCKS else [0])]


def measure(world: beeline.World, options: SimpleNamespace) -> None:
    reason = reason_against(world)
    if reason is not None:
        for method, blocks in wanted_methods(options):
            emit(world, head_of(world, options, method, blocks) | lacking(reason, FIGURES))
        return
    from beeline.ranks.beside import Bench

    with Bench(world, options.size, options.type, options.matrix) as bench:
        measure_in_turns(bench, world, options)


def measure_in_turns(bench: Bench, world: beeline.World, options: SimpleNamespace) -> None:
    """Measures in turns, so that all methods run with the same GPU clocks."""
    opened: list[tuple[Record, Calls, list[Record]]] = []
    for method, blocks in wanted_methods(options):
        head = head_of(world, options, method, blocks)
        try:
            calls = bench.open(method, blocks)
        except beeline.UnavailableError as missing:
            emit(world, head | lacking(first_line(missing), FIGURES))
            continue
        head["settings"] |= calls.settings
        opened.append((head, calls, []))
    for _ in range(options.rounds):
        for head, calls, samples in opened:
            emit(world, {"event": "progress", "method": head["method"]})
            samples.append(slowest(everyones(world, calls.sample())))
    for head, calls, samples in opened:
        emit(world, head | summary(samples) | {"verified": all(everyones(world, calls.verify()))})


def reason_against(world: beeline.World) -> str | None:
    if any(device.kind != "gpu" for device in world.devices):
        return "ranks are not on GPUs"
    if len({device.uuid for device in world.devices}) < world.size:
        return "ranks share a GPU"
    return "torch is not installed" if importlib.util.find_spec("torch") is None else None


def head_of(world: beeline.World, options: SimpleNamespace, method: str, blocks: int) -> Record:
    settings: dict[str, Any] = {"type": options.type, "matrix": options.matrix, "blocks": blocks or None}
    return result("allreduce_beside_matmul", method, options.size, world.size) | {"settings": settings}


def slowest(seen: list[Record]) -> Record:
    """Combines all ranks' records: the longest times, and the lowest rates."""
    return {name: (min if name.endswith("tflops") else max)(one[name] for one in seen) for name in seen[0]}


def summary(samples: list[Record]) -> Record:
    """Medians of the samples.

    matmul_slowdown  rate alone / rate with all-reduces
    lost_us          time of products that each all-reduce has cost. If all-reduces and products ran one after the
                     other, it would be `allreduce_alone_us`
    """
    medians = {name: statistics.median(one[name] for one in samples) for name in samples[0]}
    share = [1 - one["matmul_beside_tflops"] / one["matmul_alone_tflops"] for one in samples]
    lost = [part * one["allreduce_beside_us"] for part, one in zip(share, samples, strict=True)]
    return {
        "unit": "us", "median": medians["allreduce_beside_us"], "samples": samples, **medians,
        "matmul_slowdown": medians["matmul_alone_tflops"] / medians["matmul_beside_tflops"],
        "lost_us": statistics.median(lost),
    }  # fmt: skip


if __name__ == "__main__":
    main()
