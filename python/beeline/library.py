# SPDX-License-Identifier: Apache-2.0
"""The library: the contents of the extension module, and functions that use them."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from beeline import __version__

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
    if _beeline._version() != __version__:
        raise ImportError(f"the module is of version {_beeline._version()}, the package of version {__version__}")
    from beeline._beeline import (  # noqa: F401 (those of beeline.energy)
        Choice,
        Collectives,
        Component,
        ComponentEnergy,
        Device,
        Event,
        HybridTransfers,
        Measured,
        Memory,
        Messages,
        Meter,
        Object,
        PutBatch,
        RankHealth,
        Sample,
        Signals,
        StagedChannel,
        Stream,
        Team,
        Window,
        World,
        read_file,
        write_file,
    )
except (AttributeError, ImportError) as problem:
    raise ImportError(
        f"{_beeline.__file__}, beeline's extension module, is of another version than the package: build or install it"
        f" again, in a checkout with tools/build ({problem})"
    ) from problem

from beeline.errors import AbortedError, PeerDiedError

__all__ = [
    "Choice", "Collectives", "Device", "Event", "HybridTransfers", "Memory", "Messages", "Object", "PutBatch",
    "RankHealth", "Signals", "StagedChannel", "Stream", "Team", "World", "read_file", "run", "write_file",
]  # fmt: skip

Result = TypeVar("Result")


def _end_worlds() -> None:
    """When a program ends by an exception, aborts its worlds: otherwise other ranks would wait for it."""
    error = getattr(sys, "last_value", None)
    if error is None:
        return _beeline._end_worlds("")
    try:
        reason = f"{type(error).__name__}: {error}"
    except Exception:  # its __str__ raises
        reason = f"{type(error).__name__}, whose text cannot be made"
    _beeline._end_worlds(reason)


atexit.register(_end_worlds)


_RETURN_S = 5.0  # after the deadline, for a rank to return after another has failed


def _join(running: dict[int, threading.Thread], has_failed: threading.Event, limit_s: float) -> str:
    """Waits for the ranks' threads, after a failure only for `limit_s`; describes the ranks that still run."""
    end = float("inf")
    for thread in running.values():
        while thread.is_alive() and time.monotonic() < end:
            thread.join(0.05 if has_failed.is_set() else 0.2)
            if has_failed.is_set() and end == float("inf"):
                end = time.monotonic() + limit_s
    left = [str(rank) for rank, thread in running.items() if thread.is_alive()]
    return f"rank {left[0]}" if len(left) == 1 else f"ranks {', '.join(left)}" if left else ""


def _cause_of(failures: list[BaseException]) -> BaseException:
    """The first failure that is not the consequence of another rank's end: the cause may come later in the list."""
    return next((each for each in failures if not isinstance(each, AbortedError | PeerDiedError)), failures[0])


def _note(error: BaseException, text: str) -> None:
    """Adds a line to an exception, as `add_note` does from Python 3.11 on."""
    if hasattr(error, "add_note"):
        error.add_note(text)
    else:
        error.__notes__ = [*getattr(error, "__notes__", []), text]  # type: ignore[attr-defined]


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
    exception that is no consequence of another is raised here. A rank that has not returned by the deadline and 5 s
    after another rank's failure is left behind, and named in the exception's notes. Without `device` they are host
    ranks; the other arguments are those of `World.create`. Python runs one thread at a time: for trying things out and
    for tests, not for speed.
    """
    threads = _beeline._ThreadRanks(ranks)
    limit_s = threads.deadline_s(deadline_s) + _RETURN_S
    results: dict[int, Result] = {}
    failures: list[BaseException] = []
    has_failed = threading.Event()

    def rank_main(rank: int) -> None:
        try:
            with threads.join(rank, device, deadline_s, heap_bytes) as world:
                results[rank] = function(world)
        except SystemExit as problem:  # otherwise the program would end as if it had succeeded
            text = f"rank {rank} called sys.exit({problem.code!r}): a rank that is a thread ends by returning"
            failures.insert(0, AbortedError(text, rank))
            has_failed.set()
        except BaseException as problem:
            failures.append(problem)
            has_failed.set()

    # The threads are daemons, so that a rank that never returns does not keep the program from ending.
    running = {
        rank: threading.Thread(target=rank_main, args=(rank,), name=f"rank {rank}", daemon=True)
        for rank in range(ranks)
    }
    for thread in running.values():
        thread.start()
    stuck = _join(running, has_failed, limit_s)
    if failures:
        cause = _cause_of(failures)
        if stuck:
            _note(cause, f"{stuck} did not return within {limit_s:g} s of this: left behind")
        raise cause
    return [results[rank] for rank in range(ranks)]
