# SPDX-License-Identifier: Apache-2.0
"""All-reduce beside its peers, from a record of 2 x H200: each library's time as a multiple of Beeline's."""

from __future__ import annotations

import json
from pathlib import Path

from canvas import Canvas

RECORD = "bench/records/2026-11-23_2xH200_collectives-2-bfloat16-5.jsonl"
SIZES = {
    "8 B": 8, "8 KB": 8 << 10, "128 KB": 128 << 10, "1 MB": 1 << 20, "4 MB": 4 << 20, "16 MB": 16 << 20,
    "256 MB": 256 << 20,
}  # fmt: skip
METHODS = {
    "Beeline": (("graph/automatic",), "gpu"),
    "torch": (("torch/one_shot/graph", "torch/two_shot/graph"), ""),
    "NVSHMEM": (("nvshmem/graph",), "mark"),
    "NCCL": (("nccl/graph",), "host"),
}  # of several methods the quickest at each size
LEFT, BOTTOM, UNIT, BAR, GROUP = 50, 300, 100, 25, 117


def draw() -> Canvas:
    times = medians()
    canvas = Canvas(880, 370, "All-reduce of bfloat16 on 2 x H200 in a CUDA graph: times as multiples of Beeline's")
    title = "bfloat16 all-reduce in a CUDA graph, 2 x H200: time as a multiple of Beeline's, whose µs stand below"
    canvas.text(20, 26, title, "start")
    for multiple in (1, 2):
        canvas.line((LEFT - 6, BOTTOM - UNIT * multiple), (870, BOTTOM - UNIT * multiple), dashed=True)
        canvas.text(LEFT - 12, BOTTOM - UNIT * multiple + 4, f"{multiple}", "end", True)
    for group, (name, size) in enumerate(SIZES.items()):
        left, ours = LEFT + GROUP * group, times["graph/automatic", size]
        for place, (methods, kind) in enumerate(METHODS.values()):
            height = UNIT * min(times[one, size] for one in methods if (one, size) in times) / ours
            canvas.box(left + BAR * place, BOTTOM - height, BAR - 3, height, kind=kind)
        canvas.text(left + 2 * BAR, BOTTOM + 20, f"{name}: {ours:.3g} µs")
    canvas.line((LEFT - 6, BOTTOM), (870, BOTTOM))
    for place, (name, (_, kind)) in enumerate(METHODS.items()):
        canvas.box(LEFT + 150 * place, 342, 14, 14, kind=kind)
        canvas.text(LEFT + 22 + 150 * place, 354, name, "start", True)
    return canvas


def medians() -> dict[tuple[str, int], float]:
    """Microseconds by method and bytes; of several settings the quickest."""
    found: dict[tuple[str, int], float] = {}
    for line in (Path(__file__).resolve().parents[2] / RECORD).read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if one["event"] == "result" and one.get("median") is not None:
            key = (one["method"], one["bytes"])
            found[key] = min(one["median"], found.get(key, one["median"]))
    return found
