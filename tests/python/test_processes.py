# SPDX-License-Identifier: Apache-2.0
"""Programs in Python whose ranks are processes: forks of them, ranks on two nodes, and how they end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import skip_without_ucx

pytest.importorskip("numpy")
pytest.importorskip("beeline.library", exc_type=ImportError)

REPOSITORY = Path(__file__).resolve().parents[2]
LAUNCHER = REPOSITORY / "build" / "bin" / "beeline-launch"


def launch(tmp_path: Path, ranks: int, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python program on host ranks that are processes."""
    path = tmp_path / "program.py"
    path.write_text(program)
    merged = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "BEELINE_DEVICE": "cpu", **environment}
    command = [LAUNCHER, "-n", str(ranks), "--", sys.executable, path]
    return subprocess.run(command, capture_output=True, text=True, env=merged, timeout=100, check=False)


def launch_on_nodes(tmp_path: Path, nodes: str, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on two ranks, on one node or two."""
    result = launch(tmp_path, 2, program, BEELINE_SPLIT_NODES=nodes, **environment)
    skip_without_ucx(result.stderr)
    return result


FORKING_PROGRAM = """
import os, sys
import numpy as np
import beeline

def child(code, body):
    if pid := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
        return
    try:
        body()
    except RuntimeError:
        os._exit(code)
    sys.exit(code)  # its exit handlers, and the ends of its objects, do nothing

def calls():
    assert (view == world.rank + 1).all()
    for call in (world.barrier, world.health, lambda: world.allreduce(1), lambda: collectives.allreduce(memory),
                 lambda: signals.signal(0, 1, 0), lambda: world.allocate(1), memory.free, world.leave):
        try:
            call()
        except beeline.InvalidArgumentError as error:
            assert f"a fork of process {os.getppid()}" in str(error), error
        else:
            os._exit(1)

def within():
    with world:
        raise RuntimeError("in the child alone")

with beeline.World.create() as world:
    memory, signals = world.allocate(1000, "float32"), beeline.Signals(world, 1)
    collectives = beeline.Collectives(world)
    view = np.from_dlpack(memory)
    view[:] = world.rank + 1
    collectives.allreduce(np.ones(4, "float32"))
    child(3, calls)
    child(4, within)
    child(5, lambda: world.__exit__(None, None, None))
    collectives.allreduce(memory)
    assert (view == 3).all() and signals.read(0) == 0
    print("goes on", flush=True)
"""


def test_a_fork_does_nothing_to_the_world(tmp_path: Path) -> None:
    result = launch(tmp_path, 2, FORKING_PROGRAM)
    assert (result.returncode, result.stdout.count("goes on")) == (0, 2), result.stderr


def test_memory_of_another_node_has_no_view(tmp_path: Path) -> None:
    program = """if True:
        import numpy as np, beeline
        with beeline.World.create() as world:
            memory, peer = world.allocate(4, "float32"), 1 - world.rank
            signals = beeline.Signals(world, 1)
            for call, error in ((lambda: np.from_dlpack(memory.at(peer)), BufferError),
                                (lambda: signals.put_signal(memory, memory.at(peer), 0, 1, peer), ValueError)):
                try:
                    call()
                except error as refused:
                    assert f"rank {peer}" in str(refused) and "another node" in str(refused)
                    print("refused")
            got = np.zeros(4, "float32")
            world.copy(got[1:3], memory.at(peer)[1:3])
    """
    result = launch_on_nodes(tmp_path, "2", program)
    assert (result.returncode, result.stdout.count("refused")) == (0, 4), result.stderr


@pytest.mark.parametrize("nodes", ["1", "2"])
def test_signals_that_repeat_a_value_are_found(nodes: str, tmp_path: Path) -> None:
    program = """if True:
        import numpy as np, beeline
        with beeline.World.create() as world:
            memory, signals = world.allocate(4, "int64"), beeline.Signals(world, 2)
            for round_ in range(1, 6):
                if world.rank == 0:
                    signals.put_signal(memory, np.full(4, round_), 0, 1, 1)
                    signals.put_signal(memory, np.full(4, round_), 1, round_, 1)
                else:
                    signals.wait(0, 1)
                    signals.wait(1, round_)
    """
    result = launch_on_nodes(tmp_path, nodes, program, BEELINE_CHECK="1")
    assert result.returncode == 0, result.stderr
    warnings = [line for line in result.stderr.splitlines() if "warning" in line]
    assert len(warnings) == 1, result.stderr
    assert "rank 0 sets a signal of rank 1 to 1, which it is already" in warnings[0]


@pytest.mark.parametrize("nodes", ["1", "2"])
def test_a_barrier_says_that_the_other_rank_allocates(nodes: str, tmp_path: Path) -> None:
    program = """if True:
        import os, beeline
        with beeline.World.create(deadline_s=(3, 60)[int(os.environ["BEELINE_RANK"])]) as world:
            world.allocate(100) if world.rank == 1 else world.barrier()
    """
    result = launch_on_nodes(tmp_path, nodes, program)
    assert result.returncode == 1
    assert re.search(r"rank 0: barrier on rank 1.*\n.*at that time:\n.*rank 1 is in allocate", result.stderr)


def test_ranks_exchange_numbers(tmp_path: Path) -> None:
    done = launch(tmp_path, 4, "\n".join([
        "import beeline, numpy",
        "with beeline.World.create() as world:",
        "    memory = world.allocate(4, 'int64')",
        "    mine = numpy.full(4, world.rank)",
        "    world.copy(memory.at((world.rank + 1) % world.size), mine)",
        "    world.barrier()",
        "    print('rank', world.rank, 'got', numpy.from_dlpack(memory).tolist(), flush=True)",
    ]))  # fmt: skip
    assert done.returncode == 0, done.stderr
    for rank in range(4):
        assert f"rank {rank} got {[(rank - 1) % 4] * 4}" in done.stdout


def test_a_world_that_nobody_leaves_is_left_at_the_end(tmp_path: Path) -> None:
    done = launch(tmp_path, 2, "import beeline\nworld = beeline.World.create()\nmemory = world.allocate(8)\n")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("leaves", ["world.leave()", ""])
def test_a_world_that_is_never_destroyed(tmp_path: Path, leaves: str) -> None:
    done = launch(tmp_path, 3, "\n".join([
        "import beeline, ctypes",
        "world = beeline.World.create()",
        "world.barrier()",
        "ctypes.pythonapi.Py_IncRef(ctypes.py_object(world))  # as caches of other libraries hold on to it",
        leaves,
    ]))  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_an_exception_is_told_to_the_others(tmp_path: Path) -> None:
    done = launch(tmp_path, 2, "\n".join([
        "import beeline",
        "world = beeline.World.create()",
        "if world.rank == 1: raise LookupError('lost')",
        "try: world.barrier()",
        "except beeline.Error as error: print(type(error).__name__, error, flush=True)",
    ]), BEELINE_DEADLINE_S="60")  # fmt: skip
    assert done.returncode != 0
    assert re.search(r"(AbortedError|PeerDiedError) .*rank 1", done.stdout), done.stdout + done.stderr
