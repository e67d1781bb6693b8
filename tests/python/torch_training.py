# SPDX-License-Identifier: Apache-2.0
"""Kinds of training by torch.distributed, each compared with one rank alone: cases of torch_rank.py."""

from __future__ import annotations

import copy
import functools
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoints
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

Optimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
plain = functools.partial(torch.optim.SGD, lr=0.1)


def model_of(device: torch.device) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8)).to(device)


def check_learning(
    device: torch.device,
    distribute: Callable[[nn.Module], nn.Module],
    optimizer: Optimizer = plain,
    shares_data: bool = True,
) -> None:
    """The distributed model, given its share of the data or all, learns the same as one rank that is given all data."""
    model, alone = model_of(device), model_of(device)
    data = torch.randn(dist.get_world_size(), 6, 8).to(device)
    everything = data.view(-1, 8)
    learner = distribute(model)
    steps = [optimizer(learner.parameters()), plain(alone.parameters())]
    for _ in range(3):
        learner(data[dist.get_rank()] if shares_data else everything).square().mean().backward()
        alone(everything).square().mean().backward()
        for step in steps:
            step.step()
            step.zero_grad()
    check_equal(learner, alone)


def check_equal(distributed: nn.Module, alone: nn.Module) -> None:
    for part, whole in zip(distributed.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(part.full_tensor() if isinstance(part, DTensor) else part, whole)


def line(device: torch.device) -> DeviceMesh:
    return init_device_mesh(device.type, (dist.get_world_size(),))


def shard(model: nn.Sequential, mesh: DeviceMesh) -> nn.Module:
    for layer in (*model, model):
        fully_shard(layer, mesh=mesh)
    return model


def data_parallel(device: torch.device) -> None:
    check_learning(device, nn.parallel.DistributedDataParallel)


def data_parallel_overlapped(device: torch.device) -> None:
    """Each parameter's gradient is sent while others are computed; then the same by a hook."""
    overlap = functools.partial(nn.parallel.DistributedDataParallel, bucket_cap_mb=1e-4, gradient_as_bucket_view=True)
    check_learning(device, functools.partial(overlap, static_graph=True))

    def hooked(model: nn.Module) -> nn.Module:
        parallel = overlap(model)
        parallel.register_comm_hook(None, default_hooks.allreduce_hook)
        return parallel

    check_learning(device, hooked)


def data_parallel_with_sharded_optimizer(device: torch.device) -> None:
    sharded = functools.partial(ZeroRedundancyOptimizer, optimizer_class=torch.optim.SGD, lr=0.1)
    check_learning(device, nn.parallel.DistributedDataParallel, sharded)


def fully_sharded(device: torch.device) -> None:
    check_learning(device, lambda model: shard(model, line(device)))


def fully_sharded_overlapped(device: torch.device) -> None:
    """The next layer's parameters are gathered while one layer computes, and gradients are kept for a second pass."""

    def distribute(model: nn.Sequential) -> nn.Module:
        layers = [layer for layer in shard(model, line(device)) if isinstance(layer, FSDPModule)]
        for layer, following in itertools.pairwise(layers):
            layer.set_modules_to_forward_prefetch([following])
            following.set_modules_to_backward_prefetch([layer])
        return model

    check_learning(device, distribute)


def sharded_in_rows(device: torch.device) -> None:
    """The model is sharded in each row of a mesh and replicated over the rows."""
    rows = 2 if dist.get_world_size() % 2 == 0 else 1
    mesh = init_device_mesh(device.type, (rows, dist.get_world_size() // rows), mesh_dim_names=("replicas", "shards"))
    check_learning(device, lambda model: shard(model, mesh))


def tensor_parallel(device: torch.device) -> None:
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    check_learning(device, lambda model: parallelize_module(model, line(device), plan), shares_data=False)


def pipeline(device: torch.device) -> None:
    """Each rank has one layer; two micro-batches."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    layers = nn.Sequential(*(nn.Linear(8, 8) for _ in range(ranks))).to(device)
    alone = copy.deepcopy(layers)
    data = torch.randn(6, 8).to(device)
    target = torch.randn(6, 8).to(device)
    schedule = ScheduleGPipe(PipelineStage(layers[rank], rank, ranks, device), 2, loss_fn=nn.functional.mse_loss)
    schedule.step(*([data] if rank == 0 else []), target=target if rank == ranks - 1 else None)
    nn.functional.mse_loss(alone(data), target).backward()
    torch.testing.assert_close(layers[rank].weight.grad, alone[rank].weight.grad)


def checkpoint(device: torch.device) -> None:
    """A checkpoint of one sharded model is read by another."""
    folder = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, 0)
    alone = model_of(device)
    written, read = shard(model_of(device), line(device)), shard(model_of(device), line(device))
    with torch.no_grad():
        for parameter in read.parameters():
            parameter.zero_()
    checkpoints.save(written.state_dict(), checkpoint_id=folder[0])
    state = read.state_dict()
    checkpoints.load(state, checkpoint_id=folder[0])
    read.load_state_dict(state)
    check_equal(read, alone)
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder[0])


CASES = (
    data_parallel, data_parallel_overlapped, data_parallel_with_sharded_optimizer, fully_sharded,
    fully_sharded_overlapped, sharded_in_rows, tensor_parallel, pipeline, checkpoint,
)  # fmt: skip
