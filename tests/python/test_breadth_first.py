# SPDX-License-Identifier: Apache-2.0
"""`beeline app breadth-first`, with a fake program behind it."""

from __future__ import annotations

import json


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_each_method_runs_on_each_number_of_ranks(cli):
    done = cli("app", "breadth-first", "--ranks", "1,3", "--scale", "12", "--roots", "8", "--validate", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["ranks"], one["method"]) for one in results] == [
        (n, m) for n in (1, 3) for m in ("alltoallv", "bitmap")
    ]
    assert {one["scale"] for one in results} == {12}
    assert {one["validated_roots"] for one in results} == {8}


def test_the_table_compares_with_all_to_all_v(cli):
    done = cli("app", "breadth-first")
    assert done.returncode == 0
    for text in ("a graph of scale 16 on cpu", "125", "500", "4.00", "37.5", "64", "yes", "traversed edges per second"):
        assert text in done.stdout


def test_a_wrong_tree_fails(cli):
    done = cli("app", "breadth-first", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: alltoallv, bitmap" in done.stderr
