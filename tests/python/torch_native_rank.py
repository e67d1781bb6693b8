# SPDX-License-Identifier: Apache-2.0
"""One rank of test_torch_native.py: calls of torch's C++ code, and a JSON line of their results.

python torch_native_rank.py [dies]: the last rank ends before the last call.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta

import beeline
import beeline.torch_backend
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from beeline import torch_native

WORLD = beeline.World.create()
STORE = beeline.torch_backend.make_store(WORLD)
dist.init_process_group("beeline", store=STORE, rank=WORLD.rank, world_size=WORLD.size, pg_options=WORLD)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GROUP = dist.group.WORLD
DEVICE = torch.device("cuda", WORLD.device.index) if WORLD.device.kind == "gpu" else torch.device("cpu")
if DEVICE.type == "cuda":
    torch.cuda.set_device(DEVICE)
torch.manual_seed(RANK)
results: dict[str, str] = {}


def note(name: str, *tensors: torch.Tensor) -> None:
    rows = [tensor.detach().cpu().contiguous().view(-1).view(torch.uint8) for tensor in tensors]
    data = b"".join(row.numpy().tobytes() for row in rows)
    results[name] = hashlib.sha256(data).hexdigest()


def native_calls() -> int:
    native = torch_native.in_use()
    return 0 if native is None else native.calls(GROUP)


def functions() -> None:
    def both(name: str, call: Callable[..., torch.Tensor | list[torch.Tensor]], *arguments: object) -> None:
        before = native_calls()
        done = call(*arguments, GROUP)
        note(name, *([done] if isinstance(done, torch.Tensor) else done))
        assert (native_calls() > before) == used, name

    for count in (1, 999, 1 << 20):
        for dtype in (torch.float32, torch.bfloat16, torch.int32):
            mine = torch.rand(count * SIZE, device=DEVICE).mul(9).to(dtype)
            name = f"{count} {dtype}"
            for reduction in ("sum", "max"):
                both(f"all_reduce {reduction} {name}", functional.all_reduce, mine, reduction)
            both(f"all_gather {name}", functional.all_gather_tensor, mine, 0)
            both(f"reduce_scatter {name}", functional.reduce_scatter_tensor, mine, "sum", 0)
            both(f"broadcast {name}", functional.broadcast, mine, 1)
            both(f"all_to_all {name}", functional.all_to_all_single, mine, None, None)
            both(f"even all_to_all {name}", even_all_to_all, mine)
    parts = [torch.rand(64 * (each + 1), device=DEVICE) for each in range(3)]
    both("all_reduce_coalesced", functional.all_reduce_coalesced, parts, "avg")
    both("all_gather_coalesced", functional.all_gather_into_tensor_coalesced, parts)
    rows = torch.rand(SIZE * 6, 3, device=DEVICE)
    both("reduce_scatter_coalesced", functional.reduce_scatter_tensor_coalesced, [rows], "sum", [0])
    splits = [1 + (RANK + rank) % 3 for rank in range(SIZE)]
    both("all_to_all in parts", functional.all_to_all_single, rows[: sum(splits)].clone(), splits, splits)


def even_all_to_all(mine: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    got = torch.empty_like(mine)
    dist.ProcessGroup.alltoall_base(group, got, mine, [], []).wait()  # as C++ code calls it
    return got


def lists() -> None:
    """Lists of tensors, also of several types, not contiguous, and asynchronously."""
    for is_async in (False, True):
        for dtype in (torch.float32, torch.bool, torch.complex64):
            name = f"{dtype} async={is_async}"
            mine = torch.rand(5, 3, device=DEVICE).mul(9).to(dtype)
            gathered = [torch.zeros(3, 5, dtype=dtype, device=DEVICE).t() for _ in range(SIZE)]
            sent = [mine.flip(0).contiguous() for _ in range(SIZE)]
            end(dist.all_gather(gathered, mine, async_op=is_async))
            note(f"all_gather {name}", *gathered)
            end(dist.gather(mine, gathered if RANK == 1 else None, 1, async_op=is_async))
            note(f"gather {name}", *gathered)
            end(dist.scatter(mine, sent if RANK == 1 else None, 1, async_op=is_async))
            note(f"scatter {name}", mine)
            got = [torch.zeros(1 + (RANK + rank) % 3, dtype=dtype, device=DEVICE) for rank in range(SIZE)]
            end(dist.all_to_all(got, [mine.view(-1)[: each.numel()].clone() for each in got], async_op=is_async))
            note(f"all_to_all {name}", *got)
            if dtype == torch.float32:
                end(dist.reduce_scatter(mine, sent, async_op=is_async))
                note(f"reduce_scatter {name}", mine)
    work = dist.all_gather(gathered, mine, async_op=True)
    while not work.is_completed():
        pass
    if DEVICE.type == "cpu":
        assert torch.equal(torch.view_as_real(gathered[RANK]), torch.view_as_real(mine))  # without `wait`
    end(work)


def end(work: dist.Work | None) -> None:
    if work is not None:
        assert work.wait()


def works() -> None:
    for is_async in (False, True):
        tensor, options = torch.ones(1 << 20, device=DEVICE), dist.AllreduceOptions()
        options.asyncOp = is_async
        work = dist.ProcessGroup.allreduce(GROUP, [tensor], options)
        if used and not is_async:
            assert work is None  # like torch's own back ends: the call has synchronized
            assert (tensor == SIZE).all()
            continue
        assert work.wait()
        future = work.get_future()
        assert (future.wait()[0] == SIZE).all()
        if used:
            work.synchronize()
            if DEVICE.type == "cuda":
                torch.cuda.synchronize()
            assert work.is_completed()
            assert work.is_success()
            assert work.result()[0] is tensor
            assert future.value()[0] is tensor
    with pytest.raises(ValueError, match="tensors: one is expected" if used else "too many values"):
        dist.ProcessGroup.allreduce(GROUP, [tensor, tensor], options)


def failures() -> None:
    """A failed call of a host rank is completed, but without success."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    if RANK == 0:
        options = dist.AllreduceOptions()
        options.asyncOp = True
        work = dist.ProcessGroup.allreduce(group, [torch.ones(3)], options)
        with pytest.raises(beeline.DeadlineError, match="in allreduce"):
            work.wait()
        if used:  # torch's own class answers otherwise
            assert (work.is_completed(), work.is_success()) == (True, False)
    dist.barrier()
    dist.destroy_process_group(group)


