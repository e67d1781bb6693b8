# SPDX-License-Identifier: Apache-2.0
"""The torch.distributed back end, on host ranks, and on GPUs where there are two; without torch all is skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import beeline
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

REPOSITORY = Path(__file__).resolve().parents[2]
LAUNCHER = str(REPOSITORY / "build" / "bin" / "beeline-launch")
RANK = str(Path(__file__).resolve().parent / "torch_rank.py")
CASES = [
    "all_reduce", "gather_and_scatter", "all_to_all", "broadcast", "to_one_rank", "coalesced", "messages", "order",
    "groups", "meshes", "refusals", "learn",
]  # fmt: skip


def run(command: list[str], device: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}
    if device == "cpu":
        environment["BEELINE_DEVICE"] = "cpu"
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ranks_on(device: str, most: int) -> int:
    if device == "cpu":
        return most
    gpus = torch.cuda.device_count()
    if gpus < 2:
        pytest.skip(f"{gpus} GPUs: two are needed")
    return min(gpus, most)


def test_a_call_without_room_comes_after_the_others() -> None:
    from beeline.torch_backend import PatientCalls

    class Channel:
        full = True

        def allreduce(self, vector: str, *, stream: str) -> str:
            if self.full:
                raise beeline.NoResourceError("no room")
            return vector + stream

    channel = Channel()
    calls = PatientCalls(channel, lambda: setattr(channel, "full", False))
    assert [calls.allreduce("a", stream="b") for _ in range(2)] == ["ab", "ab"]
    calls = PatientCalls(Channel(), lambda: None)
    with pytest.raises(beeline.NoResourceError):
        calls.allreduce("a", stream="b")


@pytest.mark.timeout(250)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_operations_in_a_world_of_ones_own(device: str) -> None:
    ranks = ranks_on(device, 3)
    where = ["--device", "cpu"] if device == "cpu" else []  # a launcher tells its ranks
    output = run([LAUNCHER, "-n", str(ranks), *where, "--", sys.executable, RANK, "own_world", device], device)
    for rank in range(ranks):
        for case in CASES:
            assert f"rank {rank}: {case}" in output


@pytest.mark.timeout(250)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_operations_under_torchrun(device: str) -> None:
    ranks = ranks_on(device, 2)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    output = run([*launcher, RANK, device], device)
    assert output.count(": learn") == ranks
