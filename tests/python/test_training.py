# SPDX-License-Identifier: Apache-2.0
"""apps/training: four ranks reach the same result with each back end; skipped without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import skip_without_ucx

torch = pytest.importorskip("torch", reason="torch is not installed")
try:
    import beeline.library  # noqa: F401
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

REPOSITORY = Path(__file__).resolve().parents[2]


def train(
    python: list[str], device: str, *arguments: str, ranks: int = 4, nodes: int = 1, heap: str = "1G"
) -> subprocess.CompletedProcess[str]:
    launcher = [str(REPOSITORY / "build" / "bin" / "beeline-launch"), "-n", str(ranks), "--json"]
    interpreter = python if device == "cpu" else [sys.executable]
    command = [*launcher, "--", *interpreter, str(REPOSITORY / "apps" / "training" / "main.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "BEELINE_SPLIT_NODES": str(nodes)}
    environment["BEELINE_HEAP_BYTES"] = heap
    if device == "cpu":
        environment["BEELINE_DEVICE"] = "cpu"
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)


def results_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stdout + done.stderr
    environment, *results = [json.loads(line) for line in done.stdout.splitlines()]
    assert (environment["event"], environment["torch"]) == ("environment", torch.__version__)
    return results


@pytest.mark.timeout(250)
@pytest.mark.parametrize(("device", "peer"), [("cpu", "gloo"), ("gpu", "nccl")])
@pytest.mark.parametrize(("model", "steps", "guess"), [("convolutional", 200, 2.30), ("small-transformer", 100, 4.16)])
def test_all_back_ends_learn_the_same(
    torch_python: list[str], device: str, peer: str, model: str, steps: int, guess: float
) -> None:
    if device == "gpu" and torch.cuda.device_count() < 2:
        pytest.skip(f"{torch.cuda.device_count()} GPUs: two are needed")
    ranks = 4 if device == "cpu" else min(4, torch.cuda.device_count())
    done = train(torch_python, device, "--backend", f"{peer},beeline,serial", "--model", model, ranks=ranks)
    results = results_of(done)
    assert [result["backend"] for result in results] == [peer, "beeline", "serial"]
    for result in results:
        assert (result["steps"], result["ranks"], result["verified"]) == (steps, ranks, True)
        assert result["relative_difference"] <= 1e-3
        assert result["step_ms"] > 0
        assert result["loss"] < guess - 1.0, "it has learnt"


@pytest.mark.timeout(250)
def test_back_ends_take_turns(torch_python: list[str]) -> None:
    # Each round's process group frees its memory: the heap has room for three groups at a time.
    done = train(torch_python, "cpu", "--backend", "beeline,gloo", "--steps", "5", "--rounds", "7", ranks=2, heap="16M")
    results = results_of(done)
    assert [result["backend"] for result in results] == ["beeline", "gloo"]
    for result in results:
        assert len(result["rounds_ms"]) == 7
        assert result["step_ms"] == sorted(result["rounds_ms"])[3]


@pytest.mark.timeout(250)
def test_two_nodes_learn_the_same(torch_python: list[str]) -> None:
    done = train(torch_python, "cpu", "--backend", "gloo,beeline", "--model", "convolutional", "--steps", "50", nodes=2)
    skip_without_ucx(done.stderr)
    gloo, own = results_of(done)
    assert (gloo["backend"], own["backend"]) == ("gloo", "beeline")
    assert abs(own["loss"] - gloo["loss"]) <= 1e-3 * gloo["loss"]
    assert own["verified"]


def test_bad_arguments_are_refused(torch_python: list[str]) -> None:
    done = train(torch_python, "cpu", "--backend", "gloo,telegraph", ranks=1)
    assert done.returncode != 0
    assert "telegraph" in done.stderr
    done = train(torch_python, "cpu", "--model", "oracle", ranks=1)
    assert done.returncode != 0
    assert "unknown model oracle" in done.stderr
