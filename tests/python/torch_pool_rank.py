# SPDX-License-Identifier: Apache-2.0
"""One rank on a GPU: torch's tensors in the symmetric heap, by torch.cuda.MemPool.

python torch_pool_rank.py  under a launcher, a GPU for each rank
"""

from __future__ import annotations

import gc

import beeline
import beeline.torch_backend
import pytest
import torch
import torch.distributed as dist
from beeline.torch_backend import last_transfer, mem_pool
from torch.multiprocessing.reductions import reduce_tensor

WORLD = beeline.World.create()
DEVICE = torch.device("cuda", WORLD.device.index)
torch.cuda.set_device(DEVICE)
store = beeline.torch_backend.make_store(WORLD)
dist.init_process_group("beeline", store=store, rank=WORLD.rank, world_size=WORLD.size, pg_options=WORLD)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
COUNT = 4 << 20


def zero_copy() -> None:
    pool = mem_pool()
    with torch.cuda.use_mem_pool(pool):
        tensor, small = torch.empty(COUNT, device=DEVICE), torch.full((1000,), RANK + 1.0, device=DEVICE)
        gathered = torch.empty(SIZE * COUNT, dtype=torch.bfloat16, device=DEVICE)
    assert {WORLD.owner_of(each) for each in (tensor, small, gathered)} == {RANK}
    tensor.fill_(RANK + 1)
    dist.all_reduce(tensor)
    assert last_transfer() == "in_place"
    assert (tensor == SIZE * (SIZE + 1) / 2).all()
    dist.all_reduce(small)
    assert last_transfer() == "packets"
    assert (small == SIZE * (SIZE + 1) / 2).all()
    dist.all_gather_into_tensor(gathered, torch.full((COUNT,), RANK, dtype=torch.bfloat16, device=DEVICE))
    assert last_transfer() == "in_place"
    assert gathered[::COUNT].tolist() == list(range(SIZE))
    outside = torch.full((COUNT,), 1.0, device=DEVICE)
    assert WORLD.owner_of(outside) is None
    for transfer in ("staged", None, "registered"):  # all show their memory in the first call, and map it in the second
        dist.all_reduce(outside.fill_(1))
        assert transfer in (None, last_transfer())
        torch.cuda.synchronize()
        dist.barrier()
        assert (outside == SIZE).all()
    pair = dist.new_group([0, 1])
    if RANK < 2:
        tensor.fill_(RANK)
        dist.all_reduce(tensor, group=pair)
        assert last_transfer(pair) == "in_place"
        assert (tensor == 1).all()
    dist.destroy_process_group(pair)


def segments_of_torchs() -> None:
    """Segments that torch frees and takes again, at their old addresses or elsewhere, and such as cannot be shared."""
    for turn in range(4):
        tensor = torch.empty((1 + turn % 2) * 8 * COUNT, device=DEVICE)
        for call in range(4):
            dist.all_reduce(tensor.fill_(RANK + call))
            assert (tensor == sum(rank + call for rank in range(SIZE))).all()
            dist.barrier()
        assert last_transfer() == "registered"
        del tensor
        torch.cuda.empty_cache()
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    tensor = torch.empty(8 * COUNT, device=DEVICE)
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    for call in range(3):
        dist.all_reduce(tensor.fill_(RANK + call))
        assert (tensor == sum(rank + call for rank in range(SIZE))).all()
        assert (last_transfer() or "").startswith("staged: ")


def memory_of_another_rank() -> None:
    """A tensor that rank 0 has allocated and rank 1 has opened: where both are on one GPU, both may use it."""
    tensor = torch.full((COUNT,), 3.0, device=DEVICE) if RANK == 0 else None
    shared = [None if tensor is None else reduce_tensor(tensor)]
    dist.broadcast_object_list(shared, 0)
    if RANK != 0:
        rebuild, arguments = shared[0]
        tensor = rebuild(*arguments)
    gathered = torch.empty(SIZE * COUNT, device=DEVICE)
    if tensor.device != DEVICE:
        with pytest.raises(ValueError, match="GPU"):
            dist.all_gather_into_tensor(gathered, tensor)
        tensor = torch.full((COUNT,), 3.0, device=DEVICE)
    for _ in range(4):
        dist.all_gather_into_tensor(gathered, tensor)
        assert (gathered == 3).all()
        dist.barrier()


def order() -> None:
    """Memory that torch uses again is used in order."""
    pool = mem_pool()
    with torch.cuda.use_mem_pool(pool):
        for step in range(20):
            tensor = torch.full((COUNT,), RANK + step, dtype=torch.float32, device=DEVICE)
            work = dist.all_reduce(tensor, async_op=True)
            work.wait()
            assert (tensor == sum(rank + step for rank in range(SIZE))).all()
            del tensor, work


def a_full_heap() -> None:
    pool = mem_pool()
    with torch.cuda.use_mem_pool(pool):
        try:
            torch.empty(1 << 42, dtype=torch.uint8, device=DEVICE)
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("no error")
        tensor = torch.full((COUNT,), 1.0, device=DEVICE)
    dist.all_reduce(tensor)
    assert last_transfer() == "in_place"
    assert (tensor == SIZE).all()


def segments_come_back() -> None:
    """Each pool takes half of the heap: there is room for the next only if the last one's is given back."""
    megabytes = 300
    for _ in range(4):
        pool = mem_pool()
        with torch.cuda.use_mem_pool(pool):
            tensor = torch.full((megabytes << 18,), float(RANK), device=DEVICE)
        dist.all_reduce(tensor)
        assert last_transfer() == "in_place"
        assert (tensor == sum(range(SIZE))).all()
        torch.cuda.synchronize()
        del tensor, pool
        gc.collect()
        torch.cuda.empty_cache()


for case in (zero_copy, segments_of_torchs, memory_of_another_rank, order, a_full_heap, segments_come_back):
    case()
    gc.collect()
    torch.cuda.empty_cache()
    dist.barrier()
    print(f"rank {RANK}: {case.__name__}", flush=True)
dist.destroy_process_group()
WORLD.leave()
