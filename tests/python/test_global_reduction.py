# SPDX-License-Identifier: Apache-2.0
"""`beeline app global-reduction`, with a fake program behind it, and the program itself under mpirun."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"

# Stands in for mpirun: starts one process, and sets the number of ranks for it.
MPIRUN = """#!/bin/sh
[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" && exit
while [ "$1" != -n ]; do shift; done
FAKE_MPIRUN=$2
shift 2
exec env FAKE_MPIRUN=$FAKE_MPIRUN "$@"
"""


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


@pytest.fixture
def fake_mpirun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "mpirun"
    program.write_text(MPIRUN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_what_is_available_runs_over_values_and_ranks(cli):
    done = cli("app", "global-reduction", "--values", "1K,3", "--ranks", "2,4", "--reductions", "9", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["ranks"], one["values"]) for one in results] == [(2, 1024), (2, 3), (4, 1024), (4, 3)]
    assert {(one["method"], one["reductions"]) for one in results} == {("in_kernel", 9)}
    assert "left out on 2 ranks: mpi: its ranks are started by mpirun" in done.stderr


def test_the_table_compares_with_mpi(cli, fake_mpirun):
    done = cli("app", "global-reduction", "--mpirun", "--values", "64K", "-n", "3", "--device", "cpu")
    assert done.returncode == 0
    for text in ("on cpu", "mpi", "in_kernel", "65,536", "20,000", "150,000", "7.50", "yes"):
        assert text in done.stdout


def test_without_mpirun_it_says_so(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cli("app", "global-reduction", "--mpirun")
    assert done.returncode == 1
    assert "mpirun is not on PATH" in done.stderr


def test_beside_mpi(cli):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    options = ("--mpirun", "--values", "1000", "-n", "3", "--device", "cpu", "--reductions", "3", "--json")
    done = cli("app", "global-reduction", *options, BEELINE_BIN=str(PROGRAMS))
    assert done.returncode == 0, done.stderr
    methods = [one["method"] for one in results_of(done)]
    if "mpi" not in methods:
        pytest.skip("this build has no MPI")
    assert methods == ["mpi", "on_stream", "in_kernel", "persistent"]
    assert {(one["ranks"], one["verified"]) for one in results_of(done)} == {(3, True)}
