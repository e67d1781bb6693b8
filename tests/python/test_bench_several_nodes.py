# SPDX-License-Identifier: Apache-2.0
"""beeline-bench on four host ranks that count as two nodes: what needs loads and stores between all is left out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"
NOT_REACHED = "loads and stores do not reach rank 2 from rank 0"


def results(command: list[str]) -> list[dict[str, Any]]:
    options = ["-n", "4", "--device", "cpu", "--split-nodes", "2", "--json"]
    program = [str(PROGRAMS / "beeline-bench"), *command, "--iterations", "2"]
    launch = [str(PROGRAMS / "beeline-launch"), *options, "--", *program]
    done = subprocess.run(launch, capture_output=True, text=True, timeout=300, check=False)
    if "need UCX" in done.stderr:
        pytest.skip("ranks on several nodes need UCX")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [record for record in found if record["event"] == "result"]


@pytest.mark.parametrize(
    ("command", "left_out"),
    [
        (["latency", "--sizes", "8"], ("barrier", "device/peer/signal")),
        (["bandwidth", "--sizes", "64K"], None),
        (["rate"], ("random_update", "device/peer/signal")),
        (["address-space"], None),
        (["collectives", "--sizes", "8"], ("allreduce", "device/automatic")),
        (["calls", "--sizes", "8"], None),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_needs_loads_and_stores_is_left_out(command: list[str], left_out: tuple[str, str] | None) -> None:
    found = results(command)
    measured = [record for record in found if record["available"]]
    assert measured
    assert all(record["verified"] in (True, None) for record in measured)
    reasons = [r["reason"] for r in found if (r["operation"], r["method"]) == left_out]
    assert bool(reasons) == (left_out is not None)
    assert all(NOT_REACHED in reason for reason in reasons)
