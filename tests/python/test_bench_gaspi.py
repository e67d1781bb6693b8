# SPDX-License-Identifier: Apache-2.0
"""`beeline bench gaspi`, over its programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import PROGRAMS

pytestmark = pytest.mark.timeout(300)  # waiting ranks take each other's time beside the sanitizers' tests


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    environment = kept | {"BEELINE_BIN": str(PROGRAMS), "BEELINE_DEVICE": "cpu"}
    command = [sys.executable, "-m", "beeline", "bench", "gaspi", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=290, check=False)


def test_functions_are_measured_beside_others(tmp_path: Path) -> None:
    record = tmp_path / "gaspi.jsonl"
    done = bench("--sizes", "8,4K", "--turns", "1", "--output", str(record))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in record.read_text().splitlines()]
    assert events[0]["event"] == "environment"
    results = [one for one in events if one["event"] == "result"]
    measured = {(one["operation"], one["method"]): one for one in results if one["available"]}
    for operation, methods in {
        "message": ["gaspi/write_notify", "c/put_signal", "bare/flag"],
        "put": ["gaspi/write", "c/put"],
        "overhead": ["gaspi/write"],
        "bandwidth": ["gaspi/write", "c/put"],
        "notifications": ["gaspi/notify"],
        "waitsome": ["gaspi/notify_waitsome"],
        "barrier": ["gaspi/barrier", "c/barrier"],
        "allreduce": ["gaspi/allreduce", "c/allreduce"],
    }.items():
        for method in methods:
            one = measured.pop((f"gaspi_{operation}", method))
            assert len(one["samples"]) == 20
            assert one["median"] > 0 or operation == "overhead"
            assert one["unit"] == {"bandwidth": "GB/s", "notifications": "Mmsg/s"}.get(operation, "us")
            assert one["verified"] is not False
    assert set(measured) <= {("gaspi_message", "mpi/staged")}
    missing = [one for one in results if one["method"] == "gpi2/write_notify"]
    assert [one["reason"] for one in missing] == ["--gpi2 says where GPI-2 is installed"]
    assert "GASPI beside other ways, us" in done.stdout


def test_a_folder_without_gpi2_is_named(tmp_path: Path) -> None:
    done = bench("--sizes", "8", "--turns", "1", "--gpi2", str(tmp_path), "--json")
    (missing,) = [one for one in map(json.loads, done.stdout.splitlines()) if one.get("method") == "gpi2/write_notify"]
    assert not missing["available"]
    assert missing["reason"].startswith(f"no program with GPI-2 in {tmp_path}: ")


def test_ranks_are_processes() -> None:
    done = bench("--threads")
    assert done.returncode != 0
    assert "ranks of GASPI are processes" in done.stderr
