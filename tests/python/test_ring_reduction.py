# SPDX-License-Identifier: Apache-2.0
"""`beeline app ring-reduction`, with a fake program behind it."""

from __future__ import annotations

import json


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_each_scheme_runs_on_each_number_of_ranks(cli):
    done = cli("app", "ring-reduction", "--ranks", "1,2,4", "--size", "4K", "--reductions", "9", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["method"], one["ranks"]) for one in results] == [
        (method, ranks) for ranks in (1, 2, 4) for method in ("host", "device")
    ]
    assert {one["bytes"] for one in results} == {4096}
    assert {one["reductions"] for one in results} == {9}


def test_the_table_compares_with_the_host(cli):
    done = cli("app", "ring-reduction", "--ranks", "1,2")
    assert done.returncode == 0
    for text in ("Ring reduction of 64 MiB on cpu", "2,000", "800", "2.50", "25", "32", "yes"):
        assert text in done.stdout


def test_without_verification(cli):
    done = cli("app", "ring-reduction", "--no-verify", "--method", "device", "--json")
    assert {one["verified"] for one in results_of(done)} == {None}


def test_a_wrong_result_fails(cli):
    done = cli("app", "ring-reduction", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: host, device" in done.stderr
