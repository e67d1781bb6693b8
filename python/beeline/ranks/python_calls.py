# SPDX-License-Identifier: Apache-2.0
"""One rank of `beeline bench calls`, the part in Python: blocking calls, compared with mpi4py if MPI started the ranks,
and with torch if it is installed.

python -m beeline.ranks.python_calls VALUES: the values of the options of `beeline-bench calls --describe`, as JSON
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

import beeline
from beeline.ranks.accuracy_peers import Absent, mpi_ranks
from beeline.ranks.records import FIGURES, Record, emit, everyones, lacking, result, run_rank, summary, unavailable

LIMIT_S = 400
SAMPLES, SAMPLE_S = 15, 0.005
MPI = "mpi4py/host"
Call = Callable[[], Any]
Ways = Iterator[tuple[str, str, int, int, Callable[[], Call] | str]]


def main() -> None:
    options = SimpleNamespace(**json.loads(sys.argv[1]))
    run_rank(lambda world: measure(world, options), LIMIT_S)


def measure(world: beeline.World, options: SimpleNamespace) -> None:
    methods = set(options.methods)
    for ways in (own_ways(world, options.sizes), mpi_ways(world, options.sizes)):
        for operation, method, size, messages, make in ways:
            if method not in methods or operation not in options.operations:
                continue
            head = result(operation, method, size, world.size) | {"settings": {}, "seed": None, "baseline": None}
            call = make if isinstance(make, str) else make()
            emit(world, head | time_of(world, call, messages) | {"peer_of": peer_of(operation, method)})
    measure_torch(world, options)


def measure_torch(world: beeline.World, options: SimpleNamespace) -> None:
    methods = [method for method in options.methods if method.startswith("torch_eager/")]
    if methods and importlib.util.find_spec("torch") is not None:
        from beeline.ranks import torch_calls

        return torch_calls.measure(world, options)
    for method in methods:
        emit(world, result("allreduce", method, 0, world.size) | unavailable("torch is not installed"))


def peer_of(operation: str, method: str) -> str | None:
    own = {"message": "python/messages", "allreduce": "python/collectives"}
    return own.get(operation, "python/world") if method == MPI else None


def time_of(world: beeline.World, call: Call | str, messages: int) -> Record:
    """Times calls back to back, in batches, each with the slowest rank's time; a text says why there is no call."""
    if isinstance(call, str):
        return lacking(call, FIGURES) | {"samples": []}
    world.barrier()
    start = time.perf_counter()
    for _ in range(10):
        call()
    each = (time.perf_counter() - start) / 10
    calls = max(1, int(world.allreduce(SAMPLE_S / max(each, 1e-9), "minimum")))
    samples = []
    for _ in range(SAMPLES):
        world.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - start) / calls / messages * 1e6)
    slowest = [max(batch) for batch in zip(*everyones(world, samples), strict=True)]
    return dict.fromkeys(FIGURES) | summary(slowest) | {"iterations": calls}


def own_ways(world: beeline.World, sizes: list[int]) -> Ways:
    """Operations, methods, sizes in bytes, the number of messages in a call, and the function that makes the call."""
    messages, collectives = cache(lambda: beeline.Messages(world)), cache(lambda: beeline.Collectives(world))

    def exchange(size: int) -> Call:
        return message(world, messages().send, messages().receive, size)

    def allreduce(size: int) -> Call:
        terms, total = vectors(world, size // 4, "float32")
        return partial(collectives().allreduce, total, terms)

    yield "empty", "python/call", 0, 1, lambda: partial(messages().is_eager, 8)
    yield "barrier", "python/world", 0, 1, lambda: world.barrier
    yield "allreduce_value", "python/world", 8, 1, lambda: partial(world.allreduce, 1.0)
    for size in sizes:
        yield "message", "python/messages", size, 2, partial(exchange, size)
        yield "put_signal", "python/signals", size, 2, partial(put_signal, world, size)
        if size >= 4:
            yield "allreduce", "python/collectives", size, 1, partial(allreduce, size)


def mpi_ways(world: beeline.World, sizes: list[int]) -> Ways:
    try:
        ranks = mpi_ranks(world)
        if world.device.kind == "gpu":
            raise Absent("this MPI is for memory of the host")
    except Absent as missing:
        for operation in ("barrier", "allreduce_value", "message", "allreduce"):
            yield operation, MPI, 0, 1, str(missing)
        return

    def allreduce(size: int) -> Call:
        terms, total = vectors(world, size // 4, "float32")
        return partial(ranks.Allreduce, terms, total)

    yield "barrier", MPI, 0, 1, lambda: ranks.Barrier
    yield "allreduce_value", MPI, 8, 1, lambda: partial(ranks.allreduce, 1.0)
    for size in sizes:
        yield "message", MPI, size, 2, partial(message, world, ranks.Send, ranks.Recv, size)
        if size >= 4:
            yield "allreduce", MPI, size, 1, partial(allreduce, size)


def vectors(world: beeline.World, count: int, dtype: str) -> tuple[Any, Any]:
    """Collective. Vectors in a rank's own memory: GPU memory if the rank has a GPU."""
    if world.device.kind == "gpu":
        return world.allocate(count, dtype), world.allocate(count, dtype)
    return np.ones(count, dtype), np.zeros(count, dtype)


def ping_pong(world: beeline.World, send: Callable[[int], Any], receive: Callable[[int], Any]) -> Call:
    """A round trip between ranks 0 and 1; the other ranks do nothing."""
    if world.rank == 0:
        return lambda: (send(1), receive(1))
    return (lambda: (receive(0), send(0))) if world.rank == 1 else lambda: None


def message(world: beeline.World, send: Callable[..., Any], receive: Callable[..., Any], size: int) -> Call:
    """A round trip of `size` bytes, by calls that take an array and a rank."""
    mine, got = vectors(world, size, "uint8")
    return ping_pong(world, partial(send, mine), partial(receive, got))


def put_signal(world: beeline.World, size: int) -> Call:
    signals, memory = beeline.Signals(world, 1), world.allocate(size)
    mine, _ = vectors(world, size, "uint8")
    sent, received = count(1), count(1)
    return ping_pong(
        world,
        lambda peer: signals.put_signal(memory, mine, 0, next(sent), peer),
        lambda peer: signals.wait(0, next(received), peer=peer),
    )


if __name__ == "__main__":
    main()
