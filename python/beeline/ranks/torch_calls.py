# SPDX-License-Identifier: Apache-2.0
"""One rank of the measurement of torch's eager collectives: by Beeline, and by NCCL on GPUs or gloo on host ranks.

python -m beeline.ranks.torch_calls VALUES: as JSON {"operations": [...], "sizes": [bytes, ...], "type": "bfloat16"}

Results, from rank 0, say where the time of a call goes, in us, each on the slowest rank:
  median       back to back, until the last one is over
  call_us      until the call returns: Python, the back end and the launch
  launch_us    of that, what Beeline's extension takes; of others None
  transfer_us  by the GPU's clock, from one call's end to the next one's; on host ranks None
  wait_us      from the last call's return to its end
  first_us     the first call of this size
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

import beeline
from beeline.ranks.records import Record, emit, everyones, first_line, lacking, result, run_rank
from beeline.torch_backend import last_transfer, make_store

LIMIT_S, DEADLINE_S = 400, 60
SAMPLES, MOST_CALLS, SAMPLE_BYTES = 15, 100, 1 << 30
OPERATIONS = ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single")
PARTS = ("median", "call_us", "launch_us", "transfer_us", "wait_us", "first_us")
Part = dict[str, float | None]


class TimedCalls:
    """The extension's part of a group, with the time that is spent in it."""

    def __init__(self, calls: Any) -> None:
        self._calls, self.ns = calls, 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._calls, name)

        def timed(*arguments: Any) -> Any:
            start = time.perf_counter_ns()
            try:
                return call(*arguments)
            finally:
                self.ns += time.perf_counter_ns() - start

        return timed


class Calls:
    """Calls of one operation on tensors of one size, by one group."""

    def __init__(self, group: dist.ProcessGroup, operation: str, size: int, how: SimpleNamespace) -> None:
        self._group, self._device, self._operation = group, how.device, operation
        ranks, rank = group.size(), group.rank()
        count = max(1, size // how.type.itemsize // ranks)  # of a rank's part
        self._whole = torch.full((ranks * count,), rank, dtype=how.type, device=how.device)
        self._other = torch.full_like(self._whole, -1)
        self._part = torch.full((count,), rank, dtype=how.type, device=how.device)
        self._count = max(4, min(MOST_CALLS, SAMPLE_BYTES // size))

    def call(self) -> None:
        """Repeated, it changes nothing: reductions take the maximum."""
        if self._operation == "all_reduce":
            dist.all_reduce(self._whole, dist.ReduceOp.MAX, self._group)
        elif self._operation == "all_gather_into_tensor":
            dist.all_gather_into_tensor(self._whole, self._part, self._group)
        elif self._operation == "reduce_scatter_tensor":
            dist.reduce_scatter_tensor(self._part, self._whole, dist.ReduceOp.MAX, self._group)
        else:
            dist.all_to_all_single(self._other, self._whole, group=self._group)

    def verified(self) -> bool:
        """Of the latest call."""
        ranks = torch.arange(self._group.size(), device=self._device)
        of_ranks = ranks.to(self._whole.dtype).repeat_interleave(self._part.numel())
        expected = {"all_gather_into_tensor": (self._whole, of_ranks), "all_to_all_single": (self._other, of_ranks)}
        result = self._part if self._operation == "reduce_scatter_tensor" else self._whole
        got, wanted = expected.get(self._operation, (result, torch.full_like(result, self._group.size() - 1)))
        return bool((got == wanted).all())

    def sample(self) -> Part:
        """One batch of calls back to back."""
        start = time.perf_counter_ns()
        first, last = self._mark(), None
        for _ in range(self._count):
            self.call()
        last = self._mark()
        returned = time.perf_counter_ns()
        self.synchronize()
        over = time.perf_counter_ns()
        transfer = None if first is None else 1e3 * first.elapsed_time(last) / self._count
        return {
            "median": (over - start) / 1e3 / self._count, "call_us": (returned - start) / 1e3 / self._count,
            "launch_us": self._in_extension(), "transfer_us": transfer, "wait_us": (over - returned) / 1e3,
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

    def _in_extension(self) -> float | None:
        calls = getattr(self._group, "_calls", None)
        if calls is None:
            return None
        self._group._calls = timed = TimedCalls(calls)
        for _ in range(self._count):
            self.call()
        self._group._calls = calls
        self.synchronize()
        return timed.ns / 1e3 / self._count


def main() -> None:
    values = json.loads(sys.argv[1])
    options = SimpleNamespace(operations=OPERATIONS, sizes=[1 << 10, 1 << 20], type="bfloat16")
    options.__dict__.update(values)
    run_rank(lambda world: measure(world, options), LIMIT_S)


def measure(world: beeline.World, options: SimpleNamespace) -> None:
    on_gpus = world.device.kind == "gpu"
    device = torch.device("cuda", world.device.index) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    how = SimpleNamespace(device=device, type=getattr(torch, options.type))
    dist.init_process_group(
        "beeline", store=make_store(world), rank=world.rank, world_size=world.size, pg_options=world,
        timeout=timedelta(seconds=DEADLINE_S),
    )  # fmt: skip
    shared = on_gpus and len({each.uuid for each in world.devices}) < world.size
    peer = "nccl" if on_gpus else "gloo"
    groups: dict[str, Any] = {"beeline": dist.group.WORLD}
    groups[peer] = "NCCL refuses ranks that share a GPU" if shared else dist.new_group(backend=peer)
    for operation in options.operations:
        for size in options.sizes:
            for name, group in groups.items():
                head = result(operation, f"torch/{name}", size, world.size) | {"settings": {"type": options.type}}
                emit(world, head | measure_one(world, group, (operation, size, how)))
    dist.destroy_process_group()


def measure_one(world: beeline.World, group: Any, what: tuple[str, int, SimpleNamespace]) -> Record:
    figures = ("unit", *PARTS, "samples", "last_transfer", "verified")
    if isinstance(group, str):
        return lacking(group, figures)
    calls = Calls(group, *what)
    world.barrier()
    start = time.perf_counter_ns()
    try:
        calls.call()
        calls.synchronize()
    except RuntimeError as error:  # the same on all ranks: gloo lacks some types and operations
        return lacking(first_line(error), figures)
    first_us = (time.perf_counter_ns() - start) / 1e3
    verified = calls.verified()
    samples = []
    for _ in range(SAMPLES):
        world.barrier()
        samples.append(calls.sample())
    mine = {part: median([each[part] for each in samples]) for part in samples[0]} | {"first_us": first_us}
    all_of_them = everyones(world, mine)
    slowest = {part: most([each[part] for each in all_of_them]) for part in PARTS}
    own = isinstance(group, beeline.torch_backend.BeelineProcessGroup)
    return {"unit": "us", **slowest, "samples": samples, "last_transfer": last_transfer(group) if own else None} | {
        "verified": all(everyones(world, verified))
    }


def median(numbers: list[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return statistics.median(known) if known else None


def most(numbers: list[float | None]) -> float | None:
    return max((number for number in numbers if number is not None), default=None)


if __name__ == "__main__":
    main()
