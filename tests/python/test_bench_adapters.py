# SPDX-License-Identifier: Apache-2.0
"""`beeline-bench adapters` on two host ranks: every placement of every format, and the costs of posts and polls."""

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
            # A post stores a descriptor; it loads both halves of the free page, and whether a resident block sleeps.
            assert (post["stores"], post["loads"]) == (3, 2 + method.startswith("resident/"))
        assert (poll["stores"], poll["loads"]) == (3, 7)
        if platform.machine() == "x86_64":
            assert 20 < posts["no"]["instructions"] < posts["yes"]["instructions"] < 1000
            assert 20 < poll["instructions"] < 500


def test_queue_pairs_in_all_placements_and_steps() -> None:
    found = measured("--sizes", "8", "--operations", "message,fetch_add,write")
    for placement in PLACEMENTS:
        mine = [record for record in found if record["method"].startswith(f"{placement}/verbs/")]
        messages = {record["method"] for record in mine if record["operation"] == "message"}
        assert messages == {f"{placement}/verbs/immediate", f"{placement}/verbs/flag"}
        assert [record["unit"] for record in mine if record["operation"] == "fetch_add"] == ["us"]
        pairs = [record["settings"]["queue_pairs"] for record in mine if record["operation"] == "write"]
        assert pairs == [1, 2, 4, 8, 16, 32]


def test_accesses_of_each_step_of_optimisation() -> None:
    posters = [f"{placement}/{rest}" for placement in PLACEMENTS[:2] for rest in ("verbs/completion", "command/quiet")]
    found = measured("--methods", ",".join(posters), "--operations", "post,poll,post_poll")
    for placement in PLACEMENTS[:2]:
        mine = [record for record in found if record["method"] == f"{placement}/verbs/completion"]
        settings = {(r["operation"], r["settings"]["step"]): r["settings"] for r in mine}
        # Stores of a post: 8 fields, the payload, a stamp and the doorbell; then 4 words in place of the fields; then
        # no stamp.
        assert [settings["post", step]["stores"] for step in range(5)] == [11, 7, 7, 6, 6]
        # Loads of a post: whether a resident block sleeps.
        assert {settings["post", step]["loads"] for step in range(5)} == {int(placement == "resident")}
        # Loads of a poll: the owner and 9 fields; then the owner and 4 words; at last the owner's word alone.
        assert [settings["poll", step]["loads"] for step in range(5)] == [10, 5, 5, 5, 1]
        assert {settings["poll", step]["stores"] for step in range(5)} <= {0, 1}  # the count is published at times
        assert {step for operation, step in settings if operation == "post_poll"} == set(range(5))
    command = {r["operation"] for r in found if r["method"].endswith("command/quiet")}
    assert command == {"post", "poll", "post_poll"}


def test_posts_by_cpu_threads_and_through_mailboxes() -> None:
    methods = ("host/verbs/completion", "assisted/verbs/completion", "host/rma/notification")
    found = measured("--methods", ",".join(methods), "--operations", "post,poll,post_poll")
    rows = [(record["method"], record["operation"], record["settings"].get("step")) for record in found]
    calls = ("post", "poll", "post_poll")
    expected = [("host/verbs/completion", call, step) for call in calls for step in range(5)]
    expected += [("assisted/verbs/completion", call, None) for call in calls]
    expected += [("host/rma/notification", call, None) for call in ("post", "post", "poll")]
    assert sorted(rows, key=str) == sorted(expected, key=str)
    counted = [record for record in found if "stores" in record["settings"]]
    assert {record["method"] for record in counted} == {"host/verbs/completion", "host/rma/notification"}
