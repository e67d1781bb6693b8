# SPDX-License-Identifier: Apache-2.0
"""`beeline app merge-sort`, with a fake program behind it."""

from __future__ import annotations

import json


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_each_method_runs_on_each_number_of_devices(cli):
    done = cli("app", "merge-sort", "--devices", "1,4", "--keys", "16,64", "--sorts", "9", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["devices"], one["keys"], one["method"]) for one in results] == [
        (devices, keys, method) for devices in (1, 4) for keys in (16, 64) for method in ("copied_keys", "remote_reads")
    ]
    assert {one["sorts"] for one in results} == {9}


def test_the_table_compares_with_one_device(cli):
    done = cli("app", "merge-sort")
    assert done.returncode == 0
    for text in ("Merge sort of 64-bit keys on cpu", "64,000", "8", "2.00", "37.5", "yes"):
        assert text in done.stdout


def test_a_wrong_result_fails(cli):
    done = cli("app", "merge-sort", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: copied_keys, remote_reads" in done.stderr
