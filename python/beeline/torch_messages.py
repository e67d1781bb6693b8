# SPDX-License-Identifier: Apache-2.0
"""Messages between the ranks of a world, as torch.distributed sends and receives them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch

import beeline
from beeline.torch_streams import take_stream
from beeline.torch_tensors import as_bytes
from beeline.torch_work import BeelineMessage, MatchedMessage

POLL_S = 20e-6  # between two looks for a message from any rank


class Matcher:
    """A thread that makes calls in their order. The program's end does not wait for it, as for a pool's threads."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], BeelineMessage], Future[BeelineMessage]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="beeline-messages", daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], BeelineMessage]) -> Future[BeelineMessage]:
        result: Future[BeelineMessage] = Future()
        self._calls.put((call, result))
        return result

    def finish(self) -> None:
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (order := self._calls.get()) is not None:
            call, result = order
            try:
                result.set_result(call())
            except Exception as problem:
                result.set_exception(problem)


class TorchMessages:
    """Messages of one rank, on a stream for each peer and direction: those between two ranks keep their order.

    Receives from any rank are matched with messages by a thread. Receives that follow one that is not matched yet queue
    behind it on that thread, so that all are matched in the order of the calls.
    """

    def __init__(self, world: beeline.World, device: torch.device | None, record: Callable[[], Any]) -> None:
        """Collective over the world.

        device  the GPU of this rank; None: a host rank
        record  the end of what torch's current stream has been given
        """
        self._record = record
        self._world = world
        self._device = device
        self._messages = beeline.Messages(world)
        self._streams: dict[tuple[str, int], tuple[beeline.Stream, torch.cuda.Stream | None]] = {}
        self._arrivals: dict[int, beeline.Event] = {}  # the last receive of each peer, on a host rank
        self._matcher: Matcher | None = None
        self._last_match: Future[BeelineMessage] | None = None
        self._is_over = False
        self._looks = 0

    def start(self, direction: str, tensor: torch.Tensor, peer: int, source: int) -> BeelineMessage | MatchedMessage:
        """Sends to, or receives from, rank `peer` of the world, which the caller's group calls `source`."""
        if direction == "receive" and self._last_match is not None and not self._last_match.done():
            return self._match(tensor, lambda: self._start(direction, tensor, peer, source))
        return self._start(direction, tensor, peer, source)

    def receive_from_any(self, tensor: torch.Tensor, peers: Sequence[int]) -> MatchedMessage:
        """Receives the first message that comes from one of `peers`: a group's members, as the world calls them."""
        if self._device is not None:
            raise beeline.UnavailableError(
                "on a GPU, recv needs a source: the CPU does not poll for messages in the GPU's memory",
                self._world.rank,
            )
        return self._match(tensor, lambda: self._start_from_any(tensor, peers))

    def finish(self) -> None:
        """Waits for what was started; receives from any rank that no message has matched fail."""
        self._is_over = True
        if self._matcher is not None:
            self._matcher.finish()
        for stream, _ in self._streams.values():
            self._world.synchronize(stream)
        self._streams.clear()

    def _match(self, tensor: torch.Tensor, start: Callable[[], BeelineMessage]) -> MatchedMessage:
        if self._matcher is None:
            self._matcher = Matcher()
        self._last_match = self._matcher.submit(start)
        return MatchedMessage([tensor], self._last_match)

    def _start_from_any(self, tensor: torch.Tensor, peers: Sequence[int]) -> BeelineMessage:
        """Looks at the peers in turn: none is passed over because others send all the time."""
        limit = time.monotonic() + self._world.deadline_s
        others = [peer for peer in peers if peer != self._world.rank]
        while time.monotonic() < limit and not self._is_over:
            self._world.check()
            for _ in others:
                self._looks += 1
                peer = others[self._looks % len(others)]
                if self._has_message(peer):
                    return self._start("receive", tensor, peer, peers.index(peer))
            time.sleep(POLL_S)
        what = f"receive from any of ranks {others}: no message"
        if self._is_over:
            raise beeline.AbortedError(f"{what} until the group was destroyed", self._world.rank)
        raise beeline.DeadlineError(f"{what} within {self._world.deadline_s:g} s", self._world.rank)

    def _has_message(self, peer: int) -> bool:
        """Whether the next message of `peer` is there for a receive that is yet to be started."""
        arrival = self._arrivals.get(peer)
        return (arrival is None or arrival.done) and self._messages.probe(peer)

    def _start(self, direction: str, tensor: torch.Tensor, peer: int, source: int) -> BeelineMessage:
        data = as_bytes(tensor)
        if self._world.failed:
            self._world.check()
        if (direction, peer) not in self._streams:
            self._streams[direction, peer] = self._make_stream()
        stream, on = self._streams[direction, peer]
        start = getattr(self._messages, direction)
        if on is None:
            start(data, peer, stream=stream)
            arrival = stream.record()
            if direction == "receive":
                self._arrivals[peer] = arrival
            return BeelineMessage([tensor], source, arrival=arrival)
        device = on.device
        on.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(on):
            start(data, peer, stream=stream)
            tensor.record_stream(on)
            stream.let_go()  # torch keeps its memory until the stream has passed here
            return BeelineMessage([tensor], source, self._record(), on)

    def _make_stream(self) -> tuple[beeline.Stream, torch.cuda.Stream | None]:
        if self._device is None:
            return self._world.make_stream(), None
        on = take_stream(self._device)
        return self._world.adopt_stream(on.cuda_stream), on
