# SPDX-License-Identifier: Apache-2.0
"""Messages between the members of a group, as torch.distributed sends and receives them."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch

import beeline
from beeline.torch_streams import give_back, take_stream
from beeline.torch_tensors import in_a_row
from beeline.torch_work import BeelineMessage, MatchedMessage

TEAM_DEPTH = 4  # messages in flight to one receiver; the world's channel, the only channel of most programs, has more
POLL_S = 20e-6  # interval at which messages from any rank are polled


class Matcher:
    """A thread that makes calls in order. Unlike a pool's threads, it does not delay the program's end."""

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
    """Messages of one member, on one stream per peer and direction: messages between two members keep their order.

    A thread matches receives from any rank with messages. Receives that follow an unmatched one queue behind it on that
    thread, so that all are matched in the order of the calls.
    """

    def __init__(
        self,
        world: beeline.World,
        members: beeline.World | beeline.Team,
        device: torch.device | None,
        record: Callable[[], Any],
    ) -> None:
        """Collective over the members of `world`, a world or a team. Peers are numbered as its members.

        device  the GPU of this rank; None: a host rank
        record  returns the end of all earlier work of torch's current stream
        """
        self._record = record
        self._world = world
        self._device = device
        self._rank = members.rank
        self._world_ranks = members.ranks if isinstance(members, beeline.Team) else list(range(members.size))
        self._messages = beeline.Messages(members, depth=0 if members is world else TEAM_DEPTH)
        self._streams: dict[tuple[str, int], tuple[beeline.Stream, torch.cuda.Stream | None]] = {}
        self._arrivals: dict[int, beeline.Event] = {}  # the last receive from each peer, on a host rank
        self._matcher: Matcher | None = None
        self._last_match: Future[BeelineMessage] | None = None
        self._is_over = False
        self._looks = 0

    def start(self, direction: str, tensor: torch.Tensor, peer: int, tag: int) -> BeelineMessage | MatchedMessage:
        """Sends to `peer`, or receives from it."""
        if direction == "receive" and self._last_match is not None and not self._last_match.done():
            return self._match(tensor, lambda: self._start(direction, tensor, peer, tag))
        return self._start(direction, tensor, peer, tag)

    def receive_from_any(self, tensor: torch.Tensor, tag: int) -> MatchedMessage:
        """Receives the first message that arrives from any other member."""
        if self._device is not None:
            raise beeline.UnavailableError(
                "on a GPU, recv needs a source: the CPU does not poll for messages in the GPU's memory",
                self._world.rank,
            )
        return self._match(tensor, lambda: self._start_from_any(tensor, tag))

    def finish(self) -> None:
        """Waits for all started messages; receives from any rank that are still unmatched fail."""
        self._is_over = True
        if self._matcher is not None:
            self._matcher.finish()
        for stream, _ in self._streams.values():
            self._world.synchronize(stream)
        if self._device is not None:
            for _, on in self._streams.values():
                give_back(on)
        self._streams.clear()

    def free(self) -> None:
        """Collective over the members, after `finish`."""
        self._messages.free()

    def _match(self, tensor: torch.Tensor, start: Callable[[], BeelineMessage]) -> MatchedMessage:
        if self._matcher is None:
            self._matcher = Matcher()
        self._last_match = self._matcher.submit(start)
        return MatchedMessage([tensor], self._last_match)

    def _start_from_any(self, tensor: torch.Tensor, tag: int) -> BeelineMessage:
        """Polls the other members in turn, so that a member that sends all the time does not starve the others."""
        limit = time.monotonic() + self._world.deadline_s
        others = [peer for peer in range(len(self._world_ranks)) if peer != self._rank]
        while time.monotonic() < limit and not self._is_over:
            self._world.check()
            for _ in others:
                self._looks += 1
                peer = others[self._looks % len(others)]
                if self._has_message(peer):
                    return self._start("receive", tensor, peer, tag)
            time.sleep(POLL_S)
        what = f"receive from any of ranks {[self._world_ranks[peer] for peer in others]}: no message"
        if self._is_over:
            raise beeline.AbortedError(f"{what} until the group was destroyed", self._world.rank)
        raise beeline.DeadlineError(f"{what} within {self._world.deadline_s:g} s", self._world.rank)

    def _has_message(self, peer: int) -> bool:
        """Whether the next message of `peer` has arrived for a receive that has not been started."""
        arrival = self._arrivals.get(peer)
        return (arrival is None or arrival.done) and self._messages.probe(peer)

    def _start(self, direction: str, tensor: torch.Tensor, peer: int, tag: int) -> BeelineMessage:
        data = in_a_row(tensor)
        if self._world.failed:
            self._world.check()
        if (direction, peer) not in self._streams:
            self._streams[direction, peer] = self._make_stream()
        stream, on = self._streams[direction, peer]
        start = getattr(self._messages, direction)
        if on is None:
            start(data, peer, stream=stream, tag=tag)
            arrival = stream.record()
            if direction == "receive":
                self._arrivals[peer] = arrival
            return BeelineMessage([tensor], peer, arrival=arrival)
        device = on.device
        on.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(on):
            start(data, peer, stream=stream, tag=tag)
            tensor.record_stream(on)
            stream.let_go()  # torch keeps the memory until the stream has reached this point
            return BeelineMessage([tensor], peer, self._record(), on)

    def _make_stream(self) -> tuple[beeline.Stream, torch.cuda.Stream | None]:
        if self._device is None:
            return self._world.make_stream(), None
        on = take_stream(self._device)
        return self._world.adopt_stream(on.cuda_stream), on
