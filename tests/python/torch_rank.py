# SPDX-License-Identifier: Apache-2.0
"""One rank of test_torch_backend.py: every operation of the back end, called through torch.distributed."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import beeline
import beeline.torch_backend
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch_compiled
import torch_training
from torch.distributed.device_mesh import init_device_mesh

WORLD = beeline.World.create() if "own_world" in sys.argv else None
if WORLD is None:
    dist.init_process_group("beeline")
else:
    store = beeline.torch_backend.make_store(WORLD)
    dist.init_process_group("beeline", store=store, rank=WORLD.rank, world_size=WORLD.size, pg_options=WORLD)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GROUP = dist.group.WORLD
DEVICE = torch.device("cpu")
if GROUP.world.device.kind == "gpu":
    DEVICE = torch.device("cuda", GROUP.world.device.index)
    torch.cuda.set_device(DEVICE)


def full(shape: int | tuple[int, ...], value: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape if isinstance(shape, tuple) else (shape,), value, dtype=dtype, device=DEVICE)


def refused(kind: type[BaseException], text: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match=text):
        call()


def all_reduce() -> None:
    for count in (1, 5, 100_003):
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64):
            tensor = full(count, RANK + 1, dtype)
            dist.all_reduce(tensor)
            assert (tensor == SIZE * (SIZE + 1) / 2).all(), (count, dtype, tensor)
    ops = {
        dist.ReduceOp.MAX: SIZE, dist.ReduceOp.MIN: 1, dist.ReduceOp.AVG: (SIZE + 1) / 2, dist.ReduceOp.PRODUCT: 24,
    }  # fmt: skip
    for op, expected in ops.items():
        tensor = full((3, 4), RANK + 1)
        work = dist.all_reduce(tensor, op=op, async_op=True)
        assert work.wait()
        assert work.get_future().wait()[0] is tensor or (work.get_future().wait()[0] == tensor).all()
        if op != dist.ReduceOp.PRODUCT or SIZE == 4:
            assert (tensor == expected).all(), (op, tensor)
    current = torch.cuda.current_stream() if tensor.is_cuda else None
    tensor = full(1 << 22, RANK + 1)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    assert current is None or torch.cuda.current_stream() == current  # the future waits for another one
    assert (future.wait()[0] == SIZE * (SIZE + 1) / 2).all()
    masks = full(9, 1 << RANK, torch.int32)
    dist.all_reduce(masks, op=dist.ReduceOp.BOR)
    assert (masks == (1 << SIZE) - 1).all()


def gather_and_scatter() -> None:
    for dtype in (torch.int16, torch.float32, torch.bool):
        gathered = torch.empty(SIZE * 7, dtype=dtype, device=DEVICE)
        dist.all_gather_into_tensor(gathered, full(7, RANK, dtype))
        assert (
            gathered.view(SIZE, 7)[:, 3].tolist()
            == full(SIZE, 0).add(torch.arange(SIZE, device=DEVICE)).to(dtype).tolist()
        )
    each = [torch.empty(2, 3, device=DEVICE) for _ in range(SIZE)]
    dist.all_gather(each, full((2, 3), RANK))
    assert [int(part.sum()) for part in each] == [6 * rank for rank in range(SIZE)]
    part = torch.empty(5, device=DEVICE)
    dist.reduce_scatter_tensor(part, torch.arange(5.0 * SIZE, device=DEVICE))
    assert (part == SIZE * (torch.arange(5.0, device=DEVICE) + 5 * RANK)).all()
    dist.reduce_scatter(part, [full(5, rank + RANK) for rank in range(SIZE)], op=dist.ReduceOp.MAX)
    assert (part == RANK + SIZE - 1).all()


def all_to_all() -> None:
    got = torch.empty(2 * SIZE, device=DEVICE)
    dist.all_to_all_single(got, torch.arange(SIZE, device=DEVICE).repeat_interleave(2) + 10.0 * RANK)
    assert got.view(SIZE, 2)[:, 0].tolist() == [10.0 * rank + RANK for rank in range(SIZE)]
    splits = [1 + (RANK + rank) % 3 for rank in range(SIZE)]  # the same both ways
    got = torch.empty(sum(splits), 3, device=DEVICE)
    dist.all_to_all_single(got, full((sum(splits), 3), RANK), splits, splits)
    assert got[:, 1].tolist() == [float(rank) for rank in range(SIZE) for _ in range(splits[rank])]
    refused(ValueError, "splits", lambda: dist.all_to_all_single(got, got, [1] * SIZE, [1] * SIZE))


def broadcast() -> None:
    for root in range(SIZE):
        tensor = full(1001, root == RANK, torch.bool)
        dist.broadcast(tensor, root)
        assert tensor.all()
    objects = [{"rank": RANK}]
    dist.broadcast_object_list(objects, 1)
    assert objects == [{"rank": 1}]
    everyone: list[object] = [None] * SIZE
    dist.all_gather_object(everyone, "x" * RANK)
    assert everyone == ["x" * rank for rank in range(SIZE)]


def messages() -> None:
    after, before = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for count in (3, 1 << 20):  # sent at once, or only when the receiver has called
        mine, got = full(count, RANK), torch.empty(count, device=DEVICE)
        operations = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, got, before)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        assert (got == before).all()
    works = []
    sent, received = full((SIZE, 70_000), RANK), torch.empty((SIZE, 70_000), device=DEVICE)
    for peer in range(SIZE):
        if peer != RANK:
            works += [dist.isend(sent[peer], peer), dist.irecv(received[peer], peer)]
    for work in works:
        work.wait()
    for peer in range(SIZE):
        assert peer == RANK or (received[peer] == peer).all()
    if RANK == 0:
        waiting = [dist.isend(full(200_000, number), 1) for number in range(5)]
        dist.send(full(3, 7), 1)
        for work in waiting:
            work.wait()
    elif RANK == 1:
        got = torch.empty(200_000, device=DEVICE)
        for number in range(5):
            dist.recv(got, 0)
            assert (got == number).all()
        assert dist.recv(got[:3], 0) == 0
        assert got[:3].tolist() == [7, 7, 7]


def time_outs() -> None:
    """A wait with a time-out ends then; the message still arrives."""
    if DEVICE.type == "cpu" and RANK == 0:
        got = torch.empty(3)
        work = dist.irecv(got, 1)
        with pytest.raises(beeline.TimeoutError):
            work.wait(timedelta(seconds=0.05))
        dist.send(full(1, 0), 1)
        assert work.wait(timedelta(seconds=20))
        assert got.tolist() == [5, 5, 5]
    elif DEVICE.type == "cpu" and RANK == 1:
        dist.recv(full(1, 0), 0)
        dist.send(full(3, 5), 0)


def any_source(group: dist.ProcessGroup | None = None) -> None:
    """Receives without a source, beside others with one: messages are received in the order of the calls."""
    if DEVICE.type == "cuda":
        return  # refused: see refusals
    members = dist.get_process_group_ranks(group or GROUP)
    first, others = members[0], members[1:]
    for count in (3, 100_000):  # sent at once, or only when the receiver has called
        if first == RANK:
            got, senders = torch.empty(count), []
            for _ in others:
                senders.append(dist.recv(got, group=group))
                assert (got == senders[-1]).all()
            assert sorted(senders) == others
        else:
            dist.send(full(count, RANK), first, group=group)
        dist.barrier(group)
    if first != RANK:
        dist.recv(full(1, 0), first, group=group)  # lets this rank continue
        if others[0] == RANK:
            for value in range(3):
                dist.send(full(50_000, value), first, group=group)
        dist.send(full(1, RANK), first, group=group)
        return
    got, last = torch.empty(3, 50_000), torch.empty(len(others))
    before = dist.irecv(last[-1:], others[-1], group=group) if len(others) > 1 else None
    works = [
        dist.irecv(got[0], group=group),
        dist.irecv(got[1], others[0], group=group),
        dist.irecv(got[2], group=group),
    ]
    assert not any(work.is_completed() for work in works)
    for work, value in zip(works, range(3), strict=True):
        if value == 0:
            dist.send(full(1, 0), others[0], group=group)
        work.wait()
        assert work.source_rank() == 1
        assert work.is_completed()
        assert (got[value] == value).all()
    for rank in others[1:]:
        dist.send(full(1, 0), rank, group=group)
    for rank in others[:-1] if before else others:
        dist.recv(last[others.index(rank)][None], rank, group=group)
    if before:
        before.wait()
    assert last.tolist() == others


def monitored_barrier() -> None:
    if DEVICE.type == "cuda" or torch.__version__ < "2.15":
        return  # torch has it for groups on CPUs; before 2.15 only for gloo
    dist.monitored_barrier()
    others = ", ".join(map(str, range(1, SIZE)))
    for wait_all_ranks, text in ((False, "Rank 1 failed"), (True, f"Ranks {others} failed")):
        group = dist.new_group()
        if RANK == 0:
            with pytest.raises(beeline.DeadlineError, match=text):
                dist.monitored_barrier(group, timedelta(seconds=0.2), wait_all_ranks)
        dist.barrier(group)  # the group remains usable
        dist.destroy_process_group(group)


def order() -> None:
    """Work after a collective sees its result; work before it has written its input."""
    tensor = full(1 << 20, 1)
    for _ in range(20):
        tensor.mul_(2)
        dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
        tensor.div_(2)
    assert (tensor == 1).all()


def refusals() -> None:
    refused(ValueError, "not contiguous", lambda: dist.broadcast(full((4, 4), 0).t(), 0))
    refused(ValueError, "not contiguous", lambda: dist.all_reduce(full((4, 4), 0)[:, :2]))
    uneven = [full(rank + 1, 0) for rank in range(SIZE)]
    refused(ValueError, "must be of one size", lambda: dist.all_gather(uneven, full(RANK + 1, 0)))
    refused(ValueError, "must be of one size", lambda: dist.reduce_scatter(full(RANK + 1, 0), uneven))
    for call in (dist.all_reduce, lambda tensor: dist.broadcast(tensor, 0)):
        with pytest.raises(ValueError, match="sparse"):
            call(full((4, 4), 0).to_sparse())
    refused(ValueError, "lists of", lambda: GROUP.allgather_coalesced([[full(1, 0)]] * (SIZE + 1), [full(1, 0)]))
    for dtype in (torch.bool, torch.int8, torch.float8_e4m3fn):
        refused(
            ValueError,
            "there is no sum of",
            lambda dtype=dtype: dist.all_reduce(torch.empty(3, dtype=dtype, device=DEVICE)),
        )
    refused(
        ValueError,
        "output is of float32, input of int32",
        lambda: dist.reduce_scatter_tensor(full(3, 0), full(3 * SIZE, 0, torch.int32)),
    )
    refused(ValueError, "on meta", lambda: dist.all_reduce(torch.empty(3, device="meta")))
    if "gpu" in sys.argv:
        refused(beeline.UnavailableError, "recv needs a source", lambda: dist.recv(full(1, 0)))
        refused(ValueError, "a tensor in host memory", lambda: dist.all_reduce(torch.zeros(1)))
    refused(ValueError, "group ranks|world_size|within", lambda: dist.new_group([0, SIZE]))


def unlike_types() -> None:
    """Different types are refused before any rank waits, whatever moves the data."""
    ints = lambda *shape: full(shape, 0, torch.int32)  # noqa: E731
    ones = [1] * SIZE
    single = "output is of float32, input of int32: types must be the same|different dtypes"
    for text, call in (
        (single, lambda: dist.all_gather_into_tensor(full(3 * SIZE, 0), ints(3))),
        (single, lambda: dist.reduce_scatter_tensor(full(3, 0), ints(3 * SIZE))),
        (single, lambda: dist.all_to_all_single(full(SIZE, 0), ints(SIZE))),
        (single, lambda: dist.all_to_all_single(full(SIZE, 0), ints(SIZE), ones, ones)),
        (single, lambda: GROUP.allgather_into_tensor_coalesced([full(3 * SIZE, 0)], [ints(3)])),
        (single, lambda: GROUP.reduce_scatter_tensor_coalesced([full(3, 0)], [ints(3 * SIZE)])),
        ("one type", lambda: GROUP.allgather([[full(3, 0)] * SIZE], [ints(3)])),
        ("one type", lambda: GROUP.reduce_scatter([full(3, 0)], [[ints(3)] * SIZE])),
        ("one type", lambda: GROUP.alltoall([full(3, 0)] * SIZE, [ints(3)] * SIZE)),
    ):  # fmt: skip
        refused(ValueError, text, call)
    if RANK == 0:
        to_root = dist.GatherOptions()
        to_root.rootRank = 0
        refused(ValueError, "one type", lambda: GROUP.gather([[full(3, 0)] * SIZE], [ints(3)], to_root))
        from_root = dist.ScatterOptions()
        from_root.rootRank = 0
        refused(ValueError, "one type", lambda: GROUP.scatter([full(3, 0)], [[ints(3)] * SIZE], from_root))


def complex_sums() -> None:
    """Sums of complex numbers, also in groups, to which torch passes complex tensors unchanged."""
    for dtype in (torch.complex64, torch.complex128):
        mine = full(2 * SIZE, RANK + 1, dtype) * (1 + 2j)
        total = SIZE * (SIZE + 1) / 2 * (1 + 2j)
        dist.all_reduce(tensor := mine.clone())
        assert (tensor == total).all()
        dist.all_reduce(tensor := mine.clone(), op=dist.ReduceOp.AVG)
        assert (tensor == total / SIZE).all()
        GROUP.allreduce([tensor := mine.clone()]).wait()
        assert (tensor == total).all()
        GROUP.allreduce_coalesced([tensor := mine.clone()]).wait()
        assert (tensor == total).all()
        assert (functional.all_reduce(mine, "sum", GROUP) == total).all()
        assert (functional.reduce_scatter_tensor(mine, "sum", 0, GROUP) == total).all()
        dist.reduce(tensor := mine.clone(), 0)
        assert (tensor == (total if RANK == 0 else mine)).all()
        dist.reduce_scatter_tensor(part := mine[:2].clone(), mine)
        assert (part == total).all()
        dist.reduce_scatter(part := mine[:2].clone(), list(mine.clone().chunk(SIZE)))
        assert (part == total).all()
        gathered = torch.empty(2 * SIZE * SIZE, dtype=dtype, device=DEVICE)
        dist.all_gather_into_tensor(gathered, mine)
        assert (gathered[:: 2 * SIZE] == torch.arange(1, SIZE + 1, device=DEVICE) * (1 + 2j)).all()
        products = dist.AllreduceOptions()
        products.reduceOp = dist.ReduceOp.PRODUCT
        with pytest.raises(ValueError, match="there is no product of complex"):
            GROUP.allreduce([mine], products)


def independent() -> None:
    """Calls of several groups, and messages beside them, do not wait for each other."""
    one, other = groups = [dist.new_group() for _ in range(2)]
    # Each of these waits for a rank that first receives a message, or makes the other group's call.
    tensor, parts = full(1000, RANK), [torch.empty(4, device=DEVICE) for _ in range(SIZE)]
    if RANK == 0:
        pending = [
            dist.all_reduce(tensor, async_op=True), dist.all_gather(parts, full(4, RANK), async_op=True),
            dist.barrier(async_op=True),
        ]  # fmt: skip
        assert DEVICE.type == "cuda" or not any(work.is_completed() for work in pending)
        for rank in range(1, SIZE):
            dist.send(full(1, rank), rank)
    else:
        dist.recv(word := full(1, 0), 0)
        assert word.item() == RANK
        pending = [
            dist.all_reduce(tensor, async_op=True), dist.all_gather(parts, full(4, RANK), async_op=True),
            dist.barrier(async_op=True),
        ]  # fmt: skip
    for work in pending:
        work.wait()
        if DEVICE.type == "cuda":  # there a wait is one of the current stream
            torch.cuda.current_stream().synchronize()
        assert work.is_completed()
    assert (tensor == sum(range(SIZE))).all()
    assert [int(part[3]) for part in parts] == list(range(SIZE))
    # Members may differ in the form of a barrier.
    dist.barrier(async_op=True).wait() if RANK == 0 else dist.barrier()
    # Calls from two threads, in either order.
    tensors = [full(1000, RANK + 1), full(1000, 10 * (RANK + 1))]

    def call(index: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream(DEVICE)) if DEVICE.type == "cuda" else contextlib.nullcontext():
            dist.all_reduce(tensors[index], group=groups[index])
            if DEVICE.type == "cuda":
                torch.cuda.current_stream().synchronize()

    with ThreadPoolExecutor(2) as threads:
        calls = []
        for index in (0, 1) if RANK == 0 else (1, 0):
            calls.append(threads.submit(call, index))
            time.sleep(0.1)  # so that this call waits, and the next one follows it
        for each in calls:
            each.result()
    for tensor, factor in zip(tensors, (1, 10), strict=True):
        assert (tensor == factor * SIZE * (SIZE + 1) / 2).all()
    dist.destroy_process_group(other)
    dist.destroy_process_group(one)


def messages_of_groups() -> None:
    """Each group has messages of its own, in whatever order they are sent; a receive gets the message with its tag."""
    groups = [GROUP, *[dist.new_group([0, 1]) for _ in range(3)]]
    if RANK == 0:
        for count in (3, 100_000):
            works = [dist.isend(full(count, value), 1, group, tag=7) for value, group in enumerate(groups)]
            for work in works:
                work.wait()
    elif RANK == 1:
        for count in (3, 100_000):
            for value, group in reversed(list(enumerate(groups))):
                dist.recv(got := full(count, -1), 0, group, tag=7)
                assert (got == value).all()
    for group in groups[1:]:
        dist.destroy_process_group(group)


def to_one_rank(group: dist.ProcessGroup | None = None) -> None:
    """Reduce, gather and scatter with each member as the root."""
    members = dist.get_process_group_ranks(group or GROUP)
    for root in members:
        tensor = full(1000, RANK + 1)
        dist.reduce(tensor, root, group=group)
        assert (tensor == (sum(members) + len(members) if root == RANK else RANK + 1)).all()
        parts = [torch.empty(3, 2, dtype=torch.int16, device=DEVICE) for _ in members] if root == RANK else None
        dist.gather(full((3, 2), RANK, torch.int16), parts, root, group=group)
        assert parts is None or [part[2, 1].item() for part in parts] == members
        mine = torch.empty(5, dtype=torch.float64, device=DEVICE)
        each = [full(5, rank + root, torch.float64) for rank in members] if root == RANK else None
        dist.scatter(mine, each, root, group=group)
        assert (mine == RANK + root).all()


def let_go() -> None:
    """The program drops tensors while asynchronous calls use them: their memory must not be used for others."""
    works = []
    for step in range(8):
        tensor = full(300_000, RANK + step)
        works.append(dist.all_reduce(tensor, async_op=True))
        gathered = torch.empty(SIZE * 300_000, device=DEVICE)
        works.append(dist.all_gather_into_tensor(gathered, full(300_000, step), async_op=True))
        del tensor
        full(300_000, -1), full(SIZE * 300_000, -1)  # these take memory that is free
        works[-1].wait()
        assert (gathered == step).all()
    for work in works:
        work.wait()
    with dist._coalescing_manager(GROUP, async_ops=True) as together:
        tensors = [full(count, RANK) for count in (3, 300_000)]
        for tensor in tensors:
            dist.all_reduce(tensor)
    together.wait()
    assert all((tensor == sum(range(SIZE))).all() for tensor in tensors)


def coalesced(group: dist.ProcessGroup | None = None) -> None:
    members = dist.get_process_group_ranks(group or GROUP)
    tensors = [full(count, RANK) for count in (1, 7, 40_000)]
    with dist._coalescing_manager(group):
        for tensor in tensors:
            dist.all_reduce(tensor, group=group)
    assert all((tensor == sum(members)).all() for tensor in tensors)
    outputs = [torch.empty(3 * len(members), device=DEVICE) for _ in range(2)]
    with dist._coalescing_manager(group):
        for index, output in enumerate(outputs):
            dist.all_gather_into_tensor(output, full(3, RANK + index), group=group)
    assert [output[::3].tolist() for output in outputs] == [[rank + i for rank in members] for i in range(2)]
    parts = [torch.empty(4, device=DEVICE) for _ in range(2)]
    with dist._coalescing_manager(group):
        for part in parts:
            dist.reduce_scatter_tensor(part, full(4 * len(members), RANK), group=group)
    assert all((part == sum(members)).all() for part in parts)
    lists = [[torch.empty(2, device=DEVICE), torch.empty((3, 5), device=DEVICE)] for _ in members]
    dist.all_gather_coalesced(lists, [full(2, RANK), full((3, 5), -RANK)], group=group)
    assert [(int(a[1]), int(b[2, 4])) for a, b in lists] == [(rank, -rank) for rank in members]
    got = [torch.empty(1 + (RANK + rank) % 3, device=DEVICE) for rank in members]
    dist.all_to_all(got, [full(1 + (RANK + rank) % 3, 10 * RANK + rank) for rank in members], group=group)
    assert [int(part[-1]) for part in got] == [10 * rank + RANK for rank in members]


def groups() -> None:
    """Groups of some ranks, of one, and of all: every rank is in several at the same time."""
    chosen = [[0, SIZE - 1], list(range(1, SIZE)), list(range(SIZE)), [SIZE - 1], [0, 1]]
    groups = [dist.new_group(ranks) for ranks in chosen]
    for ranks, group in zip(chosen, groups, strict=True):
        if RANK not in ranks:
            assert group == dist.GroupMember.NON_GROUP_MEMBER
            continue
        assert isinstance(group, beeline.torch_backend.BeelineProcessGroup)
        assert (group.rank(), group.size()) == (ranks.index(RANK), len(ranks))
        for count in (5, 300_000):
            tensor = full(count, RANK + 1)
            dist.all_reduce(tensor, group=group)
            assert (tensor == sum(ranks) + len(ranks)).all()
            dist.broadcast(tensor.fill_(RANK), ranks[-1], group=group)
            assert (tensor == ranks[-1]).all()
        assert len(ranks) == 1 or beeline.torch_backend.last_transfer(group) in ("staged", "registered", "packets")
        gathered = torch.empty(len(ranks) * 3, device=DEVICE)
        dist.all_gather_into_tensor(gathered, full(3, RANK), group=group)
        assert gathered[::3].tolist() == ranks
        splits = [1 + (RANK + rank) % 3 for rank in ranks]
        got = torch.empty(sum(splits), device=DEVICE)
        dist.all_to_all_single(got, full(sum(splits), RANK), splits, splits, group=group)
        assert got.tolist() == [rank for rank, size in zip(ranks, splits, strict=True) for _ in range(size)]
        to_one_rank(group)
        coalesced(group)
        if len(ranks) > 1:
            any_source(group)
        everyone: list[object] = [None] * len(ranks)
        dist.all_gather_object(everyone, RANK, group=group)
        assert everyone == ranks
        ahead, behind = (ranks[(ranks.index(RANK) + step) % len(ranks)] for step in (1, -1))
        if len(ranks) > 1:
            operations = [
                dist.P2POp(dist.isend, full(4, RANK), ahead, group),
                dist.P2POp(dist.irecv, got := torch.empty(4, device=DEVICE), behind, group),
            ]
            for work in dist.batch_isend_irecv(operations):
                work.wait()
            assert (got == behind).all()
        dist.barrier(group)
    for group in groups:
        dist.destroy_process_group(group)
    for _ in range(40):  # more than may exist at a time
        again = dist.new_group([0, 1])
        if RANK < 2:
            dist.all_reduce(tensor := full(1, 1), group=again)
            assert tensor.item() == 2
        dist.destroy_process_group(again)
    left_for_the_end = dist.new_group([0, 1])
    assert (left_for_the_end == dist.GroupMember.NON_GROUP_MEMBER) == (RANK > 1)
    if RANK < 2:  # the others do not take part
        for _ in range(3):
            pair = dist.new_group([0, 1], use_local_synchronization=True)
            dist.all_reduce(tensor := full(3, RANK), group=pair)
            assert (tensor == 1).all()
            dist.destroy_process_group(pair)


def meshes() -> None:
    """Features that build on groups: meshes of devices, and functional collectives."""
    rows = 2 if SIZE % 2 == 0 else 1
    mesh = init_device_mesh(DEVICE.type, (rows, SIZE // rows), mesh_dim_names=("rows", "columns"))
    for name, size in (("rows", rows), ("columns", SIZE // rows)):
        group = mesh.get_group(name)
        members = dist.get_process_group_ranks(group)
        assert len(members) == size
        assert functional.all_reduce(full(9, RANK), "sum", group).tolist() == [sum(members)] * 9
        assert functional.all_gather_tensor(full(1, RANK), 0, group).tolist() == members


assert dist.get_backend() == "beeline"
print(f"torch {torch.__version__}", flush=True)
CASES = (
    all_reduce, gather_and_scatter, all_to_all, broadcast, to_one_rank, coalesced, messages, time_outs,
    any_source, monitored_barrier, order, let_go, unlike_types, complex_sums, independent, messages_of_groups,
    meshes, groups, refusals,  # groups of some ranks change the numbers of later groups
)  # fmt: skip
for case in CASES:
    case()
    dist.barrier()
    print(f"rank {RANK}: {case.__name__}", flush=True)
for way in () if "operations" in sys.argv else (*torch_training.CASES, *torch_compiled.CASES):
    way(DEVICE)
    dist.barrier()
    print(f"rank {RANK}: {way.__name__}", flush=True)
dist.destroy_process_group()
if WORLD is not None:
    WORLD.leave()
