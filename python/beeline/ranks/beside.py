# SPDX-License-Identifier: Apache-2.0
"""All-reduces on a stream of high priority, at the same time as products of matrices on another stream of the GPU.

On each stream the host stays a few calls ahead of the GPU, with an event after each call. Products go on until the last
all-reduce is over; only products that ended between the first and the last all-reduce count. All-reduces wait for each
other inside kernels: on a stream of high priority their blocks become resident as soon as any block of a product ends.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

import beeline
from beeline.ranks.names import NCCL
from beeline.ranks.records import everyones
from beeline.torch_backend import make_store

DEADLINE_S = 60.0  # for every wait for the GPU
SAMPLE_MS = 150.0  # of all-reduces alone, or products alone
AHEAD = 3
LEAST_CALLS, MOST_CALLS = 8, 500
HIGH_PRIORITY = -1
POLL_S = 20e-6
SWITCH_S = 100e-6  # time slice of a Python thread


class Queue:
    """Calls on one stream, with an event after each call."""

    def __init__(self, stream: torch.cuda.Stream, call: Callable[[], None]) -> None:
        self.stream, self._call = stream, call
        self.events: list[torch.cuda.Event] = []
        self._over = 0

    def step(self) -> None:
        """Makes a call as soon as at most `AHEAD` calls are pending."""
        self.wait(AHEAD)
        with torch.cuda.stream(self.stream):
            self._call()
            event = torch.cuda.Event(enable_timing=True)
            event.record()
        self.events.append(event)

    def wait(self, under_way: int = 0) -> None:
        """Waits until at most `under_way` calls are pending."""
        deadline = time.monotonic() + DEADLINE_S
        while len(self.events) - self._over > under_way:
            if self.events[self._over].query():
                self._over += 1
            elif time.monotonic() > deadline:
                raise TimeoutError(f"call {self._over} on a stream was not over after {DEADLINE_S:.0f} s")
            else:
                time.sleep(POLL_S)

    def times(self, start: torch.cuda.Event) -> list[float]:
        """When each call was over, in ms after `start`."""
        return [start.elapsed_time(event) for event in self.events]


class Products:
    """C = A B, driven by its own thread; handles and workspace are made beforehand."""

    def __init__(self, size: int) -> None:
        self.floating_operations = 2.0 * size**3
        self._left, self._right = (torch.randn(size, size, device="cuda").bfloat16() for _ in range(2))
        self._product = torch.empty_like(self._left)
        self._stream = torch.cuda.Stream()
        self._gpu = torch.cuda.current_device()
        self._driver = ThreadPoolExecutor(max_workers=1, initializer=torch.cuda.set_device, initargs=(self._gpu,))
        torch.cuda.synchronize()
        self.about_ms = self.alone(5)

    def close(self) -> None:
        self._driver.shutdown()

    def alone(self, count: int) -> float:
        """Time in ms of one product, among `count` one after the other."""
        queue = self._queue()

        def run() -> None:
            for _ in range(count + 1):
                queue.step()
            queue.wait()

        self._driver.submit(run).result()
        return queue.events[0].elapsed_time(queue.events[-1]) / count

    @contextmanager
    def going_on(self) -> Iterator[Queue]:
        """Inside, products follow each other; the first is over on entry, the last after exit."""
        queue, started, stop = self._queue(), threading.Event(), threading.Event()

        def run() -> None:
            try:
                queue.step()
                queue.wait()
                started.set()
                while not stop.is_set():
                    queue.step()
                queue.wait()
            finally:
                started.set()

        running = self._driver.submit(run)
        started.wait()
        try:
            yield queue
        finally:
            stop.set()
        running.result()

    def rate(self, ms: float) -> float:
        """TFLOP/s of a product that takes `ms`."""
        return self.floating_operations / ms / 1e9

    def _queue(self) -> Queue:
        return Queue(self._stream, lambda: torch.mm(self._left, self._right, out=self._product))


class Calls:
    """All-reduces of one method."""

    def __init__(self, bench: Bench, call: Callable[[], Any], vectors: tuple[Any, Any], settings: dict[str, Any]):
        self._world, self._products, self._stream, self._call = bench.world, bench.products, bench.torch_stream, call
        self._source, self._destination = vectors
        self.settings = settings
        for _ in range(2):  # code that is loaded at first use is loaded before anything waits in a kernel
            self._alone(2)
        wanted = everyones(self._world, round(SAMPLE_MS / self._alone(5)))
        self._count = max(LEAST_CALLS, min(MOST_CALLS, max(wanted)))

    def sample(self) -> dict[str, float]:
        """Measures each alone, then both at the same time."""
        self._world.barrier()
        product_ms = self._products.alone(max(LEAST_CALLS, round(SAMPLE_MS / self._products.about_ms)))
        alone_ms = self._alone(self._count)
        beside_ms, product_beside_ms = self._beside()
        return {
            "allreduce_alone_us": 1e3 * alone_ms, "allreduce_beside_us": 1e3 * beside_ms,
            "matmul_alone_tflops": self._products.rate(product_ms),
            "matmul_beside_tflops": self._products.rate(product_beside_ms),
        }  # fmt: skip

    def verify(self) -> bool:
        """Whether one call with fresh data, at the same time as products, is right on this rank."""
        ranks = self._world.size
        self._destination.zero_()
        self._source.fill_(self._world.rank + 1)
        torch.cuda.synchronize()
        self._world.barrier()
        with self._products.going_on():
            self._run(1)
        right = bool((self._destination == ranks * (ranks + 1) // 2).all())
        self._source.zero_()  # otherwise repeated sums in place would grow
        torch.cuda.synchronize()
        return right

    def _run(self, count: int) -> Queue:
        queue = Queue(self._stream, self._call)
        for _ in range(count):
            queue.step()
        queue.wait()
        return queue

    def _alone(self, count: int) -> float:
        """Time in ms of a call without products."""
        self._world.barrier()
        events = self._run(count + 1).events
        return events[0].elapsed_time(events[-1]) / count

    def _beside(self) -> tuple[float, float]:
        """Times in ms of a call and of a product, at the same time."""
        start = torch.cuda.Event(enable_timing=True)
        start.record()
        self._world.barrier()
        with self._products.going_on() as products:
            calls = self._run(self._count + 1).times(start)
        inside = [moment for moment in products.times(start) if calls[0] <= moment <= calls[-1]]
        if len(inside) < 3:
            raise RuntimeError(f"only {len(inside)} products ended beside {self._count} all-reduces: take smaller ones")
        return (calls[-1] - calls[0]) / self._count, (inside[-1] - inside[0]) / (len(inside) - 1)


class Bench:
    """The common parts of the methods on this rank: streams, vectors in the heap, and the products."""

    def __init__(self, world: beeline.World, size: int, type_name: str, matrix: int) -> None:
        torch.cuda.set_device(world.device.index)
        sys.setswitchinterval(SWITCH_S)
        self.world = world
        self.torch_stream = torch.cuda.Stream(priority=HIGH_PRIORITY)
        self._stream = world.adopt_stream(self.torch_stream.cuda_stream)
        self._collectives = beeline.Collectives(world)
        self._type = type_name
        self._count = size // getattr(torch, type_name).itemsize
        self._source, self._destination = (world.allocate(self._count, type_name) for _ in range(2))
        self.products = Products(matrix)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *error: object) -> None:
        self.products.close()
        if distributed.is_initialized() and error[0] is None:
            distributed.destroy_process_group()

    def open(self, method: str, blocks: int) -> Calls:
        """Collective. Raises UnavailableError if these ranks do not have the method."""
        return self._nccl() if method == NCCL else self._own(method.removeprefix("stream/"), blocks)

    def _own(self, algorithm: str, blocks: int) -> Calls:
        source, destination, collectives = self._source, self._destination, self._collectives
        how: dict[str, Any] = {"algorithm": algorithm, "blocks": blocks}
        choice = collectives.choice("allreduce", self._count, self._type, **how)
        settings = {"algorithm": choice.algorithm}
        settings |= {} if choice.blocks is None else {"blocks": choice.blocks}
        vectors = torch.from_dlpack(source), torch.from_dlpack(destination)
        return Calls(
            self, lambda: collectives.allreduce(destination, source, stream=self._stream, **how), vectors, settings
        )

    def _nccl(self) -> Calls:
        """NCCL through torch, in place, on its own stream of high priority."""
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # for a fair comparison: no method uses switch multicast
        how = distributed.ProcessGroupNCCL.Options()
        how.is_high_priority_stream = True
        distributed.init_process_group(
            "nccl", store=make_store(self.world), rank=self.world.rank, world_size=self.world.size, pg_options=how,
            timeout=timedelta(seconds=DEADLINE_S),
        )  # fmt: skip
        tensor = torch.from_dlpack(self._destination)
        version = ".".join(map(str, torch.cuda.nccl.version()))
        return Calls(
            self, lambda: distributed.all_reduce(tensor, async_op=True).wait(), (tensor, tensor), {"version": version}
        )
