# SPDX-License-Identifier: Apache-2.0
"""All-reduce by torch's symmetric memory, as JSON lines like beeline-bench's: `beeline bench collectives` runs it.

python -m beeline.torch_peer --ranks N --sizes BYTES,.. --type float32|bfloat16 [--gpus cuda:0,cuda:1]
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from beeline.ranks.records import first_line, result, unavailable

BATCH_NS = 2_000_000
WARM_UP = 4
LEAST_SAMPLES, MOST_SAMPLES, SAMPLES_PER_ROUND = 20, 60, 5
DEVIATION = 0.01
MOST_ONE_SHOT_BYTES = 4 << 20
WAIT_S, LIMIT_S = 60, 900  # of one wait of NCCL; of the whole program
Call = Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--type", choices=["float32", "bfloat16"], required=True)
    parser.add_argument("--gpus", default="")
    options = parser.parse_args()
    os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")  # for fairness: no method uses switch multicast
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    from torch import distributed, multiprocessing

    # The store is served by this process, on a port that the system chooses.
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    multiprocessing.spawn(run_rank, (options, store.port), nprocs=options.ranks)


def run_rank(rank: int, options: argparse.Namespace, port: int) -> None:
    import torch
    from torch import distributed

    faulthandler.enable()
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)  # a rank that hangs ends all ranks
    named = [entry for entry in options.gpus.removeprefix("cuda:").replace("cuda:", "").split(",") if entry]
    index = int(named[rank % len(named)]) if named and all(map(str.isdecimal, named)) else rank
    torch.cuda.set_device(index)
    distributed.init_process_group(
        "nccl", store=distributed.TCPStore("127.0.0.1", port, is_master=False), rank=rank, world_size=options.ranks,
        device_id=torch.device("cuda", index), timeout=timedelta(seconds=WAIT_S),
    )  # fmt: skip
    try:
        for size in map(int, options.sizes.split(",")):
            for algorithm in ("one_shot", "two_shot"):
                if algorithm == "two_shot" or size <= MOST_ONE_SHOT_BYTES:
                    Peer(rank, options, algorithm, size).report()
    finally:
        distributed.destroy_process_group()


def here() -> Any:
    import torch

    return torch.device("cuda", torch.cuda.current_device())


class Peer:
    """One algorithm for one size."""

    def __init__(self, rank: int, options: argparse.Namespace, algorithm: str, size: int) -> None:
        import torch
        from torch.distributed import _symmetric_memory as symmetric_memory
        from torch.distributed import group

        self.rank, self.ranks, self.algorithm, self.size = rank, options.ranks, algorithm, size
        self.type = options.type
        element = getattr(torch, options.type)
        self.vector = symmetric_memory.empty(size // element.itemsize, dtype=element, device=here())
        self.vector.zero_()
        self.group = group.WORLD.group_name
        symmetric_memory.rendezvous(self.vector, group=self.group)
        operations = torch.ops.symm_mem
        one_shot = algorithm == "one_shot"
        self.operation = operations.one_shot_all_reduce if one_shot else operations.two_shot_all_reduce_

    def call(self) -> Any:
        return self.operation(self.vector, "sum", self.group)

    def report(self) -> None:
        for control in ("stream", "graph"):
            record = result("allreduce", f"torch/{self.algorithm}/{control}", self.size, self.ranks)
            try:
                record |= self.measure(control)
            except RuntimeError as error:
                record |= unavailable(first_line(error))
            if self.rank == 0:
                print(json.dumps(record), flush=True)

    def measure(self, control: str) -> dict[str, Any]:
        import torch

        self.vector.zero_()  # otherwise repeated sums in place would grow
        calls = 1
        call: Call = self.call
        if control == "graph":
            calls = graph_calls(self.size)
            call = self.capture(calls)
        iterations = 1
        while True:
            took = min(self.time(call, iterations, 3))
            if took >= BATCH_NS / 2 or iterations >= 10_000:
                break
            iterations = min(int(min(iterations * BATCH_NS / max(took, 1), iterations * 16)) + 1, 10_000)
        samples: list[float] = []
        while not enough(samples):
            samples += [took / iterations / calls / 1e3 for took in self.time(call, iterations, SAMPLES_PER_ROUND)]
        seed = int(time.time()) & 0xFFFFFF
        seed = int(self.agreed(torch.tensor([float(seed)], device="cuda", dtype=torch.float64)))
        verified = self.verify(self.capture(1) if control == "graph" else self.call, control == "graph", seed)
        median = statistics.median(samples)
        return {
            "unit": "us", "median": median,
            "bus_gb_per_s": 2 * (self.ranks - 1) / self.ranks * self.size / median / 1e3,
            "relative_deviation": deviation(samples), "iterations": iterations, "samples": samples,
            "cpu_cores": None,
            "verified": verified, "seed": seed, "peer_of": f"{control}/automatic", "baseline": None,
            "ratio_to_baseline": None,
            "settings": {"control": control, "type": self.type, "algorithm": self.algorithm,
                         "version": torch.__version__},
        }  # fmt: skip

    def capture(self, calls: int) -> Call:
        import torch

        self.call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # NCCL's watchdog is another thread
            for _ in range(calls):
                self.captured = self.call()
        return graph.replay

    def time(self, call: Call, iterations: int, batches: int) -> list[float]:
        """Nanoseconds of each batch on the slowest rank."""
        import torch
        from torch import distributed

        distributed.barrier()
        for _ in range(WARM_UP):
            call()
        torch.cuda.synchronize()
        times = []
        for _ in range(batches):
            start = time.perf_counter_ns()
            for _ in range(iterations):
                call()
            torch.cuda.synchronize()
            times.append(float(time.perf_counter_ns() - start))
        slowest = torch.tensor(times, device="cuda", dtype=torch.float64)
        distributed.all_reduce(slowest, op=distributed.ReduceOp.MAX)
        return [float(took) for took in slowest]

    def agreed(self, value: Any) -> float:
        """The value of rank 0, on all ranks."""
        from torch import distributed

        distributed.broadcast(value, 0)
        return float(value[0])

    def verify(self, call: Call, captured: bool, seed: int) -> bool:
        """Whether `call` sums fresh random integers from 0 to 3, whose sums are exact, correctly on every rank."""
        import torch
        from torch import distributed

        expected = torch.zeros_like(self.vector)
        for rank in range(self.ranks):
            generator = torch.Generator(device="cuda").manual_seed(seed * 64 + rank)
            part = torch.randint(0, 4, expected.shape, device="cuda", generator=generator, dtype=torch.uint8)
            if rank == self.rank:
                self.vector.copy_(part)
            expected += part
        torch.cuda.synchronize()
        distributed.barrier()
        result = call()
        torch.cuda.synchronize()
        right = torch.equal(self.captured if captured else result, expected)
        votes = torch.tensor([1.0 if right else 0.0], device="cuda")
        distributed.all_reduce(votes, op=distributed.ReduceOp.MIN)
        return bool(votes[0] == 1)


def graph_calls(size: int) -> int:
    """The number of calls in a graph, the same as in beeline-bench."""
    return 20 if size <= 1 << 20 else 5 if size <= 16 << 20 else 1


def deviation(samples: list[float]) -> float:
    """Median distance from the median, as a share of the median."""
    middle = statistics.median(samples)
    return statistics.median(abs(sample - middle) for sample in samples) / middle


def enough(samples: list[float]) -> bool:
    if len(samples) < LEAST_SAMPLES:
        return False
    return len(samples) >= MOST_SAMPLES or deviation(samples) <= DEVIATION


if __name__ == "__main__":
    main()
