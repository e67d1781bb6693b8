# SPDX-License-Identifier: Apache-2.0
"""Calls under way, as torch.distributed waits for them."""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from datetime import timedelta

import torch
import torch.distributed as dist

import beeline
from beeline.torch_tensors import Tensors


class BeelineWork(dist.Work):
    """A call under way on the group's stream, or one that is over."""

    def __init__(
        self, outputs: Tensors, done: torch.cuda.Event | None = None, device: torch.device | None = None
    ) -> None:
        super().__init__()
        self._outputs = list(outputs)
        self._done = done
        self._device = device
        # A future of torch's records what it waits for on the current stream: this is made on the group's.
        gpus = {output.device for output in outputs if output.is_cuda}
        self._future = torch.futures.Future(devices=list(gpus) or None)
        self._future.set_result(self._outputs)

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self._done is not None:
            self._done.wait(torch.cuda.current_stream(self._device))
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._done is None or self._done.query()

    def is_success(self) -> bool:
        return self.is_completed()

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def get_future(self) -> torch.futures.Future:
        return self._future


class BeelineMessage(BeelineWork):
    """A message under way on the stream of its peer and direction."""

    def __init__(
        self,
        outputs: Tensors,
        source: int,
        done: torch.cuda.Event | None = None,
        device: torch.device | None = None,
        arrival: beeline.Event | None = None,
    ) -> None:
        super().__init__(outputs, done, device)
        self._source = source
        self._arrival = arrival  # of a host rank's stream

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self._arrival is not None:
            # Every wait in it has the world's deadline; torch's 0 is no time-out.
            self._arrival.wait(timeout=timeout.total_seconds() if timeout else None)
        return super().wait(timeout)

    def is_completed(self) -> bool:
        return self._arrival.done if self._arrival is not None else super().is_completed()

    def get_future(self) -> torch.futures.Future:
        if self._arrival is not None:
            self._arrival.wait()
        return super().get_future()

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank


class MatchedMessage(BeelineWork):
    """A receive that waits for its turn to be matched with a message, by another thread."""

    def __init__(self, outputs: Tensors, match: Future[BeelineMessage]) -> None:
        super().__init__(outputs)
        self._match = match

    def wait(self, timeout: timedelta | None = None) -> bool:
        start = time.monotonic()
        try:
            matched = self._match.result(timeout.total_seconds() if timeout else None)  # it has the world's deadline
        except FutureTimeoutError:
            raise beeline.TimeoutError(f"no message for a receive without a source within {timeout}") from None
        left = timeout - timedelta(seconds=time.monotonic() - start) if timeout else None
        return matched.wait(None if left is None else max(left, timedelta(microseconds=1)))

    def is_completed(self) -> bool:
        return self._match.done() and (self._match.exception() is not None or self._match.result().is_completed())

    def get_future(self) -> torch.futures.Future:
        return self._match.result().get_future()

    def source_rank(self) -> int:
        return self._match.result().source_rank()

    _source_rank = source_rank
