# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the library: one for each status with which an operation can fail."""

from __future__ import annotations

import builtins

__all__ = [
    "AbortedError",
    "DeadlineError",
    "Error",
    "InternalError",
    "InvalidArgumentError",
    "NoResourceError",
    "PeerDiedError",
    "TimeoutError",
    "UnavailableError",
    "UnreachableError",
]


class Error(RuntimeError):
    """A failure of Beeline.

    code  the status's name, as `deadline`
    rank  the rank on which it occurred; None: no rank yet
    """

    code = ""

    def __init__(self, message: str, rank: int | None = None) -> None:
        super().__init__(message)
        self.rank = rank

    def __reduce__(self) -> tuple[type[Error], tuple[str, int | None]]:
        return type(self), (str(self), self.rank)


class TimeoutError(Error, builtins.TimeoutError):
    """The call's own time-out passed; nothing is lost, and a repetition of the call continues it."""

    code = "timeout"


class NoResourceError(Error):
    """A queue, a table, a heap or the device is full."""

    code = "no_resource"


class DeadlineError(Error):
    """The deadline passed while waiting; the text names what was waited for."""

    code = "deadline"


class AbortedError(Error):
    """The team was aborted, by another member or by this one."""

    code = "aborted"


class UnreachableError(Error):
    """No path leads from the caller to this memory, or to this address; nothing was touched."""

    code = "unreachable"


class InvalidArgumentError(Error, ValueError):
    """Refused before anything was touched."""

    code = "invalid_argument"


class UnavailableError(Error):
    """This machine or build lacks what the operation needs."""

    code = "unavailable"


class PeerDiedError(Error):
    """A rank ended, gave up, or left the world before the others; the text names it."""

    code = "peer_died"


class InternalError(Error):
    """A failure below Beeline: driver, operating system."""

    code = "internal"


_CLASSES = {each.code: each for each in Error.__subclasses__()}


def class_of(code: str) -> type[Error]:
    """The exception that belongs to a status's name."""
    return _CLASSES.get(code, InternalError)
