# SPDX-License-Identifier: Apache-2.0
"""The part of `beeline bench calls` with torch's eager collectives: by Beeline, with ordinary tensors, with tensors of
its pool (`beeline_pool`) and with tensors asserted to be symmetric (`beeline_symmetric`), and by torch's own back ends.

Results divide the time of a call, in us; each part is that of the slowest rank:
  median       of calls back to back, until the last call is over
  single_us    of a single call, until it is over
  call_us      until the call returns: Python, the back end and the launch. The median of calls back to back, since the
               first calls of a batch find cold caches, as `single_us` does
  launch_us    the part of `call_us` that Beeline's extension takes; None for other back ends
  transfer_us  by the GPU's clock, from the end of one call to the end of the next; None on host ranks
  wait_us      from the return of the last call to its end
  first_us     the first call of this size
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

import beeline
from beeline import torch_native
from beeline.ranks.records import FIGURES, Record, emit, everyones, first_line, lacking, result, summary
from beeline.torch_backend import BeelineProcessGroup, last_transfer, make_store, mem_pool

DEADLINE_S = 60
BUILD_S = 200  # of the part in C++
SAMPLES, FEW_SAMPLES, LONG_S = 15, 5, 0.5  # fewer samples for calls that take longer altogether
LEAST_CALLS, MOST_CALLS, BATCH_S = 4, 100, 0.03
OPERATIONS = ("allreduce", "allgather", "reduce_scatter", "alltoall")
IN_POOL = ("beeline_pool", "beeline_symmetric")
PARTS = ("median", "single_us", "call_us", "launch_us", "transfer_us", "wait_us", "first_us")
Part = dict[str, float | None]


class TimedCalls:
    """The extension's part of a group without the part in C++, with the time that each call spends in it."""

    def __init__(self, calls: Any) -> None:
        self._calls, self.ns = calls, list[int]()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._calls, name)

        def timed(*arguments: Any) -> Any:
            start = time.perf_counter_ns()
            try:
                return call(*arguments)
            finally:
                self.ns.append(time.perf_counter_ns() - start)

        return timed


