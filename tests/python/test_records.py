# SPDX-License-Identifier: Apache-2.0
"""Records with errors: every command that reads one refuses it and names file, line and field, or shows its texts
unchanged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from beeline import jobs, records
from beeline.commands import launch, plot
from beeline.energy_record import read_record
from beeline.errors import InvalidArgumentError

Record = dict[str, Any]

PART = {"watts": 1.0, "joules": 1.0, "joules_above_idle": None}
SPENT = {"components": dict.fromkeys(("gpu", "cpu", "dram"), PART), "seconds": 1e-6, "cpu_cores": 1.0, "spread": 0.1}
CALLS: Record = {
    "event": "result", "operation": "allreduce", "method": "stream/automatic", "bytes": 8, "ranks": 2, "unit": "us",
    "median": 1.0, "bus_gb_per_s": 1.0, "settings": {"type": "float32", "blocks": 1},
}  # fmt: skip
JOULES = CALLS | {"unit": "nJ/word", "bus_gb_per_s": None, "energy": SPENT}
HIMENO: Record = {
    "event": "result", "app": "himeno", "method": "m", "ranks": 1, "device": "cpu", "size": [8, 8, 8], "iterations": 5,
    "seconds": 1.0, "mflops": 1.0, "launch_seconds": 1e-6, "energy": SPENT | {"power": {"gpu0": [[0.0, 1.0]]}},
}  # fmt: skip
RING = {"event": "result", "app": "ring_reduction", "method": "host", "ranks": 2, "bytes": 8, "seconds": 1.0}
COMPONENT = {"kind": "gpu", "name": "gpu0", "device": "GPU-0", "tick_s": 0.1, "range_joules": None}
METERED: Record = {"event": "environment", "arguments": ["x"], "components": [COMPONENT]}
STEP = {"event": "energy_step", "name": "latency message 8", "asked": {}, "results": 1}
DEEP = '{"event": "result", "settings": ' + "[" * 100_000 + "]" * 100_000 + "}"
MANY_DIGITS = "1" + "0" * 5_000


def changed(record: Record, field: str, *values: Any) -> list[tuple[str, str]]:
    """Lines in which a field has each of the values in turn, and words that name it; a dot separates nested fields."""
    outer, _, inner = field.partition(".")
    wrong = [record | {outer: record[outer] | {inner: value} if inner else value} for value in values]
    return [(json.dumps(one), f"field '{field}") for one in wrong]


HOSTILE: list[tuple[str, str]] = [
    *changed(CALLS, "operation", None, 5, [], {}, "", "a/b", "../../x", "a\0b", "$x$", "x" * 300, "é"),
    *changed(CALLS, "method", None, 5, [], {}, "", "m" * 1000, True),
    *changed(CALLS, "bytes", None, "8", 8.5, -1, [8], 2**64, True, 10**30),
    *changed(CALLS, "ranks", None, "2", 0, -2, 1e30, {}, 2**40),
    *changed(CALLS, "median", "1", [1.0], {}, True, 1e300, -1e300),
    *changed(CALLS, "samples", 5, "x", ["x"], [[]]),
    *changed(CALLS, "unit", 5, [], {}, ""),
    *changed(CALLS, "bus_gb_per_s", "fast", [], {}, 1e300),
    *changed(CALLS, "settings", None, 5, [], "x"),
    *changed(CALLS, "settings.blocks", "1", [], 1.5, -1),
    *changed(CALLS, "settings.type", 5, [], {}),
    *changed(JOULES, "energy", 5, [], "x", {}),
    *changed(JOULES, "energy.components", 5, [], {}, {"gpu": PART}, {**SPENT["components"], "cpu": 5}),
    *changed(JOULES, "energy.seconds", None, 0, -1, "x"),
    *changed(HIMENO, "device", None, 5, []),
    *changed(HIMENO, "app", None, 5, [], "a/b"),
    *changed(HIMENO, "size", None, 5, "8x8", ["8"], [8.5], {}),
    *changed(HIMENO, "seconds", None, 0, "1", []),
    *changed(HIMENO, "iterations", None, "5", 5.5, []),
    *changed(HIMENO, "launch_seconds", "x", [], {}),
    *changed(HIMENO, "energy.power", 5, [], {"gpu0": 5}, {"gpu0": [1]}, {"gpu0": [[1]]}, {"gpu0": [["a", "b"]]}),
    *changed(METERED, "components", None, 5, {}, [5], [{"name": "gpu0"}], [COMPONENT | {"tick_s": "x"}]),
    *changed(METERED, "arguments", 5, "x", [1], {}),
    (json.dumps({**JOULES, "energy": None}), "takes a field energy"),
    (json.dumps({**JOULES, "median": 0}), "more than 0"),
    (json.dumps({**CALLS, "median": 0}), "calls of 0 us"),
    (json.dumps({**CALLS, "unit": None}), "a median without a unit"),
    (json.dumps({"event": "result"}), "missing required field `operation`"),
    (json.dumps({"event": "sample", "component": "gpu0"}), "missing required field `time_s`"),
    (json.dumps({**HIMENO, "app": "jacobi", "size": None}), "launch_seconds without size"),
    (f'{{"event": "result", "bytes": {MANY_DIGITS}}}', "field 'bytes': integer value out of range"),
    (f'{{"bytes": {MANY_DIGITS}, "a": {"[" * 100_000}{"]" * 100_000}}}', "integer value out of range"),
    ('{"event": "result", "median": 1e999}', "field 'median': number out of range"),
    (DEEP, "more than 32 levels"),
    ('{"a": ' + "[" * 50 + "]" * 50 + "}", "more than 32 levels"),
    # A line that is no JSON object is left out, and named by file and line.
    *((line, "is left out: no JSON object") for line in (
        "[]", "5", "null", '"text"', "{", '{"a": NaN}', '{"a": "\\ud800"}', '{"a": 1} x', "\0", "[" * 50 + "]" * 50,
    )),
]  # fmt: skip


def test_no_record_ends_in_a_traceback(cli, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    plotted, projected = ("plot", str(path), "-o", str(tmp_path / "p.svg")), ("app", "training-projection", str(path))
    for number, (line, words) in enumerate(HOSTILE):
        path.write_text(line + "\n")
        done = cli(*(plotted if number % 4 else projected))
        assert done.returncode == 1, (line[:200], done.stderr)
        assert f"{path}:1" in done.stderr, line[:200]
        assert words in done.stderr, (line[:200], done.stderr)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["r.jsonl"]


def test_bytes_that_are_no_text_are_left_out(cli, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\xff\xfe\n" + json.dumps(RING).encode() + b'\n{"event": "resu')
    done = cli("app", "training-projection", str(path), "--json")
    assert done.returncode == 0, done.stderr
    for number in (1, 3):
        assert f"{path}:{number} is left out: no JSON object" in done.stderr


def test_of_a_file_of_another_kind_few_lines_are_named(cli, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("text\n" * 30 + json.dumps(RING) + "\n")
    done = cli("app", "training-projection", str(path), "--json")
    assert done.returncode == 0, done.stderr
    assert [number for number in range(1, 31) if f"{path}:{number} is left out" in done.stderr] == [1, 2, 3]
    assert "27 more lines are left out, which are no JSON objects" in done.stderr


def test_all_records_of_measurements_are_read(repository: Path) -> None:
    read = [line for path in sorted((repository / "bench/records").glob("*.jsonl")) for line in records.read(path)]
    assert len(read) > 5_000
    assert [line.where for line in read if line.event is None] == []


def test_tables_take_methods_that_nobody_knows() -> None:
    shown = launch.table([HIMENO | {"method": name} for name in ("unknown", "persistent")])
    assert list(map(str, shown.columns[0].cells)) == ["persistent", "unknown"]


def test_a_run_that_goes_on_checks_what_it_finds(cli, tmp_path: Path) -> None:
    path = tmp_path / "joules.jsonl"
    for wrong, words in (
        (CALLS | {"ranks": "two"}, ":1: field 'ranks': expected `int`, got `str`"),
        (STEP | {"results": "all"}, ":1: field 'results'"),
        (STEP | {"name": 5}, ":1: field 'name'"),
    ):
        path.write_text(json.dumps(wrong) + "\n")
        done = cli("bench", "energy", "--output", str(path))
        assert done.returncode == 1
        assert str(path) + words in done.stderr
        assert path.read_text().count("\n") == 1  # nothing was measured


NAMES = [
    "[bold red]x[/bold red]", "[/]", "a [link=x]", r"$\frac{$", "$x$", "\x1b[2J", "<b>&amp;", "\u202e", "_hidden", "ä",
]  # fmt: skip


def test_texts_are_shown_as_they_are(cli, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    results = [CALLS | {"method": name, "bytes": 8 << number} for number, name in enumerate(NAMES)]
    path.write_text("".join(json.dumps(one) + "\n" for one in results))
    done = cli("plot", str(path), "-o", str(tmp_path / "p.svg"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["curves"] == NAMES
    picture = (tmp_path / "p.svg").read_text()
    texts = ("[bold red]x[/bold red]", r"$\frac{$", r"\x1b[2J", "&lt;b&gt;&amp;amp;", r"\u202e", " _hidden", "ä")
    assert [text for text in texts if f">{text}<" not in picture] == []
    assert "\x1b" not in picture


def test_tables_show_texts_as_they_are(cli) -> None:
    name = "[bold red]x[/bold red][/]\x1b[2J"
    done = cli("bench", "latency", FAKE_NAME=name)
    assert done.returncode == 0, done.stderr
    shown = name.replace("\x1b", r"\x1b")
    assert done.stdout.count(shown) == 2
    assert f"not measured: {shown}" in done.stdout


def test_the_output_of_programs_is_checked(cli) -> None:
    done = cli("bench", "latency", FAKE_LINE=json.dumps(CALLS | {"median": "x"}))
    assert done.returncode == 1
    assert "field 'median': expected `float | null`, got `str`" in done.stderr
    deep = DEEP.replace("[" * 99_000, "").replace("]" * 99_000, "")
    done = cli("bench", "latency", FAKE_LINE=deep)  # is shown like any line that is no event
    assert done.returncode == 0, done.stderr
    assert deep in done.stderr


def test_records_of_energy_name_the_field(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(METERED) + '\n{"event": "sample", "time_s": "x", "component": "gpu0"}\n')
    with pytest.raises(InvalidArgumentError, match=r"r.jsonl:2: field 'time_s': expected `float`, got `str`"):
        read_record(path)


def test_results_in_two_units_share_no_axis(cli, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(CALLS) + "\n" + json.dumps(CALLS | {"unit": "GB/s", "method": "other"}) + "\n")
    done = cli("plot", str(path), "-o", str(tmp_path / "p.svg"))
    assert done.returncode == 1
    assert "results of allreduce are in us and in GB/s" in done.stderr


def test_many_operations_are_refused_before_one_is_drawn(cli, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    count = plot.MOST_PICTURES + 1
    path.write_text("".join(json.dumps(CALLS | {"operation": f"op{i}"}) + "\n" for i in range(count)))
    done = cli("plot", str(path), "-o", str(tmp_path / "p.svg"))
    assert done.returncode == 1
    assert f"the records have {count} operations, and plot draws {plot.MOST_PICTURES} pictures at most" in done.stderr


def test_lines_longer_than_a_read_are_put_together() -> None:
    reader, writer = os.pipe()
    wake, other = os.pipe()
    lines = [b"a" * 200_000, b"", b"b" * (1 << 16), b"c"]
    child = os.fork()
    if child == 0:
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(b"\n".join(lines))
        os._exit(0)
    os.close(writer)
    assert list(jobs.read_lines(reader, wake)) == [line.decode() for line in lines]
    os.waitpid(child, 0)
    for descriptor in (reader, wake, other):
        os.close(descriptor)
