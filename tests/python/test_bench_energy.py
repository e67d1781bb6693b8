# SPDX-License-Identifier: Apache-2.0
"""`beeline bench energy` and `beeline bench launch`: their steps, tables and pictures, with the fake programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from beeline.commands import budget, joules, joules_tables

Record = dict[str, Any]
LAUNCHES = "kernel_by_kernel,one_graph,persistent,needs_gpu"


def events_of(done) -> list[Record]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def steps_of(done) -> list[str]:
    return [event["name"] for event in events_of(done) if event["event"] == "energy_step"]


def results_of(done) -> list[Record]:
    return [event for event in events_of(done) if event["event"] == "result"]


def measured_by(done) -> list[tuple]:
    return sorted((one["operation"], one["bytes"], one["method"], one["unit"]) for one in results_of(done))


def results_of_record(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_it_meters_what_the_program_describes_and_goes_on_where_it_stopped(cli, tmp_path: Path) -> None:
    record = tmp_path / "joules.jsonl"
    done = cli("bench", "energy", "--output", str(record), "--json")
    assert done.returncode == 0, done.stderr
    steps = steps_of(done)
    assert steps == ["bandwidth put 256M", "latency message 8", "latency barrier"]  # the fake has no collectives
    metered = [line for line in results_of(done) if line["unit"] == "nJ/word"]
    assert {line["method"] for line in metered} == {"device/peer/ll"}
    assert metered[0]["settings"]["values"]["energy"] == 2000
    (putting,) = (one["settings"]["values"]["energy-budget"] for one in metered if one["bytes"] == 1 << 28)
    rows = [2 + 3, 2 + 2, 2]  # of each step: methods times sizes, and peers
    assert putting == pytest.approx((joules.BUDGETS_S["default"] - 8 * len(rows)) * rows[0] / sum(rows), abs=15)
    (ranking,) = (one for one in events_of(done) if one["event"] == "ranking" and one["bytes"] == 1 << 28)
    assert (ranking["operation"], ranking["methods"]) == ("put", [["device/peer/ll"]])
    lines = record.read_text().splitlines()
    end = next(number for number, line in enumerate(lines) if "energy_step" in line and "put 256M" in line)
    record.write_text("\n".join(lines[:end] + lines[end + 1 :]) + "\n")  # as if stopped within this step
    again = cli("bench", "energy", "--output", str(record), "--json")
    assert steps_of(again) == ["bandwidth put 256M"]
    assert measured_by(again) == measured_by(done)  # with the results of the earlier run
    assert "latency message 8: measured by an earlier run" in again.stderr
    text = record.read_text()
    *_, broken = (line for line in text.splitlines() if "nJ" in line and '"put"' in line)
    record.write_text(text.replace(broken, broken[:40]) + '{"event": "resu')  # as written by a machine that failed
    assert steps_of(cli("bench", "energy", "--output", str(record), "--json")) == ["bandwidth put 256M"]
    shown = cli("bench", "energy", "--output", str(record))
    assert shown.returncode == 0  # although nothing was left to measure
    assert [shown.stdout.count(f"{what}, 2 ranks") for what in ("put of 256 MiB", "message of 8 B")] == [1, 1]


def test_a_step_that_was_asked_for_otherwise_is_measured_again(cli, tmp_path: Path) -> None:
    record = tmp_path / "joules.jsonl"
    arguments = ("bench", "energy", "--output", str(record), "--json")
    first = steps_of(cli(*arguments))
    for more in (("--window", "3000"), ("--ranks", "3"), ("--device", "cpu"), ("--threads",)):
        again = cli(*arguments, *more)
        assert steps_of(again) == first, more
        assert "latency message 8: measured again: an earlier run had other options" in again.stderr
        assert steps_of(cli(*arguments, *more)) == []
    assert steps_of(cli(*arguments)) == []
    assert steps_of(cli(*arguments, BEELINE_HEAP_BYTES="1G")) == first  # as an error advises
    shown = cli("bench", "energy", "--output", str(record), BEELINE_HEAP_BYTES="1G")
    assert "commit" in shown.stdout  # of the earlier run, which measured these results


def test_what_does_not_fit_into_the_budget_is_named_and_left_to_a_later_run(cli, tmp_path: Path) -> None:
    record = tmp_path / "joules.jsonl"
    arguments = ("bench", "energy", "--output", str(record))
    done = cli(*arguments, "--budget", "10", "--json")
    assert done.returncode == 0, done.stderr
    assert steps_of(done) == []
    left_out = {(one["operation"], one["method"]) for one in results_of(done)}
    assert left_out >= {(operation, "device/peer/ll") for operation in ("put", "message", "barrier")}
    assert all(one["reason"].startswith("out of budget: 10 s were granted") for one in results_of(done))
    assert "not measured: device/peer/ll" in cli(*arguments, "--budget", "10").stdout
    assert len(steps_of(cli(*arguments, "--json"))) == 3


def test_the_budget_is_shared_by_rows_and_tells_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    shared = budget.Budget(100, {"a": 1, "b": 3, "c": 100})
    shared.begin(["a", "b"])
    assert shared.metering_s == (100 - 2 * budget.START_S) / 4
    now[0] += 30
    assert shared.left({}) == "at most 70 s left"
    assert shared.left({"left_s": 5}) == "about 76 s left"  # 63 s of the other step, and its start
    shared.begin(["b"])
    assert shared.metering_s == 70 - budget.START_S
    now[0] += 80
    shared.begin(["b"])
    assert (shared.metering_s, shared.left({})) == (0, "at most 0 s left")


def test_where_the_budget_is_too_short_the_earlier_steps_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget.time, "monotonic", lambda: 1000.0)
    shared = budget.Budget(84, {"barrier": 3, "message": 9, "put": 12})  # its share of 7.5 s suffices for three rows
    shared.begin(["barrier", "message", "put"])
    assert shared.metering_s == int(3 * budget.LEAST_S)
    shared.begin(["message", "put"])
    assert shared.metering_s == int(9 * budget.LEAST_S)
    assert shared.left({"left_s": 0}) == "about 8 s left"  # of the step that is left out
    monkeypatch.setattr(budget.time, "monotonic", lambda: 1074.0)
    shared.begin(["put"])
    assert shared.metering_s == 0


def test_what_is_written_behind_a_line_that_was_cut_short_is_whole(cli, tmp_path: Path) -> None:
    record = tmp_path / "joules.jsonl"
    record.write_text('{"event": "resu')
    assert cli("bench", "energy", "--output", str(record)).returncode == 0
    assert json.loads(record.read_text().splitlines()[1])["event"] == "environment"


def test_an_output_that_is_no_file_is_not_read(cli) -> None:
    done = cli("bench", "energy", "--output", "/dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "beeline: /dev/full cannot be written: No space left on device"


def test_it_shows_components_and_what_is_not_metered(cli) -> None:
    shown = cli("bench", "energy").stdout
    assert "GPU W" in shown
    assert "600" in shown
    assert "put of 256" in shown
    assert "2014" not in shown
    assert "not in the joules: dram: no DRAM counter" in shown
    assert "not metered: network" in shown
    assert "2 ranks on 1 GPU: what moves between them stays in its memory" in shown


def metered(
    method: str, size: int, nanojoules: float, operation: str = "message", watts: float = 10.0, error: float = 0.0
) -> Record:
    """A record in which the time of a word in nanoseconds equals its energy in nanojoules."""
    unknown = {"joules": None, "joules_above_idle": None}
    parts = {kind: unknown | {"watts": watts} for kind in ("gpu", "cpu")} | {"dram": unknown | {"watts": None}}
    energy = {"components": parts, "cpu_cores": 1.0, "error": error, "seconds": nanojoules * 1e-9}
    head = {"operation": operation, "method": method, "bytes": size, "ranks": 2, "unit": "nJ/word"}
    return head | {"median": nanojoules, "energy": energy, "event": "result"}


def test_the_table_of_2014_averages_what_each_size_saves() -> None:
    results = [
        metered("device/peer/signal", 8, 5.0), metered("mpi/staged", 8, 50.0, watts=20.0),
        metered("device/peer/signal", 512, 5.0), metered("mpi/staged", 512, 10.0, watts=30.0),
        # For each size, the fastest staged method counts.
        metered("host/staged/sequential", 8, 20.0), metered("host/staged/pipelined", 8, 25.0),
        metered("host/staged/sequential", 512, 40.0), metered("host/staged/pipelined", 512, 6.25),
        metered("mpi/staged", 4096, 1000.0),  # without a direct method of this size
    ]  # fmt: skip
    saved, power = joules_tables.tables_of_002(results)
    # 90 % and 50 %, 10 and 2 times; 75 % and 20 %, 4 and 1.25 times.
    assert saved.rows == [["message", "70.0 ± 0.0", "6", "47.5 ± 0.0", "2.625", "85.01", "6.96"]]
    assert power.rows == [
        ["message", "device/peer/signal", "10", "10", "–", "20", "29.95 52.58 5.26 87.79"],
        ["message", "mpi/staged", "25", "25", "–", "50", "43.25 48.45 8.07 99.77"],
    ]
    without = [one for one in results if one["method"] != "mpi/staged"]
    saved, power = joules_tables.tables_of_002(without)
    assert saved.rows == [["message", "–", "–", "47.5 ± 0.0", "2.625", "85.01", "6.96"]]
    assert power.rows == []


def test_engines_are_compared_with_multiprocessors() -> None:
    results = [
        metered("host/copy_engine/signal", 64, 3.0, "put"), metered("stream/copy_engine/signal", 64, 2.0, "put"),
        metered("bare/copy_engine", 64, 1.0, "put"), metered("device/peer/signal", 64, 5.0, "put"),
        metered("device/bulk/signal", 64, 4.0, "put"), metered("host/staged/pipelined", 64, 0.5, "put"),
        metered("stream/copy_engine", 64, 6.0, "allgather"), metered("stream/automatic", 64, 1.0, "allgather"),
        metered("stream/direct", 64, 4.0, "allgather"), metered("device/peer/ll", 8, 1.0),
    ]  # fmt: skip
    assert joules_tables.table_of_engines(results).rows == [
        ["put of 64 B", "2", "4", "50.0 ± 0.0", "stream/copy_engine/signal", "device/bulk/signal"],
        ["allgather of 64 B", "6", "4", "-50.0 ± 0.0", "stream/copy_engine", "stream/direct"],
    ]


def test_what_differs_by_less_than_the_errors_shares_a_rank() -> None:
    results = [
        metered("a", 8, 112.0, error=0.05), metered("b", 8, 100.0, error=0.02), metered("c", 8, 104.0, error=0.03),
        metered("d", 8, 300.0, error=0.01), metered("a", 64, 1.0), metered("d", 64, 300.0),
    ]  # fmt: skip
    groups = joules_tables.groups_of(results)
    named = {kind: [[one["method"] for one in group] for group in of_kind] for kind, of_kind in groups.items()}
    assert named == {("message", 8): [["b", "c"], ["a"], ["d"]], ("message", 64): [["a"], ["d"]]}
    shown = joules_tables.table(groups["message", 8])
    assert [row[:4] for row in shown.rows] == [
        ["b", "1", "100", "2.0"], ["c", "1", "104", "3.0"], ["a", "2", "112", "5.0"], ["d", "3", "300", "1.0"],
    ]  # fmt: skip
    assert "one rank: they differ by less than their errors" in shown.notes
    assert joules_tables.with_error(0.04, 0.05) == "within ± 5.0"


def test_puts_are_compared_with_a_bare_loop_and_both_ways_of_staging() -> None:
    results = [
        metered("host/copy_engine/signal", 64, 2.0, "put", error=0.01), metered("bare/copy", 64, 2.0, "put"),
        metered("host/staged/sequential", 64, 20.0, "put", error=0.02), metered("device/peer/ll", 8, 1.0, "put"),
    ]  # fmt: skip
    assert joules_tables.table_of_puts(results).rows == [
        ["host/copy_engine/signal", "64 B", "1.000 ± 0.010", "0.100 ± 0.003", "–"]
    ]


def test_applications_are_metered_as_far_as_the_budget_goes(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    himeno = joules.Application("himeno", ("--size", "S", "--no-verify"), ("in_kernel", "host_staged", "needs_gpu"))
    monkeypatch.setitem(joules.SETS, "applications", [himeno])
    done = cli("bench", "energy", "--set", "applications", "--budget", "20", "--json")
    assert done.returncode == 0, done.stderr
    reasons = {one["method"]: one["reason"] for one in results_of(done) if not one.get("app")}
    assert reasons["needs_gpu"] == "no GPU"
    assert reasons["host_staged"].startswith("out of budget: 20 s")
    assert [one["method"] for one in results_of(done) if one.get("app")] == ["in_kernel"]
    assert steps_of(done) == []
    shown = cli("bench", "energy", "--set", "applications").stdout
    assert [line.split()[-6:] for line in shown.splitlines() if "in_kernel" in line] == [
        ["2", "2", "MFLOP", "0.0", "600", "1"]
    ]


def test_a_program_that_some_builds_lack_is_named(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    launched = joules.Application("himeno-device-launched", ("--size", "S"), ("device_launched",))
    monkeypatch.setitem(joules.SETS, "himeno", [launched])
    done = cli("bench", "energy", "--set", "himeno", "--json")
    (lacking,) = results_of(done)
    assert (lacking["method"], lacking["reason"]) == ("device_launched", "no GPU")
    assert [one["method"] for one in results_of(cli("bench", "energy", "--set", "himeno", "--json", FAKE_GPU="1"))] == [
        "device_launched"
    ]


def test_polling_is_swept_and_compared_with_spinning(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [("BEELINE_WAIT_POLICY=spin",), ("BEELINE_WAIT_POLICY=sleep", "BEELINE_WAIT_PERIOD_US=500")]
    steps = [
        step
        for one in waits
        for step in (
            joules.Bench("latency", "message", "8", waits=one),
            joules.Application("himeno", ("--size", "S", "--no-verify"), ("host_staged",), waits=one),
        )
    ]
    monkeypatch.setitem(joules.SETS, "poll-period", steps)
    arguments = ("bench", "energy", "--set", "poll-period")
    done = cli(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    loads = [one for one in results_of(done) if one.get("energy")]
    assert [one["energy"]["wait_policy"] for one in loads] == ["spin", "spin", "sleep", "sleep"]
    assert [one["energy"]["wait_period_us"] for one in loads] == [50, 50, 500, 500]
    for one, seconds, spent in zip(loads, (1.0, 2.0, 1.5, 4.0), (10.0, 20.0, 8.0, 30.0), strict=True):
        one["energy"]["seconds"] = seconds
        one["energy"]["components"]["gpu"]["joules"] = spent
        one["energy"]["components"]["cpu"]["joules"] = None
    rows = [row[:4] for row in joules_tables.table_of_waits(loads).rows]
    assert rows == [
        ["message of 8 B, device/peer/ll", "spin", "0.0", "0.0"],
        ["message of 8 B, device/peer/ll", "sleep 500 us", "50.0", "20.0"],
        ["himeno 64×64×128, host_staged", "spin", "0.0", "0.0"],
        ["himeno 64×64×128, host_staged", "sleep 500 us", "100.0", "-50.0"],
    ]
    assert "Waits of the host: against spinning" in cli(*arguments).stdout


def test_every_policy_and_period_is_in_the_sweep() -> None:
    names = [step.name for step in joules.SETS["poll-period"]]
    assert len(set(names)) == len(names)
    for policy in (
        "spin",
        "yield",
        "event",
        *(f"sleep BEELINE_WAIT_PERIOD_US={period}" for period in (10, 1000, 5000)),
    ):
        assert f"himeno M BEELINE_WAIT_POLICY={policy}" in names


def test_launching_is_swept_over_iterations_and_goes_on(cli, tmp_path: Path) -> None:
    record = tmp_path / "launch.jsonl"
    arguments = ("bench", "launch", "--output", str(record))
    done = cli(*arguments, "--json", FAKE_METHODS=LAUNCHES)
    assert done.returncode == 0, done.stderr
    assert steps_of(done) == ["launch methods", "launch 512x512x256 100", "launch 512x512x256 200"]
    runs = [one for one in results_of(done) if one.get("app")]
    methods = LAUNCHES.split(",")[:3]
    assert [(one["method"], one["iterations"]) for one in runs] == [(name, n) for n in (100, 200) for name in methods]
    assert all(one["ranks"] == 1 and one["energy"]["power"] for one in runs)
    (lacking,) = (one for one in results_of(done) if not one.get("app"))
    assert (lacking["method"], lacking["available"], lacking["reason"]) == ("device_launched", False, "no GPU")
    shown = cli(*arguments, FAKE_METHODS=LAUNCHES)
    assert "launch 512x512x256 100: measured by an earlier run" in shown.stderr
    assert "not measured: device_launched: no GPU" in shown.stdout
    assert record.read_text().count('"available": false') == 1
    assert "Himeno 512×512×256 on cpu" in shown.stdout
    (row,) = (line.split() for line in shown.stdout.splitlines() if line.split()[:2] == ["kernel_by_kernel", "200"])
    assert row[2:] == ["500", "0.2", "100.0", "1,000", "2", "1", "–", "600", "–"]


def test_a_host_rank_computes_while_it_does_not_launch(cli) -> None:
    done = cli("bench", "launch", FAKE_METHODS=LAUNCHES, FAKE_GPUS="0")
    (row,) = (line.split() for line in done.stdout.splitlines() if line.split()[:2] == ["kernel_by_kernel", "200"])
    assert row[2:5] == ["500", "0.2", "–"]
    assert "idle: not on a host rank" in done.stdout


def test_pictures_of_joules_launches_and_power(cli, tmp_path: Path) -> None:
    launch, words = tmp_path / "launch.jsonl", tmp_path / "words.jsonl"
    cli("bench", "launch", "--output", str(launch), FAKE_METHODS=LAUNCHES)
    results = [metered(method, size, 2.0) | {"settings": {}} for method in ("a/b", "c/d") for size in (8, 512)]
    words.write_text("".join(json.dumps(one) + "\n" for one in results))
    done = cli("plot", str(launch), str(words), "-o", str(tmp_path / "p.svg"), "--json")
    assert done.returncode == 0, done.stderr
    drawn = {event["operation"]: event["curves"] for event in events_of(done)}
    methods = LAUNCHES.split(",")[:3]
    assert drawn == {
        "launch": methods, "power": [f"{method}, 1 ranks" for method in methods], "message-joules": ["a/b", "c/d"],
    }  # fmt: skip
    sizes = [one | {"size": size} for one in results_of_record(launch) if one.get("app") for size in ([1, 2], [3, 4])]
    words.write_text("".join(json.dumps(one) + "\n" for one in sizes))
    done = cli("plot", str(words), "-o", str(tmp_path / "sizes.svg"), "--json")
    (curves,) = (event["curves"] for event in events_of(done) if event["operation"] == "power")
    assert set(curves) == {f"{method}, 1 ranks, {size}" for method in methods for size in ("1×2", "3×4")}
    grids = [one | {"size": [one["iterations"]]} for one in results_of_record(launch) if one.get("app")]
    words.write_text("".join(json.dumps(one) + "\n" for one in grids))
    done = cli("plot", str(words), "-o", str(tmp_path / "grids.svg"), "--json")
    assert [event["operation"] for event in events_of(done)] == ["power"]  # one number of iterations for each grid
    without = [one | {"mflop_per_joule": None, "energy": None} for one in results_of_record(launch) if one.get("app")]
    words.write_text("".join(json.dumps(one) + "\n" for one in without))
    assert cli("plot", str(words), "-o", str(tmp_path / "times.svg")).returncode == 0  # without any joules
    assert "MFLOP" not in (tmp_path / "times.svg").read_text()
    for name, words_in_it in (("launch", "launching, ms"), ("power", "power of gpu0, W"), ("message-joules", "nJ")):
        picture = (tmp_path / f"p-{name}.svg").read_text()
        assert words_in_it in picture
        assert "$" not in picture  # no label that matplotlib would have to typeset