class Calls:
    """Calls of one operation on tensors of one size, by one group."""

    def __init__(self, group: dist.ProcessGroup, operation: str, size: int, how: SimpleNamespace) -> None:
        self._group, self._device, self._operation = group, how.device, operation
        ranks, rank = group.size(), group.rank()
        part = max(1, size // how.type.itemsize // ranks)
        whole = max(1, size // how.type.itemsize) if operation == "allreduce" else ranks * part
        with how.place:
            self._whole = torch.full((whole,), rank, dtype=how.type, device=how.device)
            self._part = torch.full((part,), rank, dtype=how.type, device=how.device)
            self._other = torch.full_like(self._whole if operation == "alltoall" else self._part, -1)
        self.bytes = self._whole.nbytes

    def call(self) -> None:
        """Makes the call. Repeating it changes nothing: reductions take the maximum."""
        if self._operation == "allreduce":
            dist.all_reduce(self._whole, dist.ReduceOp.MAX, self._group)
        elif self._operation == "allgather":
            dist.all_gather_into_tensor(self._whole, self._part, self._group)
        elif self._operation == "reduce_scatter":
            dist.reduce_scatter_tensor(self._part, self._whole, dist.ReduceOp.MAX, self._group)
        else:
            dist.all_to_all_single(self._other, self._whole, group=self._group)

    def verified(self) -> bool:
        """Whether the result of the latest call is right."""
        ranks = torch.arange(self._group.size(), device=self._device)
        of_ranks = ranks.to(self._whole.dtype).repeat_interleave(self._part.numel())
        expected = {"allgather": (self._whole, of_ranks), "alltoall": (self._other, of_ranks)}
        result = self._part if self._operation == "reduce_scatter" else self._whole
        got, wanted = expected.get(self._operation, (result, torch.full_like(result, self._group.size() - 1)))
        return bool((got == wanted).all())

    def single_us(self) -> float:
        """The time of a single call."""
        start = time.perf_counter_ns()
        self.call()
        self.synchronize()
        return (time.perf_counter_ns() - start) / 1e3

    def sample(self, count: int) -> Part:
        """Measures one batch of calls back to back, and one single call."""
        times = [time.perf_counter_ns()]
        start = times[0]
        first = self._mark()
        for _ in range(count):
            self.call()
            times.append(time.perf_counter_ns())
        last = self._mark()
        returned = time.perf_counter_ns()
        self.synchronize()
        over = time.perf_counter_ns()
        return {
            "median": (over - start) / 1e3 / count, "single_us": self.single_us(),
            "call_us": statistics.median(b - a for a, b in pairwise(times)) / 1e3,
            "launch_us": self._launch_us(count),
            "transfer_us": None if first is None else 1e3 * first.elapsed_time(last) / count,
            "wait_us": (over - returned) / 1e3,
        }  # fmt: skip

    def synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def _mark(self) -> Any:
        if self._device.type == "cpu":
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _launch_us(self, count: int) -> float | None:
        if not isinstance(self._group, BeelineProcessGroup):
            return None
        calls = self._group._calls
        native = torch_native.in_use()
        self._group._calls = timed = TimedCalls(calls)
        if native is not None:
            native.take_times_ns(self._group)
        for _ in range(count):
            self.call()
        self._group._calls = calls
        self.synchronize()
        return statistics.median(timed.ns if native is None else native.take_times_ns(self._group)) / 1e3


def measure(world: beeline.World, options: SimpleNamespace) -> None:
    """Makes torch's default process group, and measures those of `options.methods` that begin with `torch_eager/`."""
    on_gpus = world.device.kind == "gpu"
    device = torch.device("cuda", world.device.index) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    how = SimpleNamespace(device=device, type=getattr(torch, options.type))
    if torch_native.wanted() is None:
        compile_native_part()
    dist.init_process_group(
        "beeline", store=make_store(world), rank=world.rank, world_size=world.size, pg_options=world
    )  # fmt: skip
    names = [method.removeprefix("torch_eager/") for method in options.methods if method.startswith("torch_eager/")]
    groups = {name: group_of(world, name) for name in names}
    for operation in [one for one in OPERATIONS if one in options.operations]:
        for size in options.sizes:
            for name, group in groups.items():
                emit(world, measure_one(world, (name, group), operation, size, how))
                if on_gpus:
                    gc.collect()
                    torch.cuda.empty_cache()  # the pool's segments return to the heap, the other segments to the GPU
    dist.destroy_process_group()


def compile_native_part() -> None:
    """Compiles the C++ part now, so that no compiler runs during the calls."""
    try:
        torch_native.build(BUILD_S)
    except torch_native.Unavailable:
        os.environ[torch_native.SWITCH] = "0"


def group_of(world: beeline.World, backend: str) -> dist.ProcessGroup | str:
    """A group of all ranks, or a text that says why there is none."""
    if backend in IN_POOL and world.device.kind != "gpu":
        return "torch has memory pools for GPUs"
    if backend.startswith("beeline"):
        return dist.group.WORLD
    if backend == "nccl" and world.device.kind != "gpu":
        return "NCCL is for GPUs"
    if backend == "nccl" and len({each.uuid for each in world.devices}) < world.size:
        return "NCCL refuses ranks that share a GPU"
    return dist.new_group(backend=backend, timeout=timedelta(seconds=DEADLINE_S))


def measure_one(
    world: beeline.World, method: tuple[str, dist.ProcessGroup | str], operation: str, size: int, how: SimpleNamespace
) -> Record:
    name, group = method
    settings = {"type": str(how.type).removeprefix("torch."), "version": torch.__version__}
    head = result(operation, f"torch_eager/{name}", size, world.size) | {
        "settings": settings, "peer_of": None if name.startswith("beeline") else "torch_eager/beeline",
    }  # fmt: skip
    figures = [each for each in (*FIGURES, *PARTS[1:], "last_transfer") if each != "peer_of"]
    if isinstance(group, str):
        return head | lacking(group, figures) | {"samples": []}
    place: AbstractContextManager[Any] = nullcontext()
    if name in IN_POOL:
        place = torch.cuda.use_mem_pool(mem_pool(world))
    if isinstance(group, BeelineProcessGroup):
        group.symmetric = name == "beeline_symmetric"
    try:
        calls = Calls(group, operation, size, SimpleNamespace(**vars(how), place=place))
        world.barrier()
        first_us = calls.single_us()
    except RuntimeError as error:  # raised on all ranks: gloo lacks some types and operations
        return head | lacking(first_line(error), figures) | {"samples": []}
    verified = calls.verified()
    samples, count = sampled(world, calls)
    medians = {part: figure(statistics.median, [each[part] for each in samples]) for part in samples[0]}
    return head | dict.fromkeys(figures) | medians | summary([each["median"] for each in samples]) | {
        "bytes": calls.bytes, "iterations": count, "first_us": max(everyones(world, first_us)),
        "last_transfer": last_transfer(group) if name.startswith("beeline") else None,
        "verified": all(everyones(world, verified)),
    }  # fmt: skip


def sampled(world: beeline.World, calls: Calls) -> tuple[list[Part], int]:
    """Batches, each with the slowest rank's times, and the number of calls in a batch."""
    each_s = max(everyones(world, min(calls.single_us() for _ in range(LEAST_CALLS)))) / 1e6
    count = max(LEAST_CALLS, min(MOST_CALLS, int(BATCH_S / each_s)))
    mine = []
    for _ in range(SAMPLES if SAMPLES * count * each_s < LONG_S else FEW_SAMPLES):
        world.barrier()
        mine.append(calls.sample(count))
    of_ranks = zip(*everyones(world, mine), strict=True)
    return [{part: figure(max, [each[part] for each in ranks]) for part in ranks[0]} for ranks in of_ranks], count


def figure(of: Callable[[list[float]], float], numbers: list[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return of(known) if known else None
