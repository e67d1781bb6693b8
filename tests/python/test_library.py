# SPDX-License-Identifier: Apache-2.0
"""The Python library: worlds, memory, copies and errors, on ranks that are threads and on ranks that are processes."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import beeline
import pytest
from beeline import errors
from beeline.commands.info import collect_info

np = pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

PACKAGE = Path(beeline.__file__).resolve().parent
REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_world_of_one() -> None:
    with beeline.World.create(device="cpu") as world:
        assert (world.rank, world.size, world.mixed, world.failed) == (0, 1, False, False)
        assert world.device.kind == "host"
        assert world.device.index is None
        assert [each.name for each in world.devices] == [world.device.name]
        assert world.stream is world.stream
        assert world.stream.native is None
        assert [each.state for each in world.health()] == ["healthy"]
        assert repr(world) == "<beeline.World rank 0 of 1>"


def test_memory_lies_elsewhere_in_each_world() -> None:
    """An address in one world tells an attacker nothing about the next world."""

    def address(world: beeline.World) -> int:
        return np.from_dlpack(world.allocate((1,), "int8")).ctypes.data

    first, second = (beeline.run(2, address, device="cpu") for _ in range(2))
    assert first[0] != second[0]
    assert first[1] - first[0] == second[1] - second[0], "of all ranks alike"


def test_results_come_by_rank() -> None:
    assert beeline.run(3, lambda world: 10 * world.rank + world.size) == [3, 13, 23]


def test_bytes_of_all_ranks() -> None:
    expected = [b"", b"x", b"xx"]
    assert beeline.run(3, lambda world: world.allgather(b"x" * world.rank)) == [expected] * 3


class TestMemory:
    def test_views_share_it(self) -> None:
        def body(world: beeline.World) -> None:
            memory = world.allocate((2, 3), "float32")
            assert (memory.shape, memory.dtype, memory.bytes) == ((2, 3), "float32", 24)
            assert (memory.rank, memory.heap) == (world.rank, "symmetric")
            assert memory.__dlpack_device__() == (1, 0)
            first, second = np.from_dlpack(memory), np.from_dlpack(memory)
            assert first.shape == (2, 3)
            assert first.dtype == np.float32
            assert not first.any()
            first[1, 2] = world.rank + 1
            assert second[1, 2] == world.rank + 1
            assert first.ctypes.data == memory.address
            world.barrier()
            other = np.from_dlpack(memory.at((world.rank + 1) % world.size))
            assert other[1, 2] == (world.rank + 1) % world.size + 1
            world.barrier()

        beeline.run(3, body)

    def test_its_owner_is_known(self) -> None:
        def body(world: beeline.World) -> None:
            memory = world.allocate(4)
            assert world.owner_of(memory) == world.rank
            assert world.owner_of(memory.at(1 - world.rank)) == 1 - world.rank
            assert world.owner_of(np.from_dlpack(memory)[2:]) == world.rank
            assert world.owner_of(np.zeros(4)) is None

        beeline.run(2, body)

    @pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bool", np.float64, np.dtype("int32")])
    def test_types(self, dtype) -> None:
        with beeline.World.create(device="cpu") as world:
            memory = world.allocate(5, dtype)
            assert np.from_dlpack(memory).dtype == np.dtype(dtype)
            assert memory.bytes == 5 * np.dtype(dtype).itemsize

    def test_views_outlive_the_world(self) -> None:
        world = beeline.World.create(device="cpu")
        view = np.from_dlpack(world.allocate(1000, "int32", heap="pinned"))
        view[:] = 7
        world.leave()
        del world
        gc.collect()
        assert view.sum() == 7000

    def test_freed_memory_is_used_again_and_refused(self) -> None:
        def body(world: beeline.World) -> None:
            first = world.allocate(1 << 10)
            address = first.address
            first.free()
            with pytest.raises(beeline.InvalidArgumentError, match="freed"):
                np.from_dlpack(first)
            assert world.allocate(1 << 10).address == address

        beeline.run(2, body)

    def test_parts_are_memory(self) -> None:
        def body(world: beeline.World) -> None:
            memory, peer = world.allocate((np.int64(6), 2), "float32"), 1 - world.rank
            assert (len(memory), memory[1:3].shape, memory[-1].shape, memory[9:].bytes) == (6, (2, 2), (2,), 0)
            assert memory[2].address == memory.address + 16
            beeline.Signals(world, 1).put_signal(memory[2:4], np.full((2, 2), 5, "float32"), 0, 1, peer)
            world.barrier()
            assert np.from_dlpack(memory)[:, 0].tolist() == [0, 0, 5, 5, 0, 0]
            assert np.from_dlpack(memory.at(peer)[2:]).sum() == 20
            np.asarray(memory[1])[:] = 7  # a view
            assert np.array(memory, "int8").sum() == 34
            with pytest.raises(TypeError, match="numpy has no bfloat16"):
                np.asarray(world.allocate(3, "bfloat16"))
            for key, error in ((6, IndexError), ("x", TypeError), (slice(0, 4, 2), ValueError)):
                with pytest.raises(error):
                    memory[key]
            with pytest.raises(beeline.InvalidArgumentError, match="freed with the whole"):
                memory[1:].free()
            memory.free()

        beeline.run(2, body)

    def test_what_all_ranks_have_dropped_is_used_again(self) -> None:
        def body(world: beeline.World) -> None:
            for _ in range(20):
                world.allocate(1 << 18)
            kept = [world.allocate(1 << 18) for _ in range(3)]
            kept.append(world.allocate(1 << 18))
            with pytest.raises(beeline.NoResourceError, match=r"\.free\(\)"):
                world.allocate(1 << 18)
            assert len({memory.address for memory in kept}) == 4

        beeline.run(2, body, heap_bytes=1 << 20)

    def test_channels_that_all_ranks_have_dropped_give_their_memory_back(self) -> None:
        def body(world: beeline.World) -> None:
            stream, sums = world.make_stream(), np.ones((40, 100), "float32")
            for vector in sums:  # six objects fill the heap
                beeline.Collectives(world, sessions=1, staging_bytes=1 << 17).allreduce(vector, stream=stream)
                beeline.Messages(world, sessions=1)
            world.synchronize(stream)
            assert (sums == 2).all()
            # Has room only when dropped objects give theirs back, so that the team's first object finds room, too.
            world.allocate(5 << 19, "uint8").free()
            team = world.make_team([0, 1])

            def drop_many() -> None:
                for _ in range(40):
                    beeline.Collectives(team, sessions=1, staging_bytes=1 << 17)

            with pytest.raises(beeline.NoResourceError, match=r"of teams were dropped without \.free\(\)"):
                drop_many()

        beeline.run(2, body, heap_bytes=1 << 22)

    def test_bad_requests(self) -> None:
        with beeline.World.create(device="cpu", heap_bytes=1 << 20) as world:
            with pytest.raises(ValueError, match=r"dtype float8: known are uint8, .*bfloat16"):
                world.allocate(1, "float8")
            with pytest.raises(ValueError, match="heap middle: known are symmetric, pinned"):
                world.allocate(1, heap="middle")
            with pytest.raises(ValueError, match="extent of -1"):
                world.allocate((2, -1))
            with pytest.raises(TypeError, match="shape"):
                world.allocate("2")
            with pytest.raises(beeline.NoResourceError) as full:
                world.allocate(1 << 30)
            assert full.value.code == "no_resource"
            with pytest.raises(beeline.NoResourceError):
                world.allocate((1 << 40, 1 << 40))

    def test_ranks_that_ask_for_different_sizes(self) -> None:
        def body(world: beeline.World) -> None:
            with pytest.raises(beeline.InvalidArgumentError, match="allocations differ") as refused:
                world.allocate(64 * (world.rank + 1))
            assert refused.value.rank == world.rank

        beeline.run(2, body)


class TestCopy:
    def test_between_arrays_and_ranks(self) -> None:
        def body(world: beeline.World) -> None:
            memory = world.allocate(100, "int32")
            mine = np.arange(100, dtype=np.int32) + 1000 * world.rank
            peer = (world.rank + 1) % world.size
            world.copy(memory.at(peer), mine)
            world.barrier()
            got = np.empty_like(mine)
            world.copy(got, memory)
            assert (got == np.arange(100) + 1000 * ((world.rank - 1) % world.size)).all()

        beeline.run(3, body)

    def test_on_streams(self) -> None:
        with beeline.World.create(device="cpu") as world:
            first, second = world.make_stream(), world.make_stream(priority="high")
            memory = world.allocate(1 << 16, "float64")
            result = np.zeros(1 << 16)
            world.copy(memory, np.full(1 << 16, 3.0), first)  # only the stream refers to the array
            second.wait(first)
            world.copy(result, memory, second)
            world.synchronize(second)
            assert (result == 3).all()
            world.synchronize(first)
            assert first.idle
            world.copy(memory, result, world.stream)
            world.synchronize()

    def test_priorities_have_names(self) -> None:
        with beeline.World.create(device="cpu") as world:
            with pytest.raises(ValueError, match="priority urgent: known are normal, high"):
                world.make_stream(priority="urgent")
            assert world.make_stream(priority="normal").native is None

    def test_a_host_rank_adopts_no_stream(self) -> None:
        with beeline.World.create(device="cpu") as world, pytest.raises(beeline.UnavailableError, match="GPU"):
            world.adopt_stream(0)

    def test_many_copies_in_a_row(self) -> None:
        with beeline.World.create(device="cpu") as world:
            stream = world.make_stream()
            memory = world.allocate((300, 1000), "int32")
            rows = np.from_dlpack(memory)
            for row in range(300):
                world.copy(rows[row], np.full(1000, row, np.int32), stream)
            world.synchronize(stream)
            assert (rows == np.arange(300)[:, None]).all()

    def test_what_is_refused(self) -> None:
        with beeline.World.create(device="cpu") as world:
            memory = world.allocate((4, 4), "float32")
            array = np.ones((4, 8), np.float32)
            with pytest.raises(ValueError, match=r"source: ndarray that is not contiguous"):
                world.copy(memory, array[:, ::2])
            with pytest.raises(TypeError, match=r"source: expected .* not list"):
                world.copy(memory, [1.0] * 16)
            with pytest.raises(ValueError, match="destination has 64 bytes, source 128"):
                world.copy(memory, array)
            fixed = np.zeros((4, 4), np.float32)
            fixed.flags.writeable = False
            with pytest.raises(ValueError, match="destination: ndarray that is read-only"):
                world.copy(fixed, memory)
            world.copy(memory, fixed)
            assert not np.from_dlpack(memory).any()
            other = beeline.World.create(device="cpu")
            with pytest.raises(ValueError, match="another world"):
                world.copy(memory, fixed, other.stream)
            other.leave()


class TestStagedChannel:
    @pytest.mark.parametrize("count", [1, 1000, 100_000])
    def test_messages_go_round(self, count: int) -> None:
        def body(world: beeline.World) -> None:
            channel = beeline.StagedChannel(world, chunk_bytes=1 << 12, slots=2)
            after, before = (world.rank + 1) % world.size, (world.rank - 1) % world.size
            got = np.zeros(count, np.int32)
            if world.rank == 0:
                channel.send(np.arange(count, dtype=np.int32), after)
                channel.receive(got, before)
            else:
                channel.receive(got, before)
                channel.send(got + 1, after)
            assert (got == np.arange(count) + (before if before else 0)).all()

        beeline.run(3, body)

    def test_other_lengths_are_refused_and_stay(self) -> None:
        def body(world: beeline.World) -> None:
            channel = beeline.StagedChannel(world)
            if world.rank == 0:
                channel.send(np.zeros(0, np.int8), 1)
                channel.send(np.arange(7, dtype=np.int8), 1)
                return
            got = np.zeros(7, np.int8)
            with pytest.raises(beeline.InvalidArgumentError, match="7 bytes from rank 0, whose next message has 0"):
                channel.receive(got, 0)
            channel.receive(got[:0], 0)
            channel.receive(got, 0)
            assert (got == np.arange(7)).all()

        beeline.run(2, body)

    def test_a_peer_that_does_not_exist(self) -> None:
        with beeline.World.create(device="cpu") as world:
            channel = beeline.StagedChannel(world)
            with pytest.raises(beeline.InvalidArgumentError, match="peer 1 of a world of 1"):
                channel.send(np.zeros(1), 1)
        with pytest.raises(beeline.InvalidArgumentError, match="has left"):
            channel.send(np.zeros(1), 0)


class TestFailure:
    def test_each_status_has_a_class(self) -> None:
        for name in set(errors.__all__) - {"Error"}:
            each = getattr(beeline, name)
            assert (issubclass(each, beeline.Error), errors.class_of(each.code)) == (True, each)
            copy = pickle.loads(pickle.dumps(each("text", 3)))
            assert (type(copy), str(copy), copy.rank) == (each, "text", 3)
        assert issubclass(beeline.InvalidArgumentError, ValueError)

    def test_an_exception_ends_the_other_ranks(self) -> None:
        def body(world: beeline.World) -> None:
            if world.rank == 1:
                raise LookupError("nothing here")
            with pytest.raises(beeline.AbortedError, match="LookupError: nothing here"):
                world.barrier()
            assert world.failed
            assert [each.state for each in world.health()] == ["healthy", "failed", "healthy"]

        with pytest.raises(LookupError, match="nothing here"):
            beeline.run(3, body, deadline_s=60)

    def test_the_cause_is_raised_also_if_it_comes_later(self) -> None:
        def body(world: beeline.World) -> None:
            if world.rank == 1:
                world.barrier()
            world.abort("nothing here")
            next(each for each in threading.enumerate() if each.name == "rank 1").join()
            raise LookupError

        with pytest.raises(LookupError):
            beeline.run(2, body, deadline_s=60)

    def test_a_rank_that_exits_is_no_success(self) -> None:
        def body(world: beeline.World) -> None:
            if world.rank == 1:
                sys.exit(0)
            world.barrier()

        with pytest.raises(beeline.AbortedError, match=r"rank 1 called sys.exit\(0\)"):
            beeline.run(3, body, deadline_s=60)

    def test_an_exception_without_a_text_ends_the_others_too(self) -> None:
        class SilentError(Exception):
            def __str__(self) -> str:
                raise ValueError("no text")

        def body(world: beeline.World) -> None:
            if world.rank == 1:
                raise SilentError
            with pytest.raises(beeline.AbortedError, match="SilentError, whose text cannot be made"):
                world.barrier()

        with pytest.raises(SilentError):
            beeline.run(2, body, deadline_s=60)

    def test_a_rank_that_does_not_return_is_left_behind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def body(world: beeline.World) -> None:
            if world.rank == 1:
                assert over.wait(60)
            raise LookupError("nothing here")

        over = threading.Event()
        monkeypatch.setattr(beeline.library, "_RETURN_S", 0.1)
        with pytest.raises(LookupError) as first:
            beeline.run(2, body, deadline_s=1.5)
        over.set()
        assert "rank 1 did not return within 1.6 s" in first.value.__notes__[0]

    def test_a_rank_that_leaves_does_not_wait_for_one_that_gave_up(self) -> None:
        def body(world: beeline.World) -> None:
            if world.rank == 0:
                world.barrier()

        begin = time.monotonic()
        with pytest.raises(beeline.DeadlineError, match="rank 1 is in leave"):
            beeline.run(2, body, deadline_s=1)
        assert time.monotonic() - begin < 30  # the deadline of streams is 600 s

    def test_a_missing_rank_is_named(self) -> None:
        def body(world: beeline.World) -> None:
            if world.rank == 0:
                with pytest.raises(beeline.DeadlineError, match=r"rank 1") as late:
                    world.barrier()
                assert late.value.rank == 0
                over.set()
            else:
                assert over.wait(60)

        over = threading.Event()
        beeline.run(2, body, deadline_s=1)

    def test_nothing_works_after_leaving(self) -> None:
        world = beeline.World.create(device="cpu")
        memory = world.allocate(8)
        world.leave()
        world.leave()
        for call in (world.barrier, world.health, lambda: world.allocate(1), lambda: memory.address):
            with pytest.raises(beeline.InvalidArgumentError, match="rank 0 has left the world"):
                call()
        assert (world.rank, world.size) == (0, 1)

    def test_settings_are_checked(self) -> None:
        with pytest.raises(beeline.InvalidArgumentError, match="deadline_s"):
            beeline.World.create(device="cpu", deadline_s=-1)
        with pytest.raises(beeline.InvalidArgumentError, match="1 to 1024 ranks, not 1025"):
            beeline.run(1025, lambda world: None)

    def test_waiting_lets_other_threads_run(self) -> None:
        # If rank 0's barrier held Python's lock, rank 1 could never arrive.
        beeline.run(2, lambda world: [world.barrier() for _ in range(50)], deadline_s=60)


@pytest.mark.parametrize(
    ("extension", "words"),
    [
        (None, "beeline's library needs its extension module, which is not there for Python"),
        ("World = None\n", "_beeline.py, beeline's extension module, is of another version than the package: build"),
        ("def _version(): return '9.9.9'\n", "the module is of version 9.9.9, the package of version 0.1.0"),
    ],
)
def test_the_command_line_needs_no_extension(tmp_path: Path, extension: str | None, words: str) -> None:
    program = tmp_path / "program.py"
    program.write_text("import beeline.cli\ntry: beeline.World\nexcept ImportError as error: print(error)\n")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "BEELINE_BIN": str(tmp_path / "bin")}
    if extension is not None:
        (tmp_path / "python").mkdir()
        (tmp_path / "python" / "_beeline.py").write_text(extension)
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout


def assert_generated(file: Path, wanted: str) -> None:
    if os.environ.get("BEELINE_UPDATE_GENERATED"):
        file.write_text(wanted)
    assert file.read_text() == wanted, "run this test with BEELINE_UPDATE_GENERATED=1"


def test_the_page_of_settings_is_up_to_date() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    report = subprocess.run(
        [REPOSITORY / "build/bin/beeline-info", "--json"], capture_output=True, env=environment, timeout=60, check=True
    )
    rows = [
        f"| `{one['variable']}` | {one['meaning']} | {one['values']} | {one['value']} |"
        for one in json.loads(report.stdout)["configuration"]
    ]
    page = REPOSITORY / "docs/settings.md"
    introduction = page.read_text().partition("\n| variable")[0]
    assert_generated(page, "\n".join([
        introduction, "| variable | meaning | values | default |", "|---|---|---|---|", *rows, ""
    ]))  # fmt: skip


def test_the_stub_is_up_to_date() -> None:
    """python/beeline/_beeline.pyi is nanobind's stub of the extension; the failing test says how to generate it."""
    pins = (REPOSITORY / "tools" / "requirements.txt").read_text()
    pinned = re.search(r"^nanobind==(.*)$", pins, re.MULTILINE)[1]
    if importlib.util.find_spec("nanobind") is None:
        pytest.skip("nanobind is not installed")
    from importlib.metadata import version

    if version("nanobind") != pinned:
        pytest.skip(f"nanobind {version('nanobind')} may write another stub than {pinned}, which wrote the one here")
    from beeline import _beeline
    from nanobind.stubgen import StubGen

    generator = StubGen(_beeline)
    generator.put(_beeline)
    wanted = "# SPDX-License-Identifier: Apache-2.0\n" + generator.get()
    assert_generated(PACKAGE / "_beeline.pyi", wanted)


