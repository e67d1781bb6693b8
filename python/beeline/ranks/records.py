# SPDX-License-Identifier: Apache-2.0
"""The output of measurements on ranks: JSON lines like those of beeline-bench, printed by rank 0."""

from __future__ import annotations

import datetime
import faulthandler
import json
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import beeline

Record = dict[str, Any]
FIGURES = (
    "unit", "median", "bus_gb_per_s", "relative_deviation", "iterations", "cpu_cores", "verified", "seed", "peer_of",
    "baseline", "ratio_to_baseline",
)  # fmt: skip


def run_rank(body: Callable[[beeline.World], None], limit_s: float, **options: Any) -> None:
    """Makes a world with these options for `body`. After a crash or the limit, a traceback shows where the rank is."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(limit_s, exit=True)
    with beeline.World.create(**options) as world:
        body(world)
    faulthandler.cancel_dump_traceback_later()


def emit(world: beeline.World, record: Record) -> None:
    if world.rank == 0:
        print(json.dumps(record), flush=True)


def environment(arguments: Sequence[str]) -> Record:
    """The beginning of a record's first line. It has no paths except the program's, because records are published."""
    from beeline.library import _beeline

    commit = _beeline._commit()
    return {
        "event": "environment", "schema_version": 1,
        "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit.removesuffix("-dirty") or None, "dirty": commit.endswith("-dirty") if commit else None,
        "arguments": [Path(one).name if one.startswith("/") else one for one in arguments],
        "host": {"cpu": _beeline._host_name(), "cores_online": os.cpu_count(),
                 "kernel": f"{platform.system()} {platform.release()}"},
    }  # fmt: skip


def result(operation: str, method: str, size: int, ranks: int) -> Record:
    """The first fields of every result of an available method."""
    return {
        "event": "result", "schema_version": 1, "operation": operation, "method": method, "bytes": size,
        "ranks": ranks, "available": True, "reason": None,
    }  # fmt: skip


def summary(samples: Sequence[float]) -> Record:
    """The statistics of times in us."""
    middle = statistics.median(samples)
    deviation = statistics.median(abs(one - middle) for one in samples) / middle
    return {"unit": "us", "median": middle, "relative_deviation": deviation, "samples": list(samples)}


def lacking(reason: str, figures: Sequence[str]) -> Record:
    """The other fields of a result, if the method is not available."""
    return {"available": False, "reason": reason, **dict.fromkeys(figures)}


def unavailable(reason: str) -> Record:
    """The same, with the fields of beeline-bench."""
    return lacking(reason, FIGURES) | {"samples": [], "settings": {}}


def everyones(world: beeline.World, mine: Any) -> list[Any]:
    """Collective. Every rank's `mine`, in rank order."""
    return [json.loads(other) for other in world.allgather(json.dumps(mine).encode())]


def first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
