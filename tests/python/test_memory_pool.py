# SPDX-License-Identifier: Apache-2.0
"""torch's tensors in the symmetric heap: the C functions on host ranks, torch.cuda.MemPool where there are two GPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import beeline
import pytest

pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

REPOSITORY = Path(__file__).resolve().parents[2]
LAUNCHER = str(REPOSITORY / "build" / "bin" / "beeline-launch")
HERE = Path(__file__).resolve().parent


def run(ranks: int, program: str, *arguments: str, **environment: str) -> str:
    command = [LAUNCHER, "-n", str(ranks), "--", sys.executable, str(HERE / program), *arguments]
    settings = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_segments_of_host_ranks() -> None:
    output = run(3, "pool_rank.py")
    assert output.count(": pool") == 3
    assert "no segment of 35184372088832 bytes for torch: no_resource" in output
    assert "allocations differ" in output


def test_one_world_serves_a_device() -> None:
    def body(world: beeline.World) -> None:
        if world.rank == 0:
            beeline.library._beeline._serve_pool(world)
        world.barrier()
        if world.rank == 1:
            with pytest.raises(beeline.UnavailableError, match="a pool of another world serves the CPU"):
                beeline.library._beeline._serve_pool(world)

    beeline.run(2, body)


def test_host_ranks_have_no_pool() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from beeline.torch_backend import mem_pool

    with beeline.World.create(device="cpu") as world, pytest.raises(beeline.UnavailableError, match="runs on a CPU"):
        mem_pool(world)
    with pytest.raises(beeline.UnavailableError, match="pass a world"):
        mem_pool()


@pytest.mark.timeout(250)
def test_tensors_in_the_heap() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    gpus = torch.cuda.device_count()
    if gpus < 2:
        pytest.skip(f"{gpus} GPUs: two are needed")
    output = run(min(gpus, 4), "torch_pool_rank.py", BEELINE_HEAP_BYTES=str(1 << 30))
    assert output.count(": segments_come_back") == min(gpus, 4)


@pytest.mark.timeout(250)
def test_memory_that_two_processes_pass() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if torch.cuda.device_count() == 0:
        pytest.skip("no GPU, whose memory processes share")
    output = run(2, "torch_pool_rank.py", "memory_of_another_rank", CUDA_VISIBLE_DEVICES="0", BEELINE_HEAP_BYTES="256M")
    assert output.count(": memory_of_another_rank") == 2
