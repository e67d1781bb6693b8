# SPDX-License-Identifier: Apache-2.0
"""The torch.distributed back end, on host ranks, and on GPUs if there are two; without torch all is skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import beeline
import pytest
from conftest import build_torch_part, forking_python
from hosts import ends

torch = pytest.importorskip("torch", reason="torch is not installed")
try:
    import beeline.library  # noqa: F401
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

REPOSITORY = Path(__file__).resolve().parents[2]
LAUNCHER = str(REPOSITORY / "build" / "bin" / "beeline-launch")
OLDEST = "2.11"  # oldest torch that the back end supports
RANK = str(Path(__file__).resolve().parent / "torch_rank.py")
CASES = [
    "all_reduce", "gather_and_scatter", "all_to_all", "broadcast", "to_one_rank", "coalesced", "messages", "time_outs",
    "any_source", "monitored_barrier", "order", "let_go", "groups", "meshes", "refusals", "unlike_types",
    "complex_sums", "independent", "messages_of_groups", "data_parallel",
    "data_parallel_overlapped", "data_parallel_with_sharded_optimizer", "fully_sharded", "fully_sharded_overlapped",
    "sharded_in_rows", "tensor_parallel", "pipeline",
    "checkpoint", "compiled_functions", "compiled_to_code", "compiled_data_parallel", "captured_graph",
]  # fmt: skip


def run(command: list[str], device: str, **settings: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1", **settings}
    if device == "cpu":
        environment["BEELINE_DEVICE"] = "cpu"
    elif torch.cuda.device_count() == 1:
        environment["BEELINE_DEVICE"] = "cuda:0"
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# Whether torch's C++ code calls the back end without Python: BEELINE_TORCH_NATIVE.
both_ways = pytest.mark.parametrize("native", ["0", "1"], ids=["through-python", "native"])


@pytest.fixture(scope="module")
def path_of_the_oldest_torch() -> str:
    place = REPOSITORY / ".venv" / "oldest-torch"
    if not place.exists():
        pytest.skip("tools/setup-torch has not installed it")
    return f"{place.read_text().strip()}:{REPOSITORY / 'python'}"


@pytest.fixture(scope="module")
def oldest_torch_python(path_of_the_oldest_torch: str) -> Iterator[list[str]]:
    with forking_python(PYTHONPATH=path_of_the_oldest_torch) as command:
        yield command


@pytest.mark.timeout(500)
@both_ways
def test_operations_with_the_oldest_torch(
    native: str, path_of_the_oldest_torch: str, oldest_torch_python: list[str]
) -> None:
    if native == "1":
        build_torch_part(PYTHONPATH=path_of_the_oldest_torch)
    command = [LAUNCHER, "-n", "3", "--device", "cpu", "--", *oldest_torch_python, RANK, "own_world", "cpu"]
    output = run(command, "cpu", BEELINE_TORCH_NATIVE=native, PYTHONPATH=path_of_the_oldest_torch)
    assert f"torch {OLDEST}" in output
    assert output.count(f": {CASES[-1]}") == 3


def ranks_on(device: str, most: int) -> int:
    """The number of ranks of a test: each has a GPU, or two share one if NVIDIA's Multi-Process Service allows it."""
    if device == "cpu":
        return most
    gpus = torch.cuda.device_count()
    service = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")) / "control"
    if gpus < 2 and not (gpus == 1 and service.exists()):
        pytest.skip(f"{gpus} GPUs: two are needed, or one that MPS shares")
    return max(2, min(gpus, most))


@pytest.mark.usefixtures("native_part")
@pytest.mark.timeout(500)
@both_ways
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_operations_in_a_world_of_ones_own(device: str, native: str, torch_python: list[str]) -> None:
    ranks = ranks_on(device, 3)
    where = ["--device", "cpu"] if device == "cpu" else []  # a launcher sets it for its ranks
    python = torch_python if device == "cpu" else [sys.executable]
    command = [LAUNCHER, "-n", str(ranks), *where, "--", *python, RANK, "own_world", device]
    output = run(command, device, BEELINE_TORCH_NATIVE=native)
    for rank in range(ranks):
        for case in CASES:
            assert f"rank {rank}: {case}" in output


HEAD = """
from datetime import timedelta
import beeline, beeline.torch_backend, pytest, torch, torch.distributed as dist
world = beeline.World.create(device="cpu")
store = beeline.torch_backend.make_store(world)
dist.init_process_group("beeline", store=store, rank=world.rank, world_size=world.size, pg_options=world)
"""
NOBODY_SENDS = r"""
if world.rank == 0:
    with pytest.raises(beeline.DeadlineError, match=r"from any of ranks \[1, 2\]: no message within 2 s"):
        dist.recv(torch.ones(3))
    left = dist.irecv(torch.ones(3))
    with pytest.raises(beeline.TimeoutError, match="a receive without a source within 0:00:00.1"):
        left.wait(timedelta(seconds=0.1))
store.set(str(world.rank), "done")
store.wait(["0"])
dist.destroy_process_group()
if world.rank == 0:
    with pytest.raises(beeline.AbortedError, match="no message until the group was destroyed"):
        left.wait()
world.leave()
"""
FAILS_WHILE_IT_WAITS = """
if world.rank == 0:
    left = dist.irecv(torch.ones(3))
    raise KeyError("on purpose")
dist.barrier()
"""

