# SPDX-License-Identifier: Apache-2.0
"""`beeline app tree-search`, with a fake program behind it."""

from __future__ import annotations

import json


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_each_method_runs_on_each_number_of_ranks(cli):
    done = cli("app", "tree-search", "--ranks", "1,2", "--nodes", "4000", "--searches", "9", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["ranks"], one["method"]) for one in results] == [(n, m) for n in (1, 2) for m in ("bulk", "task")]
    assert {one["nodes"] for one in results} == {4000}
    assert {one["searches"] for one in results} == {9}


def test_the_table_compares_with_the_levels(cli):
    done = cli("app", "tree-search")
    assert done.returncode == 0
    for text in ("a tree of 2000000 nodes", "8", "4.00", "1,000", "yes"):
        assert text in done.stdout


def test_a_wrong_result_fails(cli):
    done = cli("app", "tree-search", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: bulk, task" in done.stderr
