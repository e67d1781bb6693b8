# SPDX-License-Identifier: Apache-2.0
"""`beeline bench floating`, over its program."""

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
    command = [sys.executable, "-m", "beeline", "bench", "floating", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100, check=False)


def test_copies_threads_and_schemes_are_measured(tmp_path: Path) -> None:
    record = tmp_path / "floating.jsonl"
    done = bench("--sizes", "4K", "--output", str(record))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in record.read_text().splitlines()]
    assert events[0]["event"] == "environment"
    results = [one for one in events if one["event"] == "result"]
    measured = {(one["operation"], one["method"]) for one in results if one["available"]}
    assert measured >= {("hpe_call", "hpe/copy"), ("hpe_copy", "hpe/copy"), ("hpe_one_way", "hpe/staged")}
    assert {("hpe_wait", "hpe/wait_for"), ("hpe_launch", "hpe/launch")} <= measured
    assert measured >= {
        (way, f"{by}") for way in ("hpe_one_way", "hpe_two_way") for by in ("hpe/direct", "bare/pinned")
    }
    threads = {one["settings"]["threads"] for one in results if one["operation"] == "hpe_threads"}
    assert threads == {1, 2, 4, 8, 16}
    assert all(one["verified"] is not False for one in results)
    locks = [one for one in results if (one["operation"], one["method"]) == ("hpe_lock", "hpe/held")]
    assert all(one["median"] > 0 for one in locks)
    assert "copy, us" in done.stdout
    assert "one_way, GB/s" in done.stdout


def test_unknown_measurements_are_refused() -> None:
    done = bench("--measurements", "calls,nothing")
    assert done.returncode != 0
    assert "nothing" in done.stderr
