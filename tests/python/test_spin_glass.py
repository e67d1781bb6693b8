# SPDX-License-Identifier: Apache-2.0
"""`beeline app spin-glass`, with a fake program behind it."""

from __future__ import annotations

import json


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_each_method_runs_on_lattices_and_ranks(cli):
    done = cli("app", "spin-glass", "--ranks", "1,2", "--size", "8,16", "--sweeps", "9", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["ranks"], one["size"], one["method"]) for one in results] == [
        (ranks, [side] * 3, method) for ranks in (1, 2) for side in (8, 16) for method in ("off", "both")
    ]
    assert {one["sweeps"] for one in results} == {9}


def test_weak_scaling_adds_planes(cli):
    done = cli("app", "spin-glass", "--ranks", "1,4", "--size", "8", "--weak", "--json")
    assert [one["size"][2] for one in results_of(done)] == [8, 8, 32, 32]


def test_the_table_has_picoseconds_and_the_share_of_the_bound(cli):
    done = cli("app", "spin-glass")
    assert done.returncode == 0
    for text in ("Heisenberg spin glass on cpu", "64×64×64", "ps a spin", "60", "1.50", "87", "yes"):
        assert text in done.stdout


def test_a_wrong_result_fails(cli):
    done = cli("app", "spin-glass", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: off, both" in done.stderr
