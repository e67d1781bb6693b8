# SPDX-License-Identifier: Apache-2.0
"""Output by a separate thread, so that a command handles signals even while a reader does not empty its pipe."""

from __future__ import annotations

import os
import threading
import time
from collections import deque

MOST_PENDING = 16 << 20  # bytes


class Outlet:
    """Writes to a descriptor, in a thread, in the order of the calls."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._changed = threading.Condition()
        self._texts: deque[bytes] = deque()
        self._pending = 0  # bytes, including those being written
        self._problem: str | None = None
        self._is_closed = False  # by the reader
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def problem(self) -> str | None:
        """Why text was not written, except for a closed reader; None: all text was, or may still be, written."""
        return self._problem

    def write(self, text: str) -> None:
        """Returns at once. Text after a problem is dropped."""
        data = text.encode(errors="replace")
        with self._changed:
            if self._problem is not None or self._is_closed:
                return
            if self._pending + len(data) > MOST_PENDING:
                self._problem = f"its reader has not taken {self._pending} bytes"
                return
            self._texts.append(data)
            self._pending += len(data)
            self._changed.notify_all()

    def finish(self, seconds: float | None = None) -> bool:
        """Waits until all text is written; with `seconds`, only while some text is written in each period of that
        length.
        Signal handlers run meanwhile. Returns False if text is left."""
        with self._changed:
            end, before = time.monotonic() + (seconds or 0), self._pending
            while self._pending > 0:
                if self._pending < before:
                    end, before = time.monotonic() + (seconds or 0), self._pending
                if seconds is not None and time.monotonic() >= end:
                    return False
                self._changed.wait(0.1)
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._texts:
                    self._changed.wait()
                data = self._texts[0]
            written, problem = 0, None
            try:
                written = os.write(self._descriptor, data[: 1 << 16])
            except BlockingIOError:  # another process that shares the descriptor made it non-blocking
                time.sleep(0.01)
            except OSError as error:
                problem = error
            with self._changed:
                self._pending -= written
                self._texts.popleft()
                if data[written:] and problem is None:
                    self._texts.appendleft(data[written:])
                if problem is not None:
                    self._texts.clear()
                    self._pending = 0
                    self._is_closed = isinstance(problem, BrokenPipeError)
                    self._problem = None if self._is_closed else problem.strerror
                self._changed.notify_all()
