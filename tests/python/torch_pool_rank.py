# SPDX-License-Identifier: Apache-2.0
"""One rank on a GPU: torch's tensors in the symmetric heap, by torch.cuda.MemPool.

python torch_pool_rank.py [CASE ...]  under a launcher, a GPU for each rank; on one GPU memory_of_another_rank alone
"""

from __future__ import annotations

import gc
import sys

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
    for transfer in ("staged", None, "registered"):  # all publish their memory in call 1, and map it in call 2
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


def every_operation() -> None:
    """All operations on long ordinary tensors: without a copy, once the ranks have mapped the tensors."""
    mine, others = (torch.empty(SIZE * COUNT, device=DEVICE) for _ in range(2))
    group = dist.group.WORLD
    root = SIZE - 1

    def scatter() -> None:
        group._calls.scatter(others[:COUNT], mine if root == RANK else None, False, root=root)

    def gather() -> None:
        group._calls.gather(others if root == RANK else None, mine[:COUNT], False, root=root)

    def exchange() -> None:
        lengths = [COUNT - (RANK + rank) % 2 for rank in range(SIZE)]  # the same both ways
        dist.all_to_all_single(others[: sum(lengths)], mine[: sum(lengths)], lengths, lengths)

    whole = torch.arange(SIZE, device=DEVICE).repeat_interleave(COUNT)
    cases = (
        (lambda: dist.broadcast(mine, root), lambda: (mine == root).all()),
        (lambda: dist.reduce(mine, root), lambda: root != RANK or (mine == sum(range(SIZE))).all()),
        (scatter, lambda: (others[:COUNT] == root).all()),
        (gather, lambda: root != RANK or (others == whole).all()),
        (exchange, lambda: others[0] == 0 and others[SIZE * (COUNT - 1)] == root),
    )
    for call, is_right in cases:
        for _ in range(4):
            mine.fill_(RANK)
            call()
            assert is_right()
            dist.barrier()
        assert last_transfer() == "registered", (call, last_transfer())


def segments_of_torchs() -> None:
    """Segments that torch frees and allocates again, at old or new addresses, and segments that cannot be shared."""
    for turn in range(4):
        tensor = torch.empty((1 + turn % 2) * 2 * COUNT, device=DEVICE)  # longer ones use copy engines
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


def captured_calls() -> None:
    """A graph's calls use tensors that the ranks have mapped; tensors that the capture allocates are staged."""
    known = torch.empty(8 * COUNT, device=DEVICE)
    for _ in range(3):
        dist.all_reduce(known.fill_(RANK))
        dist.barrier()
    assert last_transfer() == "registered"
    for is_known, transfer in ((True, "registered"), (False, "staged: ")):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            tensor = known if is_known else torch.empty(8 * COUNT, device=DEVICE)
            tensor.fill_(RANK + 1)
            dist.all_reduce(tensor)
        for _ in range(2):
            graph.replay()
            assert (tensor == SIZE * (SIZE + 1) / 2).all()
        assert (last_transfer() or "").startswith(transfer), last_transfer()
        del graph


def long_all_reduces() -> None:
    """All-reduces of ordinary tensors, and of tensors that the program declares symmetric, use copy engines; two GPUs
    use these only for vectors that are known to be symmetric."""
    count = 100 << 20  # of 4 bytes: above 384 MB
    with torch.cuda.use_mem_pool(mem_pool()):
        pooled = torch.empty(count, device=DEVICE)
    ordinary = torch.empty(count, device=DEVICE)
    group = dist.group.WORLD
    engines = "staged: copy engines carry it, in chunks"
    for tensor, symmetric, transfer in (
        (ordinary, False, "registered" if SIZE == 2 else engines),
        (pooled, False, "in_place" if SIZE == 2 else engines),
        (pooled, True, "in_place"),
    ):
        group.symmetric = symmetric
        for turn in range(4):  # the second equal call is recorded, and run
            tensor.fill_(RANK + turn)
            tensor[-1] = 2 * RANK + turn
            dist.all_reduce(tensor)
            assert (tensor[:-1] == sum(range(SIZE)) + turn * SIZE).all()
            assert tensor[-1] == 2 * sum(range(SIZE)) + turn * SIZE
            dist.barrier()  # the next call finds the tensors mapped
        assert last_transfer() == transfer, (symmetric, last_transfer())
    group.symmetric = False


def memory_of_another_rank() -> None:
    """A tensor that rank 0 has allocated and rank 1 has opened: both may use it if they share a GPU."""
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
    for _ in range(4):  # the others read the source: two processes have registered the same memory
        dist.reduce_scatter_tensor(gathered[: COUNT // SIZE], tensor)
        assert (gathered[: COUNT // SIZE] == 3 * SIZE).all()
        dist.barrier()


def order() -> None:
    """Memory that torch uses again is not overwritten too early."""
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
    """Each pool takes half of the heap: the next one fits only if the last one's memory was given back."""
    megabytes = 300
    dist.group.WORLD.symmetric = True  # long all-reduces by engines then use the pool in place
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


CASES = (
    zero_copy, every_operation, segments_of_torchs, captured_calls, long_all_reduces,
    memory_of_another_rank, order, a_full_heap, segments_come_back,
)  # fmt: skip
for case in [one for one in CASES if one.__name__ in sys.argv[1:] or len(sys.argv) == 1]:
    case()
    gc.collect()
    torch.cuda.empty_cache()
    dist.barrier()
    print(f"rank {RANK}: {case.__name__}", flush=True)
dist.destroy_process_group()
WORLD.leave()
