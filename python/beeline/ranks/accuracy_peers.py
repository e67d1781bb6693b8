# SPDX-License-Identifier: Apache-2.0
"""All-reduce of other libraries, on the same data: torch.distributed (gloo, NCCL, symmetric memory), and MPI."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType
from typing import Any

import numpy as np

import beeline
from beeline.ranks.records import first_line
from beeline.ranks.references import Vector

LIMIT = timedelta(seconds=60)  # of torch's own waits
Allreduce = Callable[[Vector, str, str], Vector]


class Absent(Exception):
    """Why a peer, or a type or reduction of it, is not available; the same on every rank."""


@contextmanager
def what_torch_lacks() -> Iterator[None]:
    """Turns torch's errors for missing types and operations into Absent. Every rank gets the same."""
    try:
        yield
    except (RuntimeError, ValueError) as problem:
        raise Absent(first_line(problem)) from problem


def close_groups() -> None:
    """Collective: ends the groups that were opened."""
    if "torch" in sys.modules and sys.modules["torch"].distributed.is_initialized():
        sys.modules["torch"].distributed.destroy_process_group()


def torch_group(world: beeline.World, backend: str) -> ModuleType:
    """Returns torch, with a process group of `backend` over the world's ranks."""
    on_gpu = all(device.kind == "gpu" for device in world.devices)
    if (backend == "nccl") != on_gpu:
        raise Absent("ranks are not on GPUs" if backend == "nccl" else "ranks are not all on CPUs")
    if importlib.util.find_spec("torch") is None:
        raise Absent("torch is not installed")
    os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")  # for fairness: no method uses switch multicast
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    import torch
    from torch import distributed

    from beeline.torch_backend import make_store

    if on_gpu:
        torch.cuda.set_device(world.device.index)
    if not distributed.is_initialized():
        store = make_store(world)
        distributed.init_process_group(backend, store=store, rank=world.rank, world_size=world.size, timeout=LIMIT)
    return torch


def tensor_of(torch: ModuleType, vector: Vector, type_name: str) -> Any:
    """A copy of the vector, on the device where the group's ranks compute."""
    copied = torch.from_numpy(vector.view("int16") if type_name == "bfloat16" else vector.copy())
    device = "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"
    return copied.view(getattr(torch, type_name)).clone().to(device)


def vector_of(torch: ModuleType, tensor: Any, type_name: str) -> Vector:
    if type_name == "bfloat16":
        return tensor.view(torch.int16).cpu().numpy().view("uint16")
    return tensor.cpu().numpy()


def torch_distributed(world: beeline.World, backend: str) -> Allreduce:
    torch = torch_group(world, backend)
    from torch import distributed

    operations = {"sum": distributed.ReduceOp.SUM, "product": distributed.ReduceOp.PRODUCT}
    if backend == "nccl":
        operations["average"] = distributed.ReduceOp.AVG

    def allreduce(vector: Vector, type_name: str, reduction: str) -> Vector:
        if reduction not in operations:
            raise Absent(f"{backend} has no {reduction}")
        tensor = tensor_of(torch, vector, type_name)
        with what_torch_lacks():
            distributed.all_reduce(tensor, op=operations[reduction])
        return vector_of(torch, tensor, type_name)

    return allreduce


def symmetric_memory(world: beeline.World, algorithm: str) -> Allreduce:
    torch = torch_group(world, "nccl")
    from torch.distributed import _symmetric_memory as memory
    from torch.distributed import group

    def allreduce(vector: Vector, type_name: str, reduction: str) -> Vector:
        if reduction != "sum" or type_name not in ("float32", "bfloat16"):
            raise Absent(f"torch's symmetric memory has no {reduction} of {type_name}")
        here = torch.device("cuda", torch.cuda.current_device())
        operations = torch.ops.symm_mem
        one_shot = algorithm == "one_shot"
        operation = operations.one_shot_all_reduce if one_shot else operations.two_shot_all_reduce_
        with what_torch_lacks():
            tensor = memory.empty(len(vector), dtype=getattr(torch, type_name), device=here)
            memory.rendezvous(tensor, group=group.WORLD.group_name)
            tensor.copy_(tensor_of(torch, vector, type_name))
            torch.cuda.synchronize()
            torch.distributed.barrier()
            reduced = operation(tensor, "sum", group.WORLD.group_name)
            torch.cuda.synchronize()
        return vector_of(torch, reduced, type_name)

    return allreduce


def mpi_ranks(world: beeline.World) -> Any:
    """The MPI communicator of the same ranks. Raises Absent."""
    if not any(name in os.environ for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")):
        raise Absent("ranks were not started by mpirun, as MPI's are")
    if importlib.util.find_spec("mpi4py") is None:
        raise Absent("mpi4py is not installed")
    from mpi4py import MPI

    ranks = MPI.COMM_WORLD
    if (ranks.rank, ranks.size) != (world.rank, world.size):
        raise Absent(f"rank {world.rank} of {world.size} is {ranks.rank} of {ranks.size} in MPI")
    return ranks


def mpi(world: beeline.World) -> Allreduce:
    ranks = mpi_ranks(world)
    from mpi4py import MPI

    def allreduce(vector: Vector, type_name: str, reduction: str) -> Vector:
        if type_name in ("float16", "bfloat16"):
            raise Absent(f"MPI has no {type_name}")
        if reduction == "average":
            raise Absent("MPI has no average")
        got = np.empty_like(vector)
        ranks.Allreduce(vector, got, MPI.SUM if reduction == "sum" else MPI.PROD)
        return got

    return allreduce


def open_peer(world: beeline.World, name: str) -> Allreduce:
    """Collective. The peer's all-reduce. Raises Absent."""
    if name == "mpi/host":
        return mpi(world)
    peer, _, algorithm = name.partition("/")
    if peer == "torch":
        return symmetric_memory(world, algorithm.removesuffix("/stream"))
    return torch_distributed(world, peer)
