# SPDX-License-Identifier: Apache-2.0
"""Collectives on numpy arrays and on memory of the world, on host ranks that are threads."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import beeline
import pytest

np = pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

COMBINE = {
    "sum": np.add.reduce,
    "product": np.multiply.reduce,
    "minimum": np.minimum.reduce,
    "maximum": np.maximum.reduce,
    "average": lambda vectors: np.add.reduce(vectors) / len(vectors),
    "bit_and": np.bitwise_and.reduce,
    "bit_or": np.bitwise_or.reduce,
    "bit_xor": np.bitwise_xor.reduce,
}
TYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "uint32", "uint64")
CASES = [(dtype, how) for dtype in TYPES for how in COMBINE if not (dtype.startswith("float") and "bit" in how)]


def vectors(ranks: int, count: int, dtype: str) -> list[np.ndarray]:
    """Small whole numbers, so that sums and products of a few are exact in every type."""
    random = np.random.default_rng(count)
    return [random.integers(1, 4, count).astype(dtype) for _ in range(ranks)]


@pytest.mark.parametrize(("dtype", "reduction"), CASES)
def test_all_reduce(dtype: str, reduction: str) -> None:
    ranks, count = 3, 1003
    mine = vectors(ranks, count, dtype)
    expected = COMBINE[reduction](np.array(mine).astype("float64" if dtype.startswith("float") else "int64"))
    expected = expected.astype(dtype)  # an average of integers is truncated

    def body(world: beeline.World) -> list[np.ndarray]:
        collectives = beeline.Collectives(world)
        result, in_place = np.empty_like(mine[0]), mine[world.rank].copy()
        memory = world.allocate(count, dtype)
        collectives.allreduce(result, mine[world.rank], reduction)
        collectives.allreduce(in_place, reduction=reduction)
        world.copy(memory, mine[world.rank])
        collectives.allreduce(memory, memory, reduction)
        return [result, in_place, np.from_dlpack(memory)]

    for results in beeline.run(ranks, body):
        for result in results:
            assert np.array_equal(result, expected)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4)])
def test_nothing_is_reduced_of_an_empty_array(shape: tuple[int, ...]) -> None:
    def body(world: beeline.World) -> int:
        empty = np.empty(shape, "float32")
        beeline.Collectives(world).allreduce(empty)
        world.copy(empty, np.empty(shape, "float32"))
        return empty.size

    assert beeline.run(2, body) == [0, 0]


@pytest.mark.parametrize("algorithm", ["ll_one_shot", "ll_two_shot", "two_shot"])
@pytest.mark.parametrize("count", [1, 2, 77, 60_001])
def test_algorithms_and_sizes(algorithm: str, count: int) -> None:
    mine = vectors(4, count, "float32")

    def body(world: beeline.World) -> np.ndarray:
        collectives = beeline.Collectives(world)
        result = np.empty(count, "float32")
        for _ in range(3):
            collectives.allreduce(result, mine[world.rank], algorithm=algorithm, blocks=1)
        return result

    for result in beeline.run(4, body):
        assert np.array_equal(result, sum(mine))


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8"])
@pytest.mark.parametrize("count", [1, 1000])
def test_moving_data(dtype: str, count: int) -> None:
    def body(world: beeline.World) -> None:
        collectives, rank, size = beeline.Collectives(world), world.rank, world.size
        part = np.empty(count, dtype)

        def rows(first: int) -> np.ndarray:
            """[ranks, count]: row r holds first + r."""
            return np.repeat(np.arange(first, first + size), count).reshape(size, count).astype(dtype)

        for root in range(size):
            vector = rows(root)[0] if rank == root else np.zeros(count, dtype)
            collectives.broadcast(vector, root=root)
            assert (vector == root).all()
            collectives.scatter(part, rows(5) if rank == root else None, root=root)
            assert (part == 5 + rank).all()
            gathered = np.zeros((size, count), dtype) if rank == root else None
            collectives.gather(gathered, part, root=root)
            assert gathered is None or (gathered == rows(5)).all()
        everyone = np.empty((size, count), dtype)
        collectives.allgather(everyone, part)
        assert (everyone == rows(5)).all()
        collectives.alltoall(everyone, rows(10 * rank))
        assert (everyone == rank + 10 * np.arange(size)[:, None]).all()
        collectives.barrier()

    beeline.run(3, body)


def test_all_to_all_of_any_lengths() -> None:
    def body(world: beeline.World) -> None:
        collectives, ranks = beeline.Collectives(world), range(world.size)
        counts = [world.rank + peer for peer in ranks]  # for sending and receiving; rank 0 sends itself nothing
        source = np.full(sum(counts), world.rank, "int64")
        result = np.empty_like(source)
        collectives.alltoallv(result, source, counts, counts)
        assert result.tolist() == [peer for peer in ranks for _ in range(counts[peer])]
        with pytest.raises(ValueError, match="receive_counts: 3 counts must be given, which add up to"):
            collectives.alltoallv(result, source, counts, counts[:2])
        with pytest.raises(ValueError, match="send_counts"):
            collectives.alltoallv(result, source, [1 << 63, 1 << 63, len(source)], counts)

    beeline.run(3, body)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_reductions_to_one_rank_and_in_parts(dtype: str) -> None:
    mine = vectors(3, 999, dtype)

    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        for root in range(world.size):
            result = np.empty(999, dtype) if world.rank == root else None
            collectives.reduce(result, mine[world.rank], "maximum", root=root)
            assert result is None or (result == np.maximum.reduce(mine)).all()
        part = np.empty(333, dtype)
        collectives.reduce_scatter(part, mine[world.rank])
        assert (part == sum(mine)[333 * world.rank : 333 * (world.rank + 1)]).all()
        with pytest.raises(ValueError, match="sizes as 1 to 3"):
            collectives.reduce_scatter(part, part)

    beeline.run(3, body)


def test_streams_keep_what_they_use() -> None:
    def body(world: beeline.World) -> None:
        collectives, stream = beeline.Collectives(world), world.make_stream()
        result = np.zeros(5000)
        for round_ in range(10):
            collectives.allreduce(result, np.full(5000, float(world.rank + round_)), stream=stream)
        world.synchronize(stream)
        assert (result == sum(rank + 9 for rank in range(world.size))).all()
        held = sys.getrefcount(result)
        collectives.allreduce(result, stream=stream)
        assert sys.getrefcount(result) > held
        stream.let_go()
        assert sys.getrefcount(result) == held
        world.synchronize(stream)

    beeline.run(3, body)


def test_the_choice_is_told() -> None:
    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world, sessions=2)
        small, large = (collectives.choice("allreduce", count, "float32") for count in (1, 1 << 20))
        assert (small.algorithm, small.blocks) == ("ll_one_shot", 1)
        assert large.algorithm == "two_shot"
        assert collectives.choice("allreduce", 8, np.float64, algorithm="two_shot", blocks=2).blocks == 2
        engines = collectives.choice("allreduce", 1 << 20, "float32", algorithm="copy_engine")
        assert engines.blocks is None  # no blocks move data
        assert repr(engines) == "<beeline.Choice copy_engine>"
        assert collectives.choice("broadcast", 1, "uint8").algorithm == "ll"
        with pytest.raises(beeline.InvalidArgumentError, match="alltoallv: no choice by size"):
            collectives.choice("alltoallv", 1, "uint8")
        known = collectives.algorithms("allgather")
        assert known["ll"] is None
        assert "only GPUs" in known["ll128"] or "host" in known["ll128"]
        with pytest.raises(ValueError, match=r"operation barrier: known are broadcast, .*alltoallv"):
            collectives.algorithms("barrier")
        with pytest.raises(beeline.InvalidArgumentError, match="99 blocks on a channel of 2 sessions"):
            collectives.choice("allreduce", 1, "float32", blocks=99)
        memory = world.allocate(64, "float32")
        collectives.allreduce(memory, symmetric=True)
        assert collectives.choice("allreduce", 64, "float32", symmetric=True).algorithm.startswith("ll")

    beeline.run(2, body)


def test_movement_to_any_place_and_to_the_same_of_all_heaps() -> None:
    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        mine, all_parts = np.full(3, world.rank, "float32"), np.arange(9, dtype="float32")
        heap = world.allocate(9, "float32"), world.allocate(3, "float32")
        elsewhere = np.zeros(9, "float32"), np.zeros(3, "float32")
        for algorithm, symmetric in [("automatic", True), ("copy_engine", True), ("copy_engine", False)]:
            how = {"algorithm": algorithm, "symmetric": symmetric}
            whole, part = heap if symmetric else elsewhere
            collectives.broadcast(part, mine, root=1, **how)
            np.testing.assert_array_equal(np.from_dlpack(part), np.ones(3))
            collectives.scatter(part, all_parts if world.rank == 2 else None, root=2, **how)
            np.testing.assert_array_equal(np.from_dlpack(part), all_parts[3 * world.rank :][:3])
            collectives.allgather(whole, mine, **how)
            np.testing.assert_array_equal(np.from_dlpack(whole), np.repeat([0, 1, 2], 3))
            collectives.alltoall(whole, all_parts, **how)
            np.testing.assert_array_equal(np.from_dlpack(whole), np.tile(all_parts[3 * world.rank :][:3], 3))
        with pytest.raises(ValueError, match="gather has no algorithm copy_engine"):
            collectives.gather(None if world.rank else whole, mine, root=0, algorithm="copy_engine")

    beeline.run(3, body)


def test_what_is_refused() -> None:
    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        array = np.ones(8, "float32")
        before = array.copy()
        with pytest.raises(ValueError, match="destination: ndarray that is not contiguous"):
            collectives.allreduce(array[::2])
        with pytest.raises(TypeError, match="source: expected a numpy array"):
            collectives.allreduce(array, [1.0] * 8)
        # Only the root must pass this argument; here it does not.
        with pytest.raises(TypeError, match=r"source: expected a numpy array.*, not NoneType"):
            collectives.scatter(array, None, root=world.rank)
        with pytest.raises(TypeError, match=r"destination: expected a numpy array.*, not NoneType"):
            collectives.gather(None, array, root=world.rank)
        with pytest.raises(ValueError, match=r"destination has 8 elements of float32, source 7 of float32"):
            collectives.allreduce(array, np.ones(7, "float32"))
        with pytest.raises(ValueError, match="types must be the same"):
            collectives.allreduce(array, np.ones(8))
        with pytest.raises(ValueError, match=r"reduction mean: known are sum, .*bit_xor"):
            collectives.allreduce(array, reduction="mean")
        with pytest.raises(ValueError, match="algorithm fast: known are automatic, ll_one_shot"):
            collectives.allreduce(array, algorithm="fast")
        with pytest.raises(ValueError, match="no sum of int16: known are reductions of float32"):
            collectives.allreduce(np.ones(8, "int16"))
        with pytest.raises(beeline.InvalidArgumentError, match="no bit_or of float32"):
            collectives.allreduce(array, reduction="bit_or")
        with pytest.raises(beeline.InvalidArgumentError, match="blocks on a channel of"):
            collectives.allreduce(array, blocks=1000)
        with pytest.raises(beeline.InvalidArgumentError, match="2 blocks were asked for, and engines have none"):
            collectives.allreduce(array, algorithm="copy_engine", blocks=2)
        with pytest.raises(beeline.InvalidArgumentError, match="engine_bytes 100: a multiple of 256"):
            beeline.Collectives(world, engine_bytes=100)
        with pytest.raises(beeline.InvalidArgumentError, match="no algorithm peer"):
            collectives.allreduce(array, algorithm="peer")
        with pytest.raises(beeline.InvalidArgumentError, match="overlap"):
            collectives.allreduce(array[:4], array[2:6])
        assert (array == before).all()
        collectives.allreduce(array)
        assert (array == world.size).all()

    beeline.run(2, body)


def test_different_options_are_refused() -> None:
    def body(world: beeline.World) -> None:
        with pytest.raises(beeline.InvalidArgumentError, match="ranks 0 and 1 give different options"):
            beeline.Collectives(world, packet_bytes=1024 * (world.rank + 1))

    beeline.run(2, body)


def test_calls_that_differ_are_found() -> None:
    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        collectives.allreduce(np.ones(4))
        with pytest.raises(beeline.Error, match=r"rank [01] calls allreduce\((sum|maximum), float64, 4 elements\) by"):
            collectives.allreduce(np.ones(4), reduction="sum" if world.rank == 0 else "maximum")
        raise KeyError("found")

    with pytest.raises(KeyError, match="found"):
        beeline.run(2, body, deadline_s=5)


@pytest.mark.parametrize("operation", ["broadcast", "scatter"])
@pytest.mark.parametrize("count", [10, 1000])
def test_two_roots_are_found_by_the_next_call(operation: str, count: int) -> None:
    """The ranks differ in a call where each only sends a short vector, so that no rank waits and detects it there."""

    def make_calls(collectives: beeline.Collectives, rank: int) -> None:
        vector = np.full(count, rank)
        if operation == "broadcast":
            collectives.broadcast(vector, root=rank)
        else:
            collectives.scatter(vector, np.full((2, count), rank), root=rank)
        collectives.allreduce(np.ones(4))

    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        call = rf"{operation}\(int64, {count} elements, root [01]\) by"
        with pytest.raises(beeline.Error, match=f"rank [01] calls {call} .*, rank [01] calls {call}"):
            make_calls(collectives, world.rank)
        raise KeyError("found")

    with pytest.raises(KeyError, match="found"):
        beeline.run(2, body, deadline_s=5)


def test_one_object_is_for_one_thread_at_a_time() -> None:
    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        if world.rank == 1:
            assert refused.wait(60)
            collectives.allreduce(np.ones(10))
            return

        def call() -> None:
            vector = np.ones(10)
            try:
                collectives.allreduce(vector)
                results.append(vector.tolist())
            except beeline.InvalidArgumentError as error:
                results.append(str(error))
                refused.set()

        on_threads(call, call)
        call_text = "allreduce(sum, float64, 10 elements)"
        assert [2.0] * 10 in results
        assert f"{call_text} while {call_text} of another thread uses the same Collectives" in str(results)

    refused = threading.Event()
    results: list[object] = []
    beeline.run(2, body, deadline_s=60)


def on_threads(*calls: Callable[[], None]) -> None:
    """Makes calls at the same time, each on a thread of its own; each starts shortly after the previous one."""
    with ThreadPoolExecutor(len(calls)) as pool:
        made = []
        for call in calls:
            made.append(pool.submit(call))
            time.sleep(0.02)
        for each in made:
            each.result()


def test_objects_of_two_threads_do_not_wait_for_each_other() -> None:
    """Rank 0 begins with one object, rank 1 with another."""

    def body(world: beeline.World) -> None:
        channels = [beeline.Collectives(world), beeline.Messages(world)]
        pair = world.make_team([0, 1])
        assert pair is not None
        channels.append(beeline.Collectives(pair))
        vectors = [np.full(1000, 10.0**i * (world.rank + 1)) for i in range(3)]
        own = vectors[1].copy()
        calls = [
            lambda: channels[0].allreduce(vectors[0]),
            lambda: channels[1].send_receive(own, 1 - world.rank, vectors[1], 1 - world.rank),
            lambda: channels[2].allreduce(vectors[2]),
        ]
        on_threads(*calls[:: 1 - 2 * world.rank])
        assert [float(each[0]) for each in vectors] == [3, 10 * (2 - world.rank), 300]

    beeline.run(2, body, deadline_s=10)


def test_calls_on_a_stream_are_pending_meanwhile() -> None:
    """Rank 0's reduction and barrier stay pending while a message goes: rank 1 receives it before it calls them."""

    def body(world: beeline.World) -> None:
        collectives, messages = beeline.Collectives(world), beeline.Messages(world)
        vector, message = np.full(1000, world.rank + 1.0), np.full(100_000, world.rank)
        stream = world.make_stream()
        if world.rank == 0:
            collectives.allreduce(vector, stream=stream)
            reduced = stream.record()
            collectives.barrier(stream=stream)
            met = stream.record()
            assert (reduced.done, met.done) == (False, False)
            messages.send(message, 1)
            met.wait()
            assert reduced.done
        else:
            messages.receive(message, 0)
            collectives.allreduce(vector)
            collectives.barrier()
        assert [*vector, *message] == [3] * 1000 + [0] * 100_000

    beeline.run(2, body, deadline_s=10)


def test_a_missing_rank_is_named() -> None:
    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        if world.rank == 1:
            with pytest.raises(beeline.DeadlineError, match="rank 0"):
                collectives.allreduce(np.ones(4))
            over.set()
            raise KeyError("over")
        assert over.wait(60)

    over = threading.Event()
    with pytest.raises(KeyError):
        beeline.run(2, body, deadline_s=1.5)


def test_nothing_is_called_after_leaving() -> None:
    with beeline.World.create(device="cpu") as world:
        collectives = beeline.Collectives(world)
        alone = np.arange(4.0)
        collectives.allreduce(alone)
        assert alone.tolist() == [0, 1, 2, 3]
    with pytest.raises(beeline.InvalidArgumentError, match="has left"):
        collectives.allreduce(alone)