def buffers() -> None:
    each = [torch.rand(count, device=DEVICE) for count in (3, 70_000, 1)]
    dist._broadcast_coalesced(GROUP, each, 1 << 16, 0)
    note("buffers", *each)


def gradients() -> None:
    torch.manual_seed(1)
    layers = [torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 8)]
    model = torch.nn.Sequential(*layers).to(DEVICE)
    parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
    torch.manual_seed(RANK)
    for _ in range(5):
        optimizer.zero_grad()
        parallel(torch.rand(32, 64, device=DEVICE)).square().mean().backward()
        optimizer.step()
    note("gradients", *model.parameters(), *model.buffers())


def futures() -> None:
    tensor = torch.full((5,), float(RANK), device=DEVICE)
    work = dist.all_reduce(tensor, async_op=True)
    (sum_of_all,) = work.get_future().then(lambda done: [done.value()[0] * 2]).wait()
    assert (sum_of_all == SIZE * (SIZE - 1)).all()
    note("future", sum_of_all)


def captured() -> None:
    """Calls captured in a CUDA graph, between calls that are not captured."""
    for count in (8, 1 << 20):
        tensor = torch.ones(count, device=DEVICE)
        for _ in range(3):
            sum_of(tensor)
        torch.cuda.synchronize()
        dist.barrier()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = sum_of(tensor)
        for step in range(3):
            tensor.fill_(RANK + step)
            graph.replay()
            assert (result == sum_of(tensor)).all()
            note(f"captured {count} {step}", result)
        torch.cuda.synchronize()
        dist.barrier()
        del graph


def sum_of(tensor: torch.Tensor) -> torch.Tensor:
    done = torch.ops._c10d_functional.all_reduce(tensor, "sum", GROUP.group_name)
    return torch.ops._c10d_functional.wait_tensor(done)


def refusals() -> None:
    with pytest.raises(ValueError, match="there is no sum of bool"):
        functional.all_reduce(torch.ones(3, dtype=torch.bool, device=DEVICE), "sum", GROUP).sum()
    got, mine = torch.ones(SIZE, device=DEVICE), torch.ones(2 * SIZE, device=DEVICE)
    with pytest.raises(ValueError, match=f"sizes must be as {SIZE} to {SIZE}"):
        dist.ProcessGroup.alltoall_base(GROUP, got, mine, [], [])
    with pytest.raises(beeline.InvalidArgumentError, match="root"):
        functional.broadcast(torch.ones(3, device=DEVICE), SIZE, GROUP)
    with pytest.raises(ValueError, match=r"splits .*: there are"):
        functional.all_to_all_single(torch.ones(SIZE, device=DEVICE), [1] * SIZE, [2] * SIZE, GROUP).sum()


def derived() -> None:
    class Mine(beeline.torch_backend.BeelineProcessGroup):
        pass

    group = Mine(WORLD, GROUP._store, False, WORLD.make_team(list(range(SIZE)), GROUP._store.allgather), GROUP)
    assert "may change its calls" in group.native or not used
    group.shutdown()


def versions() -> None:
    """A C++ part and a library whose tables differ in version refuse each other."""
    if not used:
        return
    native, number = torch_native.in_use(), ctypes.c_uint32(99)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    with pytest.raises(ImportError, match=r"calls version \d+ of the library's table, .* has version 99"):
        native.use(make(ctypes.addressof(number), b"beeline.torch_table", None))
    with pytest.raises(ValueError, match="incorrect name"):
        native.use(make(ctypes.addressof(number), b"beeline.other", None))


def call_until_it_fails() -> None:
    while True:
        functional.all_reduce(torch.ones(3, device=DEVICE), "sum", GROUP).sum().item()
        dist.barrier()


used = os.environ["BEELINE_TORCH_NATIVE"] == "1"
assert GROUP.native == ("yes" if used else "no: BEELINE_TORCH_NATIVE=0"), GROUP.native
parts = [functions, lists, works, buffers, gradients, futures, refusals, derived, versions]
for part in (*parts, captured if DEVICE.type == "cuda" else failures):
    before = native_calls()
    part()
    assert (native_calls() > before) == (used and part not in (derived, versions)), part
last = functional.all_reduce(torch.full((70_000,), 1.0, device=DEVICE), "sum", GROUP)
if "dies" in sys.argv:
    if RANK == SIZE - 1:
        os._exit(3)
    with pytest.raises(beeline.PeerDiedError, match=f"rank {SIZE - 1} "):
        call_until_it_fails()
    print(f"rank {RANK} hears it", flush=True)
    os._exit(0)
dist.destroy_process_group()
WORLD.leave()
assert (last == SIZE).all()  # this waits for a call of the group that was destroyed
print(json.dumps({"rank": RANK, "results": results}), flush=True)
