# SPDX-License-Identifier: Apache-2.0
"""The library: what the extension module has, and what is built on it."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

try:
    from beeline import _beeline
except ImportError as problem:
    raise ImportError(
        f"beeline's library needs its extension module, which is not there for Python {sys.version_info.major}."
        f"{sys.version_info.minor} ({problem}). In a checkout run tools/setup, then tools/build: they need"
        " Python's headers (python3-dev) and nanobind. Elsewhere install with pip and"
        " -Ccmake.define.BEELINE_WITH_PYTHON=ON. The command line works without the module."
    ) from problem

try:
    from beeline._beeline import (  # noqa: F401 (those of beeline.energy)
        Choice,
        Collectives,
        Component,
        ComponentEnergy,
        Device,
        Event,
        Measured,
        Memory,
        Messages,
        Meter,
        RankHealth,
        Sample,
        Signals,
        StagedChannel,
        Stream,
        Team,
        Window,
        World,
    )
except ImportError as problem:
    raise ImportError(
        f"{_beeline.__file__}, beeline's extension module, is of another version than the package: build or install it"
        f" again, in a checkout with tools/build ({problem})"
    ) from problem

from beeline.errors import AbortedError

__all__ = [
    "Choice", "Collectives", "Device", "Event", "Memory", "Messages", "RankHealth", "Signals", "StagedChannel",
    "Stream", "Team", "World", "run",
]  # fmt: skip

Result = TypeVar("Result")


def _end_worlds() -> None:
    """A program that ends by an exception aborts its worlds: the others must not wait for it."""
    error = getattr(sys, "last_value", None)
    _beeline._end_worlds("" if error is None else f"{type(error).__name__}: {error}")


atexit.register(_end_worlds)


def run(
    ranks: int,
    function: Callable[[World], Result],
    *,
    device: str | None = "cpu",
    deadline_s: float | None = None,
    heap_bytes: int | None = None,
) -> list[Result]:
    """Calls `function(world)` on `ranks` ranks that are threads of this process; returns the results, by rank.

    The worlds are left at the end. An exception in one rank aborts the world, which ends the other ranks too; the first
    exception is raised here. Without `device` they are host ranks; the other arguments are those of `World.create`.
    Python runs one thread at a time: for trying things out and for tests, not for speed.
    """
    threads = _beeline._ThreadRanks(ranks)
    results: dict[int, Result] = {}
    failures: list[BaseException] = []

    def rank_main(rank: int) -> None:
        try:
            with threads.join(rank, device, deadline_s, heap_bytes) as world:
                results[rank] = function(world)
        except SystemExit as problem:  # it would end the program as if all had gone well
            text = f"rank {rank} called sys.exit({problem.code!r}): a rank that is a thread ends by returning"
            failures.insert(0, AbortedError(text, rank))
        except BaseException as problem:
            failures.append(problem)

    running = [threading.Thread(target=rank_main, args=(rank,), name=f"rank {rank}") for rank in range(ranks)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failures:
        raise failures[0]
    return [results[rank] for rank in range(ranks)]
