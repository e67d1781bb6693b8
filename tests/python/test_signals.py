# SPDX-License-Identifier: Apache-2.0
"""Signals, puts with signals, and numbers combined over the ranks; on host ranks that are threads."""

from __future__ import annotations

import threading

import beeline
import pytest

np = pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)


@pytest.mark.parametrize("on_stream", [False, True])
def test_puts_and_signals_go_round(on_stream: bool) -> None:
    def body(world: beeline.World) -> None:
        signals, memory = beeline.Signals(world, 3), world.allocate(1000, "int64")
        stream = world.make_stream() if on_stream else None
        after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        got = np.from_dlpack(memory)
        for round_ in range(1, 20):
            signals.put_signal(memory, np.full(1000, 100 * world.rank + round_), 0, round_, after, stream=stream)
            signals.wait(0, round_, peer=before)
            assert (got == 100 * before + round_).all()
            signals.signal(1, round_, before, stream=stream)
            signals.wait(1, round_, "==", peer=after)
        assert signals.read(0) == 19
        assert signals.exchange(0, 5) == 19
        assert signals.read(0) == 5
        assert len(signals) == 3
        if stream:
            world.synchronize(stream)

    beeline.run(3, body)


@pytest.mark.parametrize("on_stream", [False, True])
def test_one_signal_counts_what_many_send(on_stream: bool) -> None:
    def body(world: beeline.World) -> None:
        signals, memory = beeline.Signals(world, 2), [world.allocate(7, "float32") for _ in range(world.size)]
        stream = world.make_stream() if on_stream else None
        for peer in range(world.size):
            mine = np.full(7, world.rank + 10 * peer, "float32")
            signals.put_signal_add(memory[world.rank], mine, 0, 1, peer, stream=stream)
            signals.signal_add(1, world.rank + 1, peer, stream=stream)
        signals.wait(0, world.size)
        signals.wait(1, world.size * (world.size + 1) // 2, "==")
        for rank, each in enumerate(memory):
            assert (np.from_dlpack(each) == rank + 10 * world.rank).all()

    beeline.run(4, body)


def test_values_on_streams_go_on() -> None:
    def body(world: beeline.World) -> None:
        signals, memory = beeline.Signals(world, 1), world.allocate(3, "int64")
        stream, sent, awaited = world.make_stream(), world.allocate(1, "uint64"), world.allocate(1, "uint64")
        after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        for round_ in range(1, 20):
            source = np.full(3, 100 * world.rank + round_)
            signals.put_signal(memory, source, 0, 2, after, stream=stream, sequence=sent)
            signals.signal(0, 1, after, stream=stream, sequence=sent)
            signals.wait(0, 3, peer=before, stream=stream, sequence=awaited)
            world.synchronize(stream)
            assert signals.read(0) == 3 * round_
            assert (np.from_dlpack(memory) == 100 * before + round_).all()
            world.barrier()
        with pytest.raises(ValueError, match="of calls on a stream only"):
            signals.signal(0, 1, after, sequence=sent)
        with pytest.raises(ValueError, match="a uint64"):
            signals.wait(0, 1, stream=stream, sequence=world.allocate(1, "uint8"))

    beeline.run(2, body)


def test_a_stream_waits_for_a_signal() -> None:
    def body(world: beeline.World) -> None:
        signals, memory = beeline.Signals(world, 1), world.allocate(4, "uint8")
        stream, got = world.make_stream(), np.zeros(4, "uint8")
        if world.rank == 0:
            signals.wait(0, 3, stream=stream)
            world.copy(got, memory, stream)
            assert not stream.idle
        world.barrier()
        if world.rank == 1:
            signals.put_signal(memory, np.arange(4, dtype="uint8"), 0, 3, 0)
        else:
            world.synchronize(stream)
            assert got.tolist() == [0, 1, 2, 3]

    beeline.run(2, body)


def test_other_threads_run_while_one_waits() -> None:
    """The wait releases Python's lock: the signal comes from another thread of this process."""

    def body(world: beeline.World) -> None:
        signals = beeline.Signals(world, 1)
        sender = threading.Timer(0.2, lambda: signals.signal(0, 1, 0))
        sender.start()
        signals.wait(0, 1)
        sender.join()

    beeline.run(1, body)


def test_bad_calls_touch_nothing() -> None:
    def body(world: beeline.World) -> None:
        signals, memory = beeline.Signals(world, 2), world.allocate(8, "uint8")
        with pytest.raises(IndexError, match="signal 2: there are 2, from 0 on"):
            signals.signal(2, 1, 0)
        with pytest.raises(ValueError, match="peer 2 of a world of 2"):
            signals.put_signal_add(memory, np.ones(8, "uint8"), 0, 1, 2)
        with pytest.raises(ValueError, match="destination has 8 bytes, source 7: they must be equal"):
            signals.put_signal(memory, np.ones(7, "uint8"), 0, 1, 0)
        with pytest.raises(ValueError, match="destination has elements of type uint8, source int8"):
            signals.put_signal(memory, np.ones(8, "int8"), 0, 1, 0)
        with pytest.raises(ValueError, match="source: ndarray of dtype >f4 cannot be used in place"):
            signals.put_signal(memory, np.ones(2, ">f4"), 0, 1, 0)
        with pytest.raises(TypeError, match=r"destination: expected a beeline.Memory, .*World.allocate, not ndarray"):
            signals.put_signal(np.ones(8, "uint8"), np.ones(8, "uint8"), 0, 1, 0)
        with pytest.raises(ValueError, match="destination: this rank's memory in this world is expected"):
            signals.put_signal(memory.at(1 - world.rank), np.ones(8, "uint8"), 0, 1, 0)
        with pytest.raises(ValueError, match="comparison =: known are ==, !=, >, >=, <, <="):
            signals.wait(0, 1, "=")
        with pytest.raises(ValueError, match="streams wait for >= only"):
            signals.wait(0, 1, "==", stream=world.stream)
        with pytest.raises(ValueError, match="does not block"):
            signals.wait(0, 1, stream=world.stream, timeout=1)
        with pytest.raises(beeline.TimeoutError, match="wait was not over after"):
            signals.wait(0, 1, timeout=0.01)
        assert [signals.read(0), signals.read(1)] == [0, 0]
        signals.free()
        with pytest.raises(beeline.InvalidArgumentError, match="freed"):
            signals.read(0)

    beeline.run(2, body)


def test_a_wait_for_nobody_ends_at_the_deadline() -> None:
    def body(world: beeline.World) -> None:
        signals = beeline.Signals(world, 1)
        signals.signal(0, 1, world.rank)
        with pytest.raises(beeline.Error, match="expected >= 4, observed 1"):
            signals.wait(0, 4, peer=1 - world.rank)

    beeline.run(2, body, deadline_s=1.5)


def test_numbers_are_combined() -> None:
    def body(world: beeline.World) -> None:
        size = world.size
        assert world.allreduce(world.rank) == size * (size - 1) // 2
        assert world.allreduce(world.rank, "maximum") == size - 1
        assert world.allreduce(np.int32(-world.rank), "minimum") == 1 - size
        assert world.allreduce(world.rank + 0.5, "average") == size / 2
        assert isinstance(world.allreduce(np.float32(1.5)), float)
        assert world.allreduce(2**62) == (2**62 * size + 2**63) % 2**64 - 2**63
        team = world.make_team([0, 1] if world.rank < 2 else [])
        if team is not None:
            assert team.allreduce(1 << world.rank, "bit_or") == 3
        with pytest.raises(TypeError, match="a float, or an int of 64 bits"):
            world.allreduce("2")
        with pytest.raises(TypeError, match="a float, or an int of 64 bits"):
            world.allreduce(2**63)
        with pytest.raises(ValueError, match="there is no bit_or of float64"):
            world.allreduce(1.0, "bit_or")
        with pytest.raises(ValueError, match=r"float64, 1 value.*members make the same calls in the same order"):
            world.allreduce(1.0 if world.rank == 0 else 1)

    beeline.run(2, body)
    beeline.run(3, body)


def test_batches_of_puts() -> None:
    def body(world: beeline.World) -> None:
        batch, signals, memory = beeline.PutBatch(world, 4), beeline.Signals(world, 1), world.allocate(100, "int64")
        after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        got = np.from_dlpack(memory)
        for round_ in range(1, 4):
            batch.begin(after)
            for first in range(0, 100, 10):
                batch.put(memory[first : first + 10], np.full(10, 100 * world.rank + round_))
            if round_ < 3:
                batch.signal(signals, 0, round_)
            else:
                batch.signal_add(signals, 0, 1)
            batch.end()
            signals.wait(0, round_, peer=before)
            assert (got == 100 * before + round_).all()
            world.barrier()
        for raises, match, call in (
            (ValueError, "peer 3 of a world of 3", lambda: batch.begin(3)),
            (ValueError, "destination has 80 bytes, source 8", lambda: batch.put(memory[:10], np.zeros(1, "int64"))),
            (TypeError, "expected a beeline.Signals, not int", lambda: batch.signal(3, 0, 1)),
            (IndexError, "signal 1: there are 1", lambda: batch.signal(signals, 1, 1)),
            (ValueError, "capacity: 0 operations", lambda: beeline.PutBatch(world, 0)),
        ):
            with pytest.raises(raises, match=match):
                call()
        world.barrier()

    beeline.run(3, body)


@pytest.mark.parametrize("on_stream", [False, True])
def test_hybrid_transfers(on_stream: bool) -> None:
    def body(world: beeline.World) -> None:
        hybrid = beeline.HybridTransfers(world, threshold_bytes=1024, chunk_bytes=4096, chunks=2)
        assert (hybrid.threshold_bytes, hybrid.chunk_bytes, hybrid.chunks) == (1024, 4096, 2)
        memory, stream = world.allocate(5000, "int32"), world.make_stream() if on_stream else None
        after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        mine, got = np.arange(5000, dtype=np.int32) + world.rank, np.zeros(5000, np.int32)
        hybrid.put(memory, mine, after, stream=stream)
        if stream:
            world.synchronize(stream)
        world.barrier()
        assert (np.from_dlpack(memory) == np.arange(5000) + before).all()
        hybrid.copy(got, memory.at(after), stream=stream)
        if stream:
            world.synchronize(stream)
        assert (got == mine).all()
        assert not hybrid.is_staged(memory.at(after)[:256], mine[:256])
        assert hybrid.is_staged(memory.at(after)[:257], mine[:257])
        with pytest.raises(beeline.InvalidArgumentError, match="were made with buffers of 8192 bytes"):
            hybrid.set(chunk_bytes=4097)
        hybrid.set(threshold_bytes=4096, chunk_bytes=1000)
        assert (hybrid.threshold_bytes, hybrid.chunk_bytes, hybrid.chunks) == (4096, 1000, 2)
        with pytest.raises(ValueError, match="destination has 40 bytes, source 20000"):
            hybrid.put(memory[:10], mine, after)
        world.barrier()

    beeline.run(3, body)
