# SPDX-License-Identifier: Apache-2.0
"""Pending calls, with torch.distributed's interface for waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from datetime import timedelta
from threading import Lock
from typing import Any

import torch
import torch.distributed as dist

import beeline
from beeline import torch_native
from beeline.torch_compilation import not_compiled
from beeline.torch_tensors import Tensors


def numbers_of(stream: torch.cuda.Stream | None) -> tuple[int, int, int] | None:
    """The numbers by which torch's C++ code identifies a stream."""
    return None if stream is None else (stream.stream_id, stream.device_index, stream.device_type)


def _future_of(result: list[torch.Tensor], devices: list[torch.device]) -> torch._C.Future:
    """A future like those of torch's own back ends. Its result is ready when the current stream has reached this
    point."""
    future = torch._C.Future(devices)
    future.set_result(result)
    return future


@not_compiled
class BeelineWork(dist.Work):
    """A call that is pending, complete, or in the order of torch's current stream."""

    def __init__(self, outputs: Tensors, end: Any = None, stream: torch.cuda.Stream | None = None) -> None:
        """`end` is on `stream` if that is not torch's current stream."""
        super().__init__()
        self._outputs = outputs
        self._end = end
        self._stream = stream

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self._end is not None:
            self._end.wait(timeout.total_seconds() if timeout else None)  # torch passes 0 for no time-out
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._end is None or self._end.query()

    def is_success(self) -> bool:
        return self.is_completed() and self._failure() is None

    def exception(self) -> beeline.Error | None:
        return self._failure() if self.is_completed() else None

    def _failure(self) -> beeline.Error | None:
        """The error of a call that is over. On a GPU the next call raises it."""
        if self._stream is None:
            try:
                self.wait()
            except beeline.Error as failure:
                return failure
        return None

    def result(self) -> list[torch.Tensor]:
        return list(self._outputs)

    def get_future(self) -> torch._C.Future:
        stream = self._stream
        if stream is None:
            self.wait()  # a host rank's call: nothing else would complete the future
        native = torch_native.in_use()
        if native is not None:
            return native.future(self.result(), numbers_of(stream))
        if stream is None:
            devices = {each.device for each in self._outputs if each.is_cuda}
            return _future_of(self.result(), list(devices))
        if torch._C._cuda_getDevice() != stream.device_index:
            with torch.cuda.stream(stream):
                return _future_of(self.result(), [stream.device])
        # The same without the part in Python, which takes longer than the call: DDP requests the future of each bucket,
        # on the thread that launches the backward pass.
        current = torch._C._cuda_getCurrentStream(stream.device_index)
        torch._C._cuda_setStream(stream.stream_id, stream.device_index, stream.device_type)
        try:
            return _future_of(self.result(), [stream.device])
        finally:
            torch._C._cuda_setStream(*current)


@not_compiled
class UnfinishedWork(BeelineWork):
    """A call of a host rank, which copies the results to their destinations when the call is over."""

    def __init__(self, outputs: Tensors, end: Any, finish: Callable[[], None]) -> None:
        super().__init__(outputs, end)
        self._finish: Callable[[], None] | None = finish
        self._lock = Lock()

    def wait(self, timeout: timedelta | None = None) -> bool:
        super().wait(timeout)
        with self._lock:
            if self._finish is not None:
                self._finish()
                self._finish = None
        return True

    def is_completed(self) -> bool:
        if not super().is_completed():
            return False
        self._failure()  # copies the results to their destinations
        return True


@not_compiled
class BarrierWork(BeelineWork):
    """A pending barrier, for which the CPU waits, as with other back ends."""

    def __init__(self, end: Any, stream: torch.cuda.Stream | None, wait_for_current: Callable[[], None]) -> None:
        super().__init__([], end, stream)
        self._wait_for_current = wait_for_current

    def wait(self, timeout: timedelta | None = None) -> bool:
        super().wait(timeout)
        self._wait_for_current()
        return True


@not_compiled
class BeelineMessage(BeelineWork):
    """A pending message on the stream of its peer and direction."""

    def __init__(
        self,
        outputs: Tensors,
        source: int,
        end: Any = None,
        stream: torch.cuda.Stream | None = None,
        arrival: beeline.Event | None = None,
    ) -> None:
        super().__init__(outputs, end, stream)
        self._source = source
        self._arrival = arrival  # of a host rank's stream

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self._arrival is not None:
            # Every wait of the receive has the world's deadline.
            self._arrival.wait(timeout=timeout.total_seconds() if timeout else None)
        return super().wait(timeout)

    def is_completed(self) -> bool:
        return self._arrival.done if self._arrival is not None else super().is_completed()

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank


@not_compiled
class MatchedMessage(BeelineWork):
    """A receive that another thread matches with a message when its turn comes."""

    def __init__(self, outputs: Tensors, match: Future[BeelineMessage]) -> None:
        super().__init__(outputs)
        self._match = match

    def wait(self, timeout: timedelta | None = None) -> bool:
        start = time.monotonic()
        try:
            matched = self._match.result(timeout.total_seconds() if timeout else None)  # with the world's deadline
        except FutureTimeoutError:
            raise beeline.TimeoutError(f"no message for a receive without a source within {timeout}") from None
        left = timeout - timedelta(seconds=time.monotonic() - start) if timeout else None
        return matched.wait(None if left is None else max(left, timedelta(microseconds=1)))

    def is_completed(self) -> bool:
        return self._match.done() and (self._match.exception() is not None or self._match.result().is_completed())

    def get_future(self) -> torch._C.Future:
        return self._match.result().get_future()

    def source_rank(self) -> int:
        return self._match.result().source_rank()

    _source_rank = source_rank
