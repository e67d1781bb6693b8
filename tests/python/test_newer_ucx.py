# SPDX-License-Identifier: Apache-2.0
"""Worlds on several nodes with PyPI's UCX, the newest version that is tested: a ring, and GPUs. tests/CMakeLists.txt
has the C++ tests that run with it; the other tests use the system's UCX, such as Debian's 1.13."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import skip_without_ucx

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "build" / "bin"
PACKAGE = importlib.util.find_spec("libucx")
pytestmark = [
    pytest.mark.skipif(PACKAGE is None, reason="needs PyPI's libucx-cu13 (tools/requirements.txt)"),
    pytest.mark.timeout(300),
]


def gpus() -> int:
    nvidia_smi = shutil.which("nvidia-smi")
    if nvidia_smi is None:
        return 0
    listed = subprocess.run([nvidia_smi, "-L"], capture_output=True, text=True, timeout=60, check=False)
    return listed.stdout.count("GPU ")


def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    assert PACKAGE is not None
    assert PACKAGE.submodule_search_locations is not None
    libraries = str(Path(PACKAGE.submodule_search_locations[0], "lib"))
    environment = os.environ | {"BEELINE_UCX": libraries} | variables
    command = [str(PROGRAMS / program), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)


def test_it_is_that_version() -> None:
    wanted = re.search(r"^libucx-cu13==(\S+)$", (ROOT / "tools/requirements.txt").read_text(), re.MULTILINE)
    assert wanted is not None
    ranks = ["-n", "2", "--device", "cpu", "--split-nodes", "2"]
    done = run("beeline-launch", *ranks, "--", str(PROGRAMS / "example_ring"), BEELINE_LOG="info")
    skip_without_ucx(done.stderr)
    assert done.returncode == 0, done.stderr
    assert f"UCX {wanted[1]} carries operations" in done.stderr


@pytest.mark.skipif(gpus() < 2, reason="two GPUs are needed")
@pytest.mark.parametrize("payloads", ["staged", "ucx"])
def test_kernels_that_wait_get_on_beside_its_cuda_transports(payloads: str) -> None:
    """Each rank's kernel waits for puts throughout the network transfers."""
    ranks = ["-n", "2", "--device", "cuda:0,cuda:1", "--split-nodes", "2", "--json"]
    bench = [str(PROGRAMS / "beeline-bench"), "network", "--operations", "message", "--sizes", "8,1M"]
    variables = {"UCX_TLS": "tcp,cuda_copy,cuda_ipc", "BEELINE_GPU_PAYLOADS": payloads}
    done = run("beeline-launch", *ranks, "--", *bench, "--iterations", "100", **variables)
    assert done.returncode == 0, done.stderr
    assert "is not available" not in done.stderr  # UCX's words for a transport that it lacks
    found = [record for line in done.stdout.splitlines() if (record := json.loads(line))["event"] == "result"]
    ours = [record for record in found if record["method"] == "network/put_signal"]
    assert len(ours) == 8
    assert all(record["verified"] for record in ours)


@pytest.mark.skipif(gpus() < 2, reason="two GPUs are needed")
def test_gpu_memory_that_it_reads_and_writes_itself() -> None:
    cases = ":".join(f"processes_2_gpus_on_2_nodes.*{part}*" for part in ("put", "get", "copy", "sources", "strided"))
    done = run("conformance_processes_test", f"--gtest_filter={cases}", BEELINE_GPU_PAYLOADS="ucx")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert re.search(r"\[  PASSED  \] \d+ test", done.stdout)


@pytest.mark.skipif(gpus() < 2, reason="two GPUs are needed")
def test_gpu_memory_that_it_has_no_transport_for() -> None:
    ranks = ["-n", "2", "--device", "cuda:0,cuda:1", "--split-nodes", "2"]
    variables = {"UCX_TLS": "tcp", "BEELINE_GPU_PAYLOADS": "ucx"}
    done = run("beeline-launch", *ranks, "--", str(PROGRAMS / "example_ring"), **variables)
    assert done.returncode != 0
    assert "has no transport for GPU memory" in done.stderr
    assert "cuda_copy" in done.stderr
