# SPDX-License-Identifier: Apache-2.0
"""`beeline app stencil`, with a fake program behind it; the lines of its listings."""

from __future__ import annotations

import json
import re
from pathlib import Path

APPLICATION = Path(__file__).resolve().parents[2] / "apps" / "stencil"


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_each_method_runs_on_each_number_of_devices(cli):
    done = cli("app", "stencil", "--devices", "1,2", "--size", "16,5x7x9", "--steps", "9", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["devices"], one["size"], one["method"]) for one in results] == [
        (devices, size, method)
        for devices in (1, 2)
        for size in ([16, 16, 16], [5, 7, 9])
        for method in ("proxy", "unified")
    ]
    assert {one["steps"] for one in results} == {9}


def test_the_table_compares_with_the_proxy_and_with_one_device(cli):
    done = cli("app", "stencil", "--devices", "1,2")
    assert done.returncode == 0
    for text in ("3-D finite differences on cpu", "64×64×64", "50", "2.50", "2.00", "37.5", "< noise", "yes"):
        assert text in done.stdout


def test_bad_numbers_of_devices_are_refused(cli):
    done = cli("app", "stencil", "--devices", "65")
    assert done.returncode == 2
    assert "'65' is no number of devices; valid: 1 to 64" in done.stderr


def test_a_wrong_result_fails(cli):
    done = cli("app", "stencil", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: proxy, unified" in done.stderr


def communication_lines(source: Path) -> int:
    """Lines of code between the marks of the communication, without blank lines and comments."""
    pieces = re.findall(r"// communication: begin\n(.*?)// communication: end", source.read_text("utf-8"), re.DOTALL)
    assert pieces, source
    lines = [line.strip() for piece in pieces for line in piece.splitlines()]
    return sum(1 for line in lines if line and not line.startswith("//"))


def test_the_readme_counts_the_lines_of_communication():
    rows = dict(
        re.findall(r"^\| `(\w+)` \| \d \| (\d+) lines \|", (APPLICATION / "README.md").read_text("utf-8"), re.MULTILINE)
    )
    methods = re.findall(
        r"^\[\[nodiscard\]\] MethodInfo (\w+)\(\);", (APPLICATION / "method.hpp").read_text("utf-8"), re.MULTILINE
    )
    assert rows == {name: str(communication_lines(APPLICATION / f"{name}.cpp")) for name in methods}
