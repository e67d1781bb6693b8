# SPDX-License-Identifier: Apache-2.0
"""`beeline-bench adapters` on two host ranks: every placement of every format, and what posts and polls cost."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"
PLACEMENTS = ("resident", "proxy", "host", "assisted")
Record = dict[str, Any]


def measured(*arguments: str) -> list[Record]:
    program = [str(PROGRAMS / "beeline-bench"), "adapters", *arguments, "--iterations", "2"]
    command = [str(PROGRAMS / "beeline-launch"), "-n", "2", "--device", "cpu", "--json", "--", *program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    results = [record for record in found if record["event"] == "result" and record["available"]]
    assert all(record["verified"] for record in results)
    return results


def test_messages_in_all_placements_beside_command_queues() -> None:
    found = measured("--sizes", "8,64K", "--operations", "message,put")
    methods = {f"{placement}/rma/{protocol}" for placement in PLACEMENTS for protocol in ("notification", "flag")}
    methods |= {"proxy/copy_engine/signal", "proxy/peer/signal"}
    for operation, size, unit in (("message", 8, "us"), ("message", 65536, "us"), ("put", 65536, "GB/s")):
        here = [record for record in found if (record["operation"], record["bytes"]) == (operation, size)]
        assert {record["method"] for record in here} >= methods
        assert {record["unit"] for record in here} == {unit}
    ours = [r for r in found if "/rma/" in r["method"] and r["operation"] == "message" and r["bytes"] == 8]
    assert {record["baseline"] for record in ours} == {"bare/put_signal"}


def test_locks_in_all_placements() -> None:
    found = measured("--operations", "lock")
    assert {record["method"] for record in found} >= {f"{placement}/rma/notification" for placement in PLACEMENTS}


def test_accesses_and_instructions_of_posts_and_polls() -> None:
    methods = [f"{placement}/rma/notification" for placement in PLACEMENTS[:2]]
    found = measured("--methods", ",".join(methods), "--operations", "post,poll")
    for method in methods:
        mine = [record for record in found if record["method"] == method]
        posts = {r["settings"]["checks"]: r["settings"] for r in mine if r["operation"] == "post"}
        (poll,) = (record["settings"] for record in mine if record["operation"] == "poll")
        for post in posts.values():
            assert (post["stores"], post["loads"]) == (3, 2)  # a descriptor; both halves of a page that is free
            assert post["atomics"] == method.startswith("resident/")
        assert (poll["stores"], poll["loads"], poll["atomics"]) == (3, 7, 0)
        if platform.machine() == "x86_64":
            assert 20 < posts["no"]["instructions"] < posts["yes"]["instructions"] < 1000
            assert 20 < poll["instructions"] < 500
