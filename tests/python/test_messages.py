# SPDX-License-Identifier: Apache-2.0
"""Messages on numpy arrays and on memory of the world, on host ranks that are threads."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import beeline
import pytest

np = pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8"])
@pytest.mark.parametrize("count", [0, 1, 77, 100_003])
def test_messages_go_round(dtype: str, count: int) -> None:
    def body(world: beeline.World) -> None:
        messages = beeline.Messages(world)
        after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        mine, got = np.full(count, world.rank, dtype), np.zeros(count, dtype)
        messages.send_receive(mine, after, got, before)
        assert (got == before).all()
        memory = world.allocate(max(count, 1), dtype)
        if world.rank % 2 == 0:
            messages.send(mine, after)
            messages.receive(got, before, blocks=0)
        else:
            messages.receive(got, before)
            messages.send(mine, after)
        assert (got == before).all()
        if count:
            messages.send_receive(got, before, memory, after)
            assert (np.from_dlpack(memory) == world.rank).all()

    beeline.run(4, body)


def test_streams_keep_what_they_send_in_order() -> None:
    def body(world: beeline.World) -> None:
        messages = beeline.Messages(world, eager_bytes=64, chunk_bytes=256)
        peer = 1 - world.rank
        sending, receiving = world.make_stream(), world.make_stream()
        sizes = [8, 3000, 1, 64, 65, 0, 5000] * 3
        got = [np.zeros(size, "uint8") for size in sizes]
        events = []
        for number, size in enumerate(sizes):
            messages.send(np.full(size, number + world.rank, "uint8"), peer, stream=sending)
            messages.receive(got[number], peer, stream=receiving)
            events.append(receiving.record())
        for number, event in enumerate(events):
            event.wait()
            assert event.done
            assert (got[number] == number + peer).all()
        world.synchronize(sending)

    beeline.run(2, body)


def test_messages_are_found_before_they_are_received() -> None:
    def body(world: beeline.World) -> None:
        messages = beeline.Messages(world, eager_bytes=64)
        peer, sending = 1 - world.rank, world.make_stream()
        for size in (8, 5000):
            assert not messages.probe(peer)
            world.barrier()
            messages.send(np.ones(size, "uint8"), peer, stream=sending)
            limit = time.monotonic() + 20
            while not messages.probe(peer):
                assert time.monotonic() < limit
            messages.receive(np.zeros(size, "uint8"), peer)
            world.synchronize(sending)
            assert not messages.probe(peer)
            world.barrier()
        with pytest.raises(beeline.InvalidArgumentError, match="peer 2 of a team of 2"):
            messages.probe(2)

    beeline.run(2, body)


def test_messages_of_a_team_alone() -> None:
    def body(world: beeline.World) -> None:
        team = world.make_team([rank for rank in range(world.size) if rank % 2 == world.rank % 2])
        for size in (8, 50_000):
            messages = beeline.Messages(team)
            got = np.zeros(size, "uint8")
            after, before = (team.rank + 1) % team.size, (team.rank - 1) % team.size
            messages.send_receive(np.full(size, world.rank, "uint8"), after, got, before)
            assert (got == team.ranks[before]).all()
            messages.free()
        with pytest.raises(beeline.InvalidArgumentError, match="these messages were freed"):
            messages.send(got, 0)

    beeline.run(5, body)


def test_what_is_refused() -> None:
    def body(world: beeline.World) -> None:
        messages = beeline.Messages(world, eager_bytes=64)
        array = np.ones(100, "uint8")
        assert messages.is_eager(64)
        assert not messages.is_eager(65)
        with pytest.raises(ValueError, match="source: ndarray that is not contiguous"):
            messages.send(array[::2], 0)
        with pytest.raises(TypeError, match="destination: expected a numpy array"):
            messages.receive([1.0], 0)
        with pytest.raises(beeline.InvalidArgumentError, match="peer 2 of a team of 2"):
            messages.send(array, 2)
        with pytest.raises(beeline.InvalidArgumentError, match="to itself, more than the 64"):
            messages.send(array, world.rank)
        with pytest.raises(beeline.InvalidArgumentError, match="depth 3"):
            beeline.Messages(world, depth=3)

    beeline.run(2, body)


def test_another_length_names_both() -> None:
    def body(world: beeline.World) -> None:
        messages = beeline.Messages(world)
        sending = world.make_stream()
        if world.rank == 0:
            messages.send(np.ones(8, "uint8"), 1, stream=sending)
        # Rank 0 waits until the mismatch is reported to it.
        with pytest.raises(beeline.Error, match="rank 1 receives 9 bytes in 1 block, rank 0 sends 8 bytes in 1 block"):
            messages.receive(np.ones(8 + world.rank, "uint8"), 1 - world.rank)
        raise KeyError("found")

    with pytest.raises(KeyError, match="found"):
        beeline.run(2, body, deadline_s=5)


INTERRUPTED = """
import signal, numpy as np, beeline
def interrupt(*_): raise KeyboardInterrupt
with beeline.World.create() as world:
    messages = beeline.Messages(world)
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    messages.receive(np.empty(1), 0)
"""


def test_an_interrupt_is_not_lost_in_the_error_of_the_deadline() -> None:
    environment = {**os.environ, "BEELINE_DEVICE": "cpu", "BEELINE_DEADLINE_S": "1"}
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.stderr.strip().splitlines()[-1] == "KeyboardInterrupt"
