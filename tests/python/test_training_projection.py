# SPDX-License-Identifier: Apache-2.0
"""`beeline app training-projection`: arithmetic over records of ring reductions."""

from __future__ import annotations

import json
import math
from pathlib import Path


def write(path: Path, *results: dict) -> str:
    common = {"event": "result", "app": "ring_reduction", "bytes": 1024, "ranks": 2, "verified": True}
    path.write_text("\n".join(json.dumps(common | each) for each in results))
    return str(path)


def test_each_scheme_is_compared_with_the_host(cli, tmp_path: Path) -> None:
    record = write(
        tmp_path / "record.jsonl",
        {"method": "host", "seconds": 2e-3},
        {"method": "device", "seconds": 1e-3},
        {"method": "stream", "seconds": None},
        {"method": "proxy", "seconds": 1e-3, "verified": False},
        {"method": "device", "seconds": 1e-3, "ranks": 4},
    )
    done = cli("app", "training-projection", record, "--json")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["method"], one["reduction_speed_up"]) for one in found] == [("host", 1), ("device", 2)]
    assert set(found[0]["speed_ups"].values()) == {1}
    assert math.isclose(found[1]["speed_ups"]["AN4 LSTM"], 1 / (1 - 0.5 + 0.5 / 2))
    assert math.isclose(found[1]["speed_ups"]["CIFAR"], 1 / (1 - 0.04 + 0.04 / 2))


def test_the_table_has_ceilings(cli, tmp_path: Path) -> None:
    record = write(tmp_path / "record.jsonl", {"method": "host", "seconds": 1.0}, {"method": "device", "seconds": 0.25})
    done = cli("app", "training-projection", record)
    assert done.returncode == 0, done.stderr
    for text in ("2 ranks", "x 4.00", "AlexNet", "14%", "1.16", "1.600", "2.00", "1.41"):
        assert text in done.stdout


def test_a_record_without_the_baseline(cli, tmp_path: Path) -> None:
    done = cli("app", "training-projection", write(tmp_path / "r.jsonl", {"method": "device", "seconds": 1.0}))
    assert done.returncode == 1
    assert "no reduction by host, which the others are compared with" in done.stderr
