# SPDX-License-Identifier: Apache-2.0
"""torch's own tests of back ends, unchanged, on host ranks; skipped without torch or other modules that they need.

Each of them is a test here. Tests that torch skips on CPUs or for foreign back ends are skipped with torch's reason.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import forking_python

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("expecttest", reason="expecttest is not installed: torch's tests need it")
try:
    import beeline.library  # noqa: F401
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

HERE = Path(__file__).resolve().parent
LAUNCHER = str(HERE.parents[1] / "build" / "bin" / "beeline-launch")
RANKS, MORE_RANKS = 4, 8
TOO_FEW_RANKS = "Skipped due to small world size."
NOT_HERE = {
    "test_monitored_barrier_gloo_rank_0_timeout": "with a timeout of 0, Beeline names the missing rank, gloo rank 0",
}
LEAST_PASSED = 110
MOST_FAILURES = 5

Outcomes = dict[str, tuple[str, str]]


def names_of_torchs_tests() -> list[str]:
    """The file is parsed, because importing it takes seconds."""
    module = importlib.util.find_spec("torch.testing._internal.distributed.distributed_test")
    assert module is not None
    assert module.origin is not None
    classes = [
        node
        for node in ast.walk(ast.parse(Path(module.origin).read_text()))
        if isinstance(node, ast.ClassDef) and node.name == "_DistTestBase"
    ]
    names = {node.name for each in classes for node in each.body if isinstance(node, ast.FunctionDef)}
    return sorted(name for name in names if name.startswith("test_"))


def run_in_one_world(python: list[str], names: list[str], ranks: int, folder: Path) -> Outcomes:
    """Outcomes of the first tests, up to one that fails."""
    for name in ("barrier", "test_dir"):  # torch's tests exchange files there
        (folder / name).mkdir(parents=True)
    command = [LAUNCHER, "-n", str(ranks), "--device", "cpu", "--", *python, str(HERE / "torch_suite_rank.py")]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python"), "OMP_NUM_THREADS": "1"}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "BEELINE_TORCH_NATIVE": "1"}
    done = subprocess.run(
        [*command, str(folder), *names], capture_output=True, text=True, env=environment, timeout=500, check=False
    )
    files = [folder / f"{rank}.jsonl" for rank in range(ranks)]
    lines = [file.read_text().splitlines() if file.exists() else [] for file in files]
    outcomes: Outcomes = {}
    for name, *each in zip(names, *[map(json.loads, rank) for rank in lines], strict=False):
        failures = [f"rank {rank}: {text}" for rank, (_, outcome, text) in enumerate(each) if outcome == "failed"]
        outcomes[name] = ("failed", "\n".join(failures)) if failures else (each[0][1], each[0][2])
    if len(outcomes) < len(names) and "failed" not in [outcome for outcome, _ in outcomes.values()]:
        found = [f"rank {rank}: {json.loads(end[-1])}" for rank, end in enumerate(lines) if len(end) > len(outcomes)]
        text = "\n".join([*found, done.stdout[-4000:], done.stderr[-4000:]])
        outcomes[names[len(outcomes)]] = ("failed", f"not all ranks came to its end:\n{text}")
    return outcomes


def run_all(python: list[str], names: list[str], ranks: int, folder: Path) -> Outcomes:
    """If a test breaks the world, a new one is created for the remaining tests, a few times."""
    outcomes: Outcomes = {}
    for _ in range(MOST_FAILURES):
        left = [name for name in names if name not in outcomes]
        if left:
            outcomes |= run_in_one_world(python, left, ranks, folder / f"{ranks}-{len(left)}")
    not_run = ("failed", f"not run, after {MOST_FAILURES} failures of others")
    return {name: outcomes.get(name, not_run) for name in names}


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    native_part: None,
) -> Outcomes:
    """The outcomes of the selected tests."""
    folder = tmp_path_factory.mktemp("torch")
    chosen = [item.callspec.params["name"] for item in request.session.items if item.name.startswith("test_of_torch[")]
    chosen = [name for name in chosen if name not in NOT_HERE]
    with forking_python("torch.testing._internal.common_distributed") as python:  # sets flags of torch's
        found = run_all(python, chosen, RANKS, folder)
        unmet = [name for name in chosen if found[name][1] == TOO_FEW_RANKS]
        return found | run_all(python, unmet, MORE_RANKS, folder)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", names_of_torchs_tests())
def test_of_torch(name: str, outcomes: Outcomes) -> None:
    outcome, text = ("skipped", NOT_HERE[name]) if name in NOT_HERE else outcomes[name]
    if outcome == "skipped":
        pytest.skip(text)
    assert outcome == "passed", text


def test_the_most_that_run_on_host_ranks_were_run(outcomes: Outcomes) -> None:
    """Unless tests were selected."""
    if len(outcomes) + len(NOT_HERE) == len(names_of_torchs_tests()):
        assert [outcome for outcome, _ in outcomes.values()].count("passed") >= LEAST_PASSED
