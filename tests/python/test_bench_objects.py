# SPDX-License-Identifier: Apache-2.0
"""`beeline bench objects`, over its program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from launching import PROGRAMS


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    environment = kept | {"BEELINE_BIN": str(PROGRAMS)}
    command = [sys.executable, "-m", "beeline", "bench", "objects", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100, check=False)


def test_objects_are_measured_beside_copies(tmp_path: Path) -> None:
    record = tmp_path / "objects.jsonl"
    done = bench("--sizes", "1M", "--blocks", "64K", "--output", str(record))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in record.read_text().splitlines()]
    assert events[0]["event"] == "environment"
    results = [one for one in events if one["event"] == "result"]
    measured = {(one["operation"], one["method"]) for one in results if one["available"]}
    for operation in ("hpe_streaming", "hpe_sparse", "hpe_scattered", "hpe_irregular", "hpe_random", "hpe_sequential"):
        assert {(operation, "object/protection"), (operation, "bare/copy_all")} <= measured
    assert {("hpe_first_access", f"bare/{one}") for one in ("fault", "copy", "fault_and_copy")} <= measured
    assert all(one["verified"] for one in results if one["available"])
    assert "streaming, us" in done.stdout
    assert "first_access, us" in done.stdout


def test_unknown_measurements_are_refused() -> None:
    done = bench("--measurements", "sparse,nothing")
    assert done.returncode != 0
    assert "nothing" in done.stderr
