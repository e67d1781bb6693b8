# SPDX-License-Identifier: Apache-2.0
"""Time-outs of blocking calls: they raise TimeoutError and harm nothing, and a later call finds the work done."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import beeline
import pytest

np = pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

REPOSITORY = Path(__file__).resolve().parents[2]
BRIEF_S, AMPLE_S = 0.03, 60


def times_out(call: Callable[..., None]) -> None:
    """Checks that `call` times out, immediately and after a short time."""
    with pytest.raises(beeline.TimeoutError, match="it goes on, and the same call continues") as late:
        call(timeout=0)
    assert late.value.rank == 0
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=f"after {BRIEF_S} s"):
        call(timeout=BRIEF_S)
    assert time.monotonic() - start >= BRIEF_S


def on_two_ranks(first: Callable[[beeline.World, threading.Event], None], second: Callable[..., None]) -> None:
    """Rank 0 runs `first`, which sets an event when rank 1 may run `second`."""
    may_run = threading.Event()

    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        channels = (collectives, beeline.Messages(world), beeline.StagedChannel(world, chunk_bytes=4096, slots=2))
        if world.rank == 0:
            first(world, may_run, *channels)
        else:
            assert may_run.wait(AMPLE_S)
            second(world, *channels)
        world.barrier()

    beeline.run(2, body, deadline_s=AMPLE_S)


def test_barriers() -> None:
    def first(world, may_run, *_):
        times_out(world.barrier)
        with pytest.raises(beeline.InvalidArgumentError, match="rank 0's last barrier timed out"):
            world.allocate(8)
        may_run.set()
        world.barrier(timeout=AMPLE_S)

    on_two_ranks(first, lambda world, *_: world.barrier())


def test_barriers_of_teams() -> None:
    over = threading.Event()

    def body(world: beeline.World) -> None:
        team = world.make_team([0, 1])
        if world.rank == 0:
            times_out(team.barrier)
            over.set()
        else:
            assert over.wait(AMPLE_S)
        team.barrier(timeout=AMPLE_S)

    beeline.run(2, body, deadline_s=AMPLE_S)


def test_collectives() -> None:
    def first(world, may_run, collectives, *_):
        vector, other = np.full(1000, 3, np.int32), np.zeros(1000, np.int32)
        times_out(lambda timeout: collectives.allreduce(vector, timeout=timeout))
        with pytest.raises(beeline.InvalidArgumentError, match="broadcast: allreduce timed out and goes on"):
            collectives.broadcast(other, root=0)
        with pytest.raises(beeline.InvalidArgumentError, match="allreduce: allreduce timed out"):
            collectives.allreduce(other)
        may_run.set()
        collectives.allreduce(vector, timeout=AMPLE_S)
        assert (vector == 7).all()
        collectives.allreduce(vector)  # a new call again
        assert (vector == 7 + 11).all()
        times_out(lambda timeout: collectives.barrier(timeout=timeout))
        again.set()
        world.synchronize(timeout=AMPLE_S)  # finds the barrier done, too
        collectives.broadcast(other, root=1)
        assert (other == 5).all()

    def second(world, collectives, *_):
        vector = np.full(1000, 4, np.int32)
        collectives.allreduce(vector)
        collectives.allreduce(np.full(1000, 11, np.int32))
        assert again.wait(AMPLE_S)
        collectives.barrier()
        collectives.broadcast(np.full(1000, 5, np.int32), root=1)

    again = threading.Event()
    on_two_ranks(first, second)


def test_calls_with_other_arguments_are_not_taken_for_it() -> None:
    def first(world, may_run, collectives, messages, *_):
        source, got = np.full(1000, 3, np.int32), np.zeros(1000, np.int32)
        times_out(lambda timeout: collectives.allreduce(got, source, timeout=timeout))
        for other in (
            lambda: collectives.allreduce(got, source, "maximum"),
            lambda: collectives.allreduce(got[:10], source[:10]),
            lambda: collectives.allreduce(got.view(np.float32), source.view(np.float32)),
            lambda: collectives.allreduce(got, source, algorithm="two_shot"),
            lambda: collectives.allreduce(got, source, stream=world.make_stream()),
        ):
            with pytest.raises(beeline.InvalidArgumentError, match="again with the same arguments, or synchronize"):
                other()
        may_run.set()
        collectives.allreduce(got, source)
        assert (got == 7).all()
        times_out(lambda timeout: messages.send_receive(source, 1, got, 1, timeout=timeout))
        with pytest.raises(beeline.InvalidArgumentError, match="again with the same arguments"):
            messages.send_receive(source, 1, got, 0)
        again.set()
        messages.send_receive(source, 1, got, 1)
        assert (got == 5).all()

    def second(world, collectives, messages, *_):
        collectives.allreduce(np.full(1000, 4, np.int32))
        assert again.wait(AMPLE_S)
        messages.send_receive(np.full(1000, 5, np.int32), 0, np.zeros(1000, np.int32), 0)

    again = threading.Event()
    on_two_ranks(first, second)


def test_a_freed_channel_has_no_call_to_continue() -> None:
    def first(world, may_run, collectives, *_):
        vector = np.full(1000, 3, np.int32)
        times_out(lambda timeout: collectives.allreduce(vector, timeout=timeout))
        may_run.set()
        collectives.free()
        meet_anew(world)

    def second(world, collectives, *_):
        collectives.allreduce(np.full(1000, 4, np.int32))
        collectives.free()
        meet_anew(world)

    def meet_anew(world):
        vector = np.full(10, 1 + world.rank, np.int32)
        beeline.Collectives(world).allreduce(vector)
        assert (vector == 3).all()

    on_two_ranks(first, second)


def test_a_world_is_not_left_with_a_barrier_open() -> None:
    def first(world, may_run, collectives, *_):
        times_out(world.barrier)
        for _ in range(2):
            with pytest.raises(beeline.InvalidArgumentError, match="last barrier timed out"):
                world.leave()
        with pytest.raises(beeline.InvalidArgumentError, match="last barrier timed out"):
            collectives.free()
        may_run.set()
        world.barrier()
        vector = np.full(10, 1, np.int32)
        collectives.allreduce(vector)  # nothing was destroyed
        assert (vector == 3).all()

    def second(world, collectives, *_):
        world.barrier()
        collectives.allreduce(np.full(10, 2, np.int32))

    on_two_ranks(first, second)


def test_streams_and_events() -> None:
    def first(world, may_run, collectives, *_):
        vector, stream = np.full(1000, 3, np.int32), world.make_stream()
        collectives.allreduce(vector, stream=stream)
        event = stream.record()
        times_out(lambda timeout: world.synchronize(stream, timeout=timeout))
        times_out(event.wait)
        with pytest.raises(ValueError, match="a call on a stream does not block"):
            collectives.allreduce(vector, stream=stream, timeout=1)
        may_run.set()
        event.wait(timeout=AMPLE_S)
        world.synchronize(stream, timeout=AMPLE_S)
        assert (vector == 7).all()

    on_two_ranks(first, lambda world, collectives, *_: collectives.allreduce(np.full(1000, 4, np.int32)))


@pytest.mark.parametrize("channel", [1, 2], ids=["messages", "staged"])
def test_messages(channel: int) -> None:
    count = 100_000

    def first(world, may_run, *channels):
        got = np.zeros(count, np.int32)
        times_out(lambda timeout: channels[channel].receive(got, 1, timeout=timeout))
        may_run.set()
        channels[channel].receive(got, 1, timeout=AMPLE_S)
        assert (got == np.arange(count)).all()

    on_two_ranks(first, lambda world, *channels: channels[channel].send(np.arange(count, dtype=np.int32), 0))


def test_a_deadline_comes_before_a_longer_timeout() -> None:
    def body(world: beeline.World) -> None:
        if world.rank == 0:
            with pytest.raises(beeline.DeadlineError, match="barrier on rank 1"):
                world.barrier(timeout=AMPLE_S)
            over.set()
        else:
            assert over.wait(AMPLE_S)

    over = threading.Event()
    beeline.run(2, body, deadline_s=1.5)


def test_what_is_no_time() -> None:
    with beeline.World.create(device="cpu") as world:
        for bad in (-1, float("nan")):
            with pytest.raises(ValueError, match="timeout: a number of seconds from 0 on"):
                world.synchronize(timeout=bad)
        world.synchronize(timeout=float("inf"))
        world.barrier(timeout=0)


PROGRAM = """
import pathlib, sys, time
import beeline, numpy as np
with beeline.World.create() as world:
    collectives, flag = beeline.Collectives(world), pathlib.Path(sys.argv[1])
    vector = np.full(10, world.rank + 1)
    if world.rank == 0:
        try:
            collectives.allreduce(vector, timeout=0.05)
            raise SystemExit("no time-out")
        except beeline.TimeoutError:
            flag.touch()
    else:
        while not flag.exists():
            time.sleep(0.01)
    collectives.allreduce(vector)
    print(vector[0])
"""


def test_ranks_that_are_processes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [REPOSITORY / "build" / "bin" / "beeline-launch", "-n", "2", "--device", "cpu", "--", sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python")}
    done = subprocess.run(
        [*command, program, tmp_path / "flag"], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] 3", "[1] 3"]
