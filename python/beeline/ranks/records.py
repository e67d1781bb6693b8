# SPDX-License-Identifier: Apache-2.0
"""What measurements on ranks print: JSON lines like those of beeline-bench, from rank 0."""

from __future__ import annotations

import json
from typing import Any

import beeline

Record = dict[str, Any]


def emit(world: beeline.World, record: Record) -> None:
    if world.rank == 0:
        print(json.dumps(record), flush=True)


def result(operation: str, method: str, size: int, ranks: int) -> Record:
    """The head of every result, of a method that is there."""
    return {
        "event": "result", "schema_version": 1, "operation": operation, "method": method, "bytes": size,
        "ranks": ranks, "available": True, "reason": None,
    }  # fmt: skip


def everyones(world: beeline.World, mine: Any) -> list[Any]:
    """Collective. What each rank passes, by rank."""
    return [json.loads(other) for other in world.allgather(json.dumps(mine).encode())]


def first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