# A waiting grid of one block occupies the whole device.
NO_ROOM = """
from beeline.library import _beeline
stream, other, theirs, mine = world.make_stream(), beeline.Collectives(world), torch.ones(2), torch.ones(2)
rooms = []
def make_room():
    rooms.append(world.rank)
    store.set("asked", "")
    world.synchronize(stream)
calls = _beeline._TorchCalls(world, theirs, None, make_room)
if world.rank != 0:
    store.wait(["asked"])
other.allreduce(theirs, stream=stream, blocks=1)
if world.rank != 0:
    world.synchronize(stream)
calls.allreduce(mine, mine, True).wait()
assert (theirs == 3).all() and (mine == 3).all() and (world.rank != 0 or rooms == [0]), rooms
full = _beeline._TorchCalls(world, theirs, None, lambda: None)
if world.rank == 0:
    other.allreduce(theirs, stream=stream, blocks=1)
    with pytest.raises(beeline.NoResourceError):
        full.allreduce(mine, mine, True)
    store.set("refused", "")
else:
    store.wait(["refused"])
    other.allreduce(theirs, stream=stream, blocks=1)
world.synchronize(stream)
dist.destroy_process_group()
world.leave()
"""


# Ranks that the launcher numbers as torch does join the launcher's world, not a new one of rank 0.
LAUNCHED = """
import os
def served(*_):
    raise AssertionError("rank 0 serves a world beside the launcher's")
beeline.torch_join._beeline._join_world = served
dist.destroy_process_group()
dist.init_process_group("beeline", init_method="file://" + os.environ["FOLDER"] + "/meeting",
    rank=world.rank, world_size=world.size)
assert dist.group.WORLD.world is not world
dist.all_reduce(tensor := torch.full((3,), world.rank + 1.0))
assert (tensor == 6).all()
dist.destroy_process_group()
world.leave()
"""


def run_program(python: list[str], text: str, deadline_s: int, **settings: str) -> subprocess.CompletedProcess[str]:
    command = [LAUNCHER, "-n", "3", "--device", "cpu", "--", *python, "-c", HEAD + text]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "BEELINE_DEADLINE_S": str(deadline_s)}
    environment |= settings
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100, check=False)


def test_a_call_without_room_comes_after_the_others(torch_python: list[str]) -> None:
    done = run_program(torch_python, NO_ROOM, deadline_s=30, BEELINE_HOST_THREADS="64")
    assert done.returncode == 0, done.stdout + done.stderr


def test_ranks_that_the_launcher_counts_join_its_world(torch_python: list[str], tmp_path: Path) -> None:
    done = run_program(torch_python, LAUNCHED, deadline_s=30, FOLDER=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_receives_that_no_message_matches_end(torch_python: list[str]) -> None:
    done = run_program(torch_python, NOBODY_SENDS, deadline_s=2)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_receive_that_waits_does_not_hold_up_the_end(torch_python: list[str]) -> None:
    done = run_program(torch_python, FAILS_WHILE_IT_WAITS, deadline_s=1000)
    assert "rank 0 aborted: KeyError: 'on purpose'" in done.stderr


def test_ranks_that_torch_alone_counts(torch_python: list[str], tmp_path: Path) -> None:
    foreign = ("BEELINE_", "MASTER_", "TORCHELASTIC_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {"PYTHONPATH": str(REPOSITORY / "python"), "BEELINE_DEVICE": "cpu", "BEELINE_TORCH_NATIVE": "0"}
    command = [*torch_python, str(Path(RANK).with_name("torch_join_rank.py"))]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), "2", str(tmp_path)], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    for rank, (status, out, err) in enumerate(ends(ranks)):
        assert status == 0, out + err
        assert f"rank {rank}: unlike_calls" in out
        assert "waitForInput" not in err


@pytest.mark.timeout(250)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_operations_under_torchrun(device: str, torch_python: list[str]) -> None:
    ranks = ranks_on(device, 2)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = ["--no-python", *torch_python, RANK] if device == "cpu" else [RANK]
    output = run([*launcher, *command, device], device)
    assert output.count(f": {CASES[-1]}") == ranks


# A rank ends within its fourth step; torchrun then restarts all. It ends the other ranks when it notices, perhaps
# before they have reported their error. A pending call on a GPU then has no result: the barrier gives the reason.
STEPS = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
import beeline, beeline.torch_backend, torch, torch.distributed as dist
dist.init_process_group("beeline")
rank, attempt = dist.get_rank(), os.environ["TORCHELASTIC_RESTART_COUNT"]
own = dist.group.WORLD.world.device
device = torch.device("cuda", own.index) if own.kind == "gpu" else torch.device("cpu")
for step in range(5):
    if (rank, attempt, step) == (1, "0", 3):
        os._exit(7)
    try:
        dist.all_reduce(tensor := torch.ones(1 << 20, device=device))
        dist.barrier()
    except beeline.PeerDiedError as error:
        print(f"rank {rank} hears: {error}", flush=True)
        raise
    assert (tensor == dist.get_world_size()).all()
print(f"rank {rank}: all steps in attempt {attempt}", flush=True)
dist.destroy_process_group()
"""


@pytest.mark.timeout(250)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_rank_that_dies_in_a_step_is_named_and_torchrun_restarts(device: str, tmp_path: Path) -> None:
    ranks = ranks_on(device, 3)
    program = tmp_path / "steps.py"
    program.write_text(STEPS)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts", "1"]
    output = run([*launcher, "--nproc-per-node", str(ranks), str(program)], device)
    for rank in {*range(ranks)} - {1}:
        assert f"rank {rank} hears: peer_died: rank {rank}: rank 1 " in output
    for rank in range(ranks):
        assert f"rank {rank}: all steps in attempt 1" in output
