# SPDX-License-Identifier: Apache-2.0
"""The library on torch's tensors in GPU memory; skipped without torch or without a GPU."""

from __future__ import annotations

from typing import Any

import beeline
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
np = pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)
if torch.cuda.device_count() == 0:
    pytest.skip("no GPU", allow_module_level=True)

GPUS = torch.cuda.device_count()


def test_memory_is_a_tensor_without_a_copy() -> None:
    with beeline.World.create(device="cuda:0") as world:
        memory = world.allocate((3, 4), torch.bfloat16)
        assert memory.__dlpack_device__() == (2, 0)
        tensor = torch.from_dlpack(memory)
        assert (tensor.data_ptr(), tensor.device) == (memory.address, torch.device("cuda:0"))
        assert (tensor.shape, tensor.dtype) == ((3, 4), torch.bfloat16)
        assert not tensor.any()
        tensor.fill_(2)
        torch.cuda.synchronize()
        copy = torch.empty(3, 4, dtype=torch.bfloat16)
        world.copy(copy, memory)
        assert (copy == 2).all()
        assert world.owner_of(tensor) == 0
        assert world.owner_of(torch.ones(1, device="cuda:0")) is None


def test_pinned_memory_is_a_cpu_tensor() -> None:
    with beeline.World.create(device="cuda:0") as world:
        view = np.from_dlpack(world.allocate(100, "int32", heap="pinned"))
        view[:] = 5
        tensor = torch.empty(100, dtype=torch.int32, device="cuda:0")
        world.copy(tensor, view)
        assert (tensor == 5).all()


def expect_copies_in_the_order_of_the_stream(world: beeline.World, stream: beeline.Stream, outside: Any) -> None:
    source, result = torch.zeros(1 << 20, device="cuda:0"), torch.empty(1 << 20)
    torch.cuda.synchronize()
    with torch.cuda.stream(outside):
        source.fill_(3)
    world.copy(result, source, stream)
    world.synchronize(stream)
    assert (result == 3).all()


def test_streams_are_torchs_too() -> None:
    with beeline.World.create(device="cuda:0") as world:
        stream = world.make_stream()
        expect_copies_in_the_order_of_the_stream(world, stream, torch.cuda.ExternalStream(stream.native, "cuda:0"))


def test_torchs_stream_is_one_of_the_ranks() -> None:
    with beeline.World.create(device="cuda:0") as world:
        outside = torch.cuda.Stream("cuda:0", priority=-1)
        stream = world.adopt_stream(outside.cuda_stream)
        assert stream.native == outside.cuda_stream
        expect_copies_in_the_order_of_the_stream(world, stream, outside)


def test_what_this_rank_does_not_reach_is_refused() -> None:
    with beeline.World.create(device="cuda:0") as world:
        collectives = beeline.Collectives(world)
        with pytest.raises(ValueError, match="destination: a tensor in host memory, but rank 0 runs on GPU 0"):
            collectives.allreduce(np.ones(4))
    with beeline.World.create(device="cpu") as world, pytest.raises(ValueError, match="no rank of this world has one"):
        world.copy(np.ones(4, "float32"), torch.ones(4, device="cuda:0"))


@pytest.mark.skipif(GPUS < 2, reason=f"{GPUS} GPUs: two are needed")
@pytest.mark.parametrize("count", [1, 1000, 1 << 20])
def test_all_reduce_of_heap_and_other_tensors(count: int) -> None:
    def body(world: beeline.World) -> None:
        device = torch.device("cuda", world.device.index)
        collectives = beeline.Collectives(world)
        memory = world.allocate(count, "float32")
        inside, outside = torch.from_dlpack(memory), torch.empty(count, device=device)
        for tensor in (inside, outside):
            tensor.fill_(world.rank + 1)
        torch.cuda.synchronize(device)
        collectives.allreduce(memory)
        collectives.allreduce(outside, reduction="maximum")
        assert (inside == 3).all()
        assert (outside == 2).all()

    beeline.run(2, body, device="auto", deadline_s=30)


@pytest.mark.skipif(GPUS < 2, reason=f"{GPUS} GPUs: two are needed")
def test_calls_of_teams_tell_how_they_moved_data() -> None:
    def body(world: beeline.World) -> None:
        device, count = torch.device("cuda", world.device.index), 4 << 20
        team = world.make_team([0, 1])
        inside, outside = world.allocate(count, "float32"), torch.ones(count, device=device)
        torch.cuda.synchronize(device)
        for collectives in (beeline.Collectives(world), beeline.Collectives(team)):
            for tensor, expected in ((inside, "in_place"), (outside, "staged"), (outside[:8], "packets")):
                collectives.allreduce(tensor)
                assert collectives.last_transfer == expected
            collectives.broadcast(inside, root=1)
            assert collectives.last_transfer == "in_place"
            collectives.free()

    beeline.run(2, body, device="auto", deadline_s=30)
