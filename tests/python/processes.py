# SPDX-License-Identifier: Apache-2.0
"""Functions of tests about processes: which still exist, and whether something happens in time."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from pathlib import Path


def eventually(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether the condition becomes true in time. The limit is for a busy machine: success ends the wait at once."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def is_full(pipe: int) -> bool:
    """Whether a pipe, given by its writing end, accepts no more bytes."""
    return not select.select([], [pipe], [], 0)[1]


def state_of(pid: int) -> str:
    """The state from /proc: 'T' is stopped, 'Z' has ended. Empty: the process no longer exists."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def command_of(pid: int) -> bytes:
    """The words of its command line, each followed by a zero. Empty: the process no longer exists."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def processes_with(mark: str) -> list[int]:
    """Processes with `mark` in their environment: all that a marked launcher started, directly or not."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found
