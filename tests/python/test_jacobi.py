# SPDX-License-Identifier: Apache-2.0
"""`beeline app jacobi`, with a fake program behind it."""

from __future__ import annotations

import json


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_each_method_runs_on_each_grid_and_number_of_ranks(cli):
    done = cli("app", "jacobi", "--ranks", "1,3", "--size", "16,5x7", "--iterations", "9", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["ranks"], one["columns"], one["rows"], one["method"]) for one in results] == [
        (ranks, *grid, method)
        for ranks in (1, 3)
        for grid in ((16, 16 * ranks), (5, 7))
        for method in ("host", "device")
    ]
    assert {one["iterations"] for one in results} == {9}


def test_the_table_compares_with_the_host(cli):
    done = cli("app", "jacobi", "--size", "16,64")
    assert done.returncode == 0
    for text in ("2-D Jacobi on cpu", "16×32", "64×128", "12.5", "4.00", "321", "37.5", "< noise", "yes"):
        assert text in done.stdout
    assert "largest" not in done.stdout
    assert "runs without communication took longer" in done.stdout


def test_until_a_change(cli):
    done = cli("app", "jacobi", "--size", "16", "--until", "0.01", "--every", "50", "--method", "device")
    assert done.returncode == 0
    for text in ("largest", "150", "0.009"):
        assert text in done.stdout


def test_without_verification(cli):
    done = cli("app", "jacobi", "--size", "16", "--no-verify", "--method", "device", "--json")
    assert {one["verified"] for one in results_of(done)} == {None}


def test_a_wrong_result_fails(cli):
    done = cli("app", "jacobi", "--size", "16", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: host, device" in done.stderr
