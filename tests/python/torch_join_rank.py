# SPDX-License-Identifier: Apache-2.0
"""One rank of test_torch_backend.py that no launcher has started: worlds made by torch's stores, and their ends.

python torch_join_rank.py RANK SIZE FOLDER: FOLDER is empty, and the same for all ranks.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import beeline
import beeline.torch_backend
import pytest
import torch
import torch.distributed as dist
from ports import free_port

RANK, SIZE, FOLDER = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
DEADLINE_S = 20
META = dist.FileStore(str(FOLDER / "meta"), SIZE)  # for the test itself


def agreed(name: str, value: Callable[[], object]) -> str:
    """Rank 0's."""
    if RANK == 0:
        META.set(name, str(value()))
    return META.get(name).decode()


def meet(name: str) -> None:
    META.set(f"{name}/{RANK}", "here")
    META.wait([f"{name}/{rank}" for rank in range(SIZE)], timedelta(seconds=DEADLINE_S))


def init(method: str | None = None, seconds: float = DEADLINE_S, **options: object) -> beeline.World:
    if method is not None:
        options |= {"init_method": method, "rank": RANK, "world_size": SIZE}
    dist.init_process_group("beeline", timeout=timedelta(seconds=seconds), **options)
    group = dist.group.WORLD
    assert isinstance(group, beeline.torch_backend.BeelineProcessGroup)
    return group.world


def use(world: beeline.World) -> None:
    assert (world.rank, world.size) == (RANK, SIZE)
    tensor = torch.full((3,), RANK + 1.0)
    dist.all_reduce(tensor)
    assert (tensor == SIZE * (SIZE + 1) / 2).all()
    dist.destroy_process_group()


def by_file() -> None:
    use(init(f"file://{FOLDER}/by_file"))


def by_tcp() -> None:
    use(init(f"tcp://127.0.0.1:{agreed('port', free_port)}"))
    # Torch warns on standard error of waits that end without the key. No rank makes such a wait when rank 0 comes late.
    port = int(agreed("late", free_port))
    store = dist.TCPStore("127.0.0.1", port, SIZE, is_master=RANK == 0, wait_for_workers=False)
    if RANK == 0:
        time.sleep(0.2)
    use(init(store=store, rank=RANK, world_size=SIZE))


def by_environment() -> None:
    place = {"RANK": RANK, "WORLD_SIZE": SIZE, "MASTER_ADDR": "localhost", "MASTER_PORT": agreed("env", free_port)}
    os.environ.update({name: str(value) for name, value in place.items()})
    for _ in range(2):  # the second group uses the same names in the program's store
        use(init())


def beside_another_back_end() -> None:
    dist.init_process_group("gloo", init_method=f"file://{FOLDER}/gloo", rank=RANK, world_size=SIZE)
    group = dist.new_group(backend="beeline", timeout=timedelta(seconds=7))
    assert isinstance(group, beeline.torch_backend.BeelineProcessGroup)
    assert group.world.deadline_s == 7
    dist.all_reduce(tensor := torch.ones(5), group=group)
    assert (tensor == SIZE).all()
    dist.destroy_process_group()


def missing_ranks() -> None:
    """No other rank joins: each rank has a store of its own."""
    others = [rank for rank in range(SIZE) if rank != 0] if RANK == 0 else [0]
    store = dist.FileStore(str(FOLDER / f"alone{RANK}"), SIZE)
    beeline.torch_join.FIRST_RANKS_LEAD = timedelta(0)
    with pytest.raises(beeline.DeadlineError, match=rf"within 0.3 s \(`timeout` .*nothing came from ranks \{others}"):
        dist.init_process_group("beeline", store=store, rank=RANK, world_size=SIZE, timeout=timedelta(seconds=0.3))


def a_rank_that_does_not_call() -> None:
    """The deadline is the program's, and the error names the missing rank and the time."""
    world = init(f"file://{FOLDER}/silent", 2)
    assert world.deadline_s == 2
    with pytest.raises(ValueError, match="timeout of 0 s: expected more than 0"):
        dist.new_group(timeout=timedelta(0))
    if RANK == 0:
        parts = list(torch.ones(SIZE, 3))
        pending = [
            dist.all_reduce(torch.ones(3), async_op=True), dist.all_gather(parts, torch.ones(3), async_op=True),
            dist.barrier(async_op=True),
        ]  # fmt: skip
        for work in pending:
            with pytest.raises(beeline.DeadlineError, match=r"on rank 1 in allreduce.*after [2-9]\.\d+ s"):
                work.wait()
            assert (work.is_completed(), work.is_success()) == (True, False)
            assert "on rank 1 in allreduce" in str(work.exception())
    meet("called")
    dist.destroy_process_group()


