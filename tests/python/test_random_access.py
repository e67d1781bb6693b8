# SPDX-License-Identifier: Apache-2.0
"""`beeline app random-access`, with a fake program behind it, and the program itself under mpirun."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_what_is_available_runs_over_words_and_ranks(cli):
    done = cli("app", "random-access", "--words", "1K,4K", "--ranks", "1,2", "--divisor", "2", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["ranks"], one["words"], one["method"]) for one in results] == [
        (ranks, words, method) for ranks in (1, 2) for words in (1024, 4096) for method in ("bare", "put")
    ]
    assert {one["update_share"] for one in results} == {0.5}
    assert "left out on 2 ranks: mpi: its ranks are started by mpirun" in done.stderr


def test_the_words_of_weak_scaling_are_those_of_a_rank(cli):
    done = cli("app", "random-access", "--words", "1K", "--ranks", "1,4", "--weak", "--json")
    assert [one["words"] for one in results_of(done)] == [1024, 1024, 4096, 4096]


def test_the_table_compares_with_the_bare_loop(cli):
    done = cli("app", "random-access")
    assert done.returncode == 0
    for text in ("RandomAccess on cpu", "16,777,216", "0.25", "0.90", "against", "yes"):
        assert text in done.stdout


def test_errors_fail(cli):
    done = cli("app", "random-access", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: bare, put" in done.stderr


def test_beside_mpi(cli):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    options = ("--mpirun", "--words", "4K", "-n", "3", "--device", "cpu", "--divisor", "1", "--json")
    done = cli("app", "random-access", *options, BEELINE_BIN=str(PROGRAMS))
    assert done.returncode == 0, done.stderr
    methods = [one["method"] for one in results_of(done)]
    if "mpi" not in methods:
        pytest.skip("this build has no MPI")
    assert methods == ["mpi", "bare", "atomics", "mailboxes", "put", "task"]
    assert {(one["ranks"], one["errors"], one["verified"]) for one in results_of(done)} == {(3, 0, True)}
    # Ranks stay on one core each if they are at least as many as the cores.
    host, cores = json.loads(done.stdout.splitlines()[0])["host"], len(os.sched_getaffinity(0))
    assert (host["cores_allowed"], host["one_core_each"]) == (cores, cores <= 3)
