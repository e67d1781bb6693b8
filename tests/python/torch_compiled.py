# SPDX-License-Identifier: Apache-2.0
"""Collectives in compiled functions and in CUDA graphs that torch captures: cases of torch_rank.py."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from beeline.torch_backend import last_transfer
from torch import nn

LONG = 1 << 20  # elements: longer than vectors that packets carry


def compiled(function: Callable[..., torch.Tensor], backend: str) -> Callable[..., torch.Tensor]:
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, fullgraph=True)


def functional_collectives(tensor: torch.Tensor) -> torch.Tensor:
    """Sums all ranks' tensors, scatters and gathers the sums, and broadcasts a tensor that was exchanged."""
    group = dist.group.WORLD
    total = functional.all_reduce(tensor * 2, "sum", group)
    part = functional.reduce_scatter_tensor(total, "avg", 0, group)
    whole = functional.all_gather_tensor(part + 1, 0, group)
    return functional.broadcast(functional.all_to_all_single(whole, None, None, group) - 1, 0, group)


def in_place(tensor: torch.Tensor) -> torch.Tensor:
    """The in-place calls of programs, which the compiler turns into functional ones."""
    total = tensor * 2
    dist.all_reduce(total)
    gathered = torch.empty(dist.get_world_size() * total.numel(), device=total.device)
    dist.all_gather_into_tensor(gathered, total)
    return gathered / dist.get_world_size()


def compiled_functions(device: torch.device) -> None:
    """Whole functions with collectives return the same results when compiled."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    tensor = torch.full((4 * ranks,), rank + 1.0, device=device)
    for function in (functional_collectives, in_place):
        wanted = function(tensor)
        assert (wanted == ranks * (ranks + 1) / (1 if function is functional_collectives else ranks)).all()
        by_compiler = compiled(function, "aot_eager")
        for step in range(3):
            torch.testing.assert_close(by_compiler(tensor * 2**step), wanted * 2**step)


def compiled_to_code(device: torch.device) -> None:
    """As above, where the compiler generates code and orders the calls."""
    tensor = torch.full((4 * dist.get_world_size(),), dist.get_rank() + 1.0, device=device)
    torch.testing.assert_close(compiled(functional_collectives, "inductor")(tensor), functional_collectives(tensor))


def compiled_data_parallel(device: torch.device) -> None:
    """A compiled model in several buckets: the gradients of one are reduced while others are computed."""
    torch._dynamo.reset()
    torch.manual_seed(1)
    model, alone = (nn.Sequential(*(nn.Linear(512, 512) for _ in range(3))).to(device) for _ in range(2))
    alone.load_state_dict(model.state_dict())
    parallel = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1, gradient_as_bucket_view=True)
    learner = torch.compile(parallel, backend="aot_eager")
    data = torch.randn(dist.get_world_size(), 4, 512).to(device)
    for _ in range(2):
        learner(data[dist.get_rank()]).square().mean().backward()
        alone(data.view(-1, 512)).square().mean().backward()
    for part, whole in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(part.grad, whole.grad)


def asynchronous(call: Callable[[], dist.Work]) -> None:
    call().wait()


def captured_graph(device: torch.device) -> None:
    """Replays of a graph with collectives, between calls that are not captured."""
    if device.type == "cpu":
        return  # nothing captures calls on a CPU
    ranks, rank = dist.get_world_size(), dist.get_rank()
    for count in (8 * ranks, LONG * ranks):
        tensor, eager = torch.ones(count, device=device), torch.ones(count, device=device)
        part = torch.empty(count // ranks, device=device)
        exchanged = torch.empty_like(tensor)
        calls = (
            functools.partial(dist.all_reduce, tensor, dist.ReduceOp.AVG),
            functools.partial(dist.reduce_scatter_tensor, part, tensor),
            functools.partial(dist.all_gather_into_tensor, tensor, part),
            functools.partial(dist.all_to_all_single, exchanged, tensor),
            functools.partial(dist.broadcast, exchanged, 0),
        )
        for call in calls:  # the first call allocates, which must precede the capture
            call()
        torch.cuda.synchronize(device)
        dist.barrier()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for call in calls[:3]:
                call()
            for call in calls[3:]:
                asynchronous(functools.partial(call, async_op=True))
        # Transfer of the last eager call (captured calls do not run): its tensors may have been mapped, or not.
        assert count < LONG or str(last_transfer()).split(":")[0] in ("registered", "staged")
        for step in range(5):
            tensor.fill_(rank + step)
            graph.replay()
            mean = ranks * (step + (ranks - 1) / 2)
            dist.all_reduce(eager.fill_(rank + step))
            assert (exchanged == mean).all()
            assert (tensor == mean).all()
            assert (eager == mean).all()
        dist.barrier()
        del graph


CASES = (compiled_functions, compiled_to_code, compiled_data_parallel, captured_graph)