def group_time_outs() -> None:
    """A group has its own deadline, limited by that of streams."""
    world = init(f"file://{FOLDER}/groups")
    group = dist.new_group(timeout=timedelta(seconds=1))
    if RANK == 0:
        begin = time.monotonic()
        with pytest.raises(beeline.Error):
            dist.all_reduce(torch.ones(3), group=group)
        assert time.monotonic() - begin < DEADLINE_S / 2
    meet("ended")
    assert not world.failed
    with pytest.raises(beeline.InvalidArgumentError, match="a team's deadline of 9000 s: at most 600 s"):
        dist.new_group(timeout=timedelta(seconds=9000))
    use(world)


def unlike_tags() -> None:
    """Compared where messages meet."""
    init(f"file://{FOLDER}/tags")
    dist.new_group()
    for tag in (0, 5, 2047):
        dist.send(torch.ones(2), 1, tag=tag) if RANK == 0 else dist.recv(torch.ones(2), 0, tag=tag)
    with pytest.raises(beeline.InvalidArgumentError, match="tag 2048 of a message: at most 2047"):
        dist.send(torch.ones(2), 1 - RANK, tag=2048)

    def exchange() -> None:
        dist.send(torch.ones(2), 1, tag=3) if RANK == 0 else dist.recv(torch.ones(2), 0, tag=4)
        dist.barrier()  # rank 0 may get the error only here

    one = "8 bytes of float32 in 1 block with tag"
    text = f"rank 1 receives {one} 4, rank 0 sends {one} 3"
    with pytest.raises(beeline.Error, match=text):
        exchange()
    meet("tags")
    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("beeline").addHandler(handler)
    dist.destroy_process_group()
    logging.getLogger("beeline").removeHandler(handler)
    assert len(logged) == 1, logged  # of both groups
    assert text in logged[0]


def unlike_calls() -> None:
    """Members of a group make different calls: the error names both calls, at the next call at the latest."""
    init(f"file://{FOLDER}/calls")
    dtype, operation = (torch.float32, torch.int32)[RANK], (dist.ReduceOp.SUM, dist.ReduceOp.MAX)[RANK]
    for text, call in (
        (r"broadcast\(float32, 10 elements, root [01]\)", lambda group: dist.broadcast(torch.ones(10), RANK, group)),
        (
            r"scatter\(float32, 3 elements, root [01]\)",
            lambda group: dist.scatter(torch.ones(3), [torch.ones(3)] * SIZE, RANK, group),
        ),
        (
            r"broadcast\((float32|int32), 4 elements, root 0\)",
            lambda group: dist.broadcast(torch.ones(4, dtype=dtype), 0, group, async_op=True).wait(),
        ),
        (r"allreduce\(sum, float32, [34] elements\)", lambda group: dist.all_reduce(torch.ones(3 + RANK), group=group)),
        (r"allreduce\((sum|maximum), float32", lambda group: dist.all_reduce(torch.ones(3), operation, group)),
        (
            r"(allgather|alltoall)\(float32, [12] elements?\)",
            lambda group: (dist.all_gather_into_tensor, dist.all_to_all_single)[RANK](
                torch.ones(4), torch.ones(2 + 2 * RANK), group=group
            ),
        ),
    ):
        group = dist.new_group()
        with pytest.raises(beeline.Error, match=text):
            (call(group), dist.all_reduce(torch.ones(4), group=group))
        meet(text)
        dist.destroy_process_group(group)
    dist.destroy_process_group()


for case in (
    by_file, by_tcp, by_environment, beside_another_back_end, missing_ranks, a_rank_that_does_not_call,
    group_time_outs, unlike_tags, unlike_calls,
):  # fmt: skip
    case()
    meet(case.__name__)
    print(f"rank {RANK}: {case.__name__}", flush=True)