def test_the_reference_has_each_public_name() -> None:
    """Checks names in the loaded package and its classes, independently of how tools/reference reads the sources."""
    import inspect

    reference = (REPOSITORY / "docs" / "reference-python.md").read_text()
    titles = set(re.findall(r"^#{3,4} (?:property |static )?`?(\w+)", reference, re.MULTILINE))
    public = {name for name in dir(beeline) if name in beeline.LIBRARY or name.endswith("Error")}
    modules = (beeline, beeline.energy)
    classes = [getattr(module, name) for module in modules for name in {*public, *beeline.energy.__all__}
               if hasattr(module, name) and inspect.isclass(getattr(module, name))]  # fmt: skip
    of_the_extension = [one for one in classes if one.__module__ == "beeline._beeline"]
    assert len(of_the_extension) > 15
    members = {name for one in of_the_extension for name in vars(one) if not name.startswith("_")}
    assert {*public, *beeline.energy.__all__, *members} - titles == set()
    for one in classes:
        assert not one.__doc__ or one.__doc__.strip().partition("\n")[0] in reference, one


def test_the_table_of_algorithms_is_the_registry() -> None:
    known: dict[str, list[str]] = {}
    for method in collect_info()["methods"]:
        for operation in method["operations"]:
            known.setdefault(operation, []).append(method["id"])
    document = REPOSITORY / "docs" / "design-collectives.md"
    head = "| operation | algorithms |\n|---|---|\n"
    before, _, rest = document.read_text().partition(head)
    table = "".join(f"| {operation} | {', '.join(names)} |\n" for operation, names in known.items())
    assert_generated(document, before + head + table + rest[rest.index("\n\n") + 1 :])
