# SPDX-License-Identifier: Apache-2.0
"""The layout of the commands' tables on any screen, and how they show figures whose samples differ much."""

from __future__ import annotations

import io
from typing import Any

import pytest
from beeline import applications, display, figures
from beeline.commands import bench, himeno, joules, launch
from beeline.display import ResultView, Screen, concerned, format_figure, format_percent, not_measured, result_table
from beeline.fitted_table import FittedTable
from beeline.programs import CliError, World
from rich.cells import cell_len

Record = dict[str, Any]
NAMES = ["triggered/copy_engine/signal", "proxy_device", "global_address_space"]
SIZES = ["8 B", "64 B", "512 B", "4 KiB", "32 KiB", "256 KiB", "1 MiB"]


def shown(renderable: Any, width: int = 200) -> list[str]:
    text = io.StringIO()
    Screen(file=text, width=width).print(renderable)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def wide_table() -> FittedTable:
    table = FittedTable("message, us", ["method", *(f">{size}" for size in SIZES), "remark"])
    for name in NAMES:
        table.add_row(name, *(f"{index}00.5" for index, _ in enumerate(SIZES)), "a remark of several words, " * 4)
    return table


@pytest.mark.parametrize("width", [300, 120, 80, 60, 40])
def test_no_name_and_no_number_is_broken(width: int) -> None:
    lines = shown(wide_table(), width)
    widest = max(map(cell_len, lines))
    # A name and the remarks need 51 columns; on narrower screens the terminal breaks the lines.
    assert widest <= max(width, 51)
    words = [word for line in lines for word in line.split()]
    parts = words.count("method")
    for name in NAMES:
        assert sum(line.split()[:1] == [name] for line in lines) == parts
    for index, size in enumerate(SIZES):
        assert words.count(f"{index}00.5") == len(NAMES)
        assert sum(size in line for line in lines) == 1
    assert (parts == 1) == (width >= 120)
    assert any(f"in {parts} parts: one would be " in line for line in lines) == (parts > 1)


def test_a_part_has_the_rows_that_say_something_in_it() -> None:
    table = FittedTable("", ["method", *(f">{size}" for size in SIZES)])
    table.add_row("everywhere", *["100.5"] * 7)
    table.add_row("first", "1.5", *[""] * 6)
    rows = [line.split()[0] for line in shown(table, 45) if line.split()[:1] in (["everywhere"], ["first"])]
    assert rows == ["everywhere", "first", "everywhere"]


def test_without_a_terminal_there_are_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: (_ for _ in ()).throw(OSError()))
    assert display.make_console().width == 80
    monkeypatch.setenv("COLUMNS", "123")
    assert display.make_console().width == 123


@pytest.mark.parametrize(
    ("samples", "is_marked"),
    [
        ([12.1, 7.65, 1.8, 1.41], True),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0], True),  # the median deviation is 0
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0], False),  # one slow batch
        ([1.0, 1.05, 0.95], False),
        ([1.0, 1.3, 0.95], True),
        ([1.0], False),
        ([0.0, 0.0, 0.0], False),
        ([], False),
    ],
)
def test_a_figure_is_marked_if_a_quartile_is_far_from_the_median(samples: list[float], is_marked: bool) -> None:
    for name in figures.SAMPLES:
        assert figures.is_uncertain({name: samples}) == is_marked
        assert figures.is_uncertain(None, {"samples": [1.0, 1.0]}, {name: samples}) == is_marked
    assert format_figure(1234.5, {"samples": samples}) == ("~1,200" if is_marked else "1,234")
    assert format_percent(0.1234, {"samples": samples}) == ("~12" if is_marked else "12.3")
    assert format_figure(None, {"samples": samples}) == "–"


def test_each_reason_has_one_line_with_what_it_concerns() -> None:
    def of(method: str, reason: str | None, operation: str = "allreduce") -> Record:
        median = None if reason else 1.0
        return {"method": method, "operation": operation, "reason": reason, "median": median}

    graphs = [of(f"graph/{name}", "host ranks have no CUDA graphs") for name in ("a", "b", "c", "d", "a")]
    lines = not_measured([
        *graphs, of("nccl/graph", "host ranks have no CUDA graphs"), of("stream/a", None), of("stream/b", "no GPU"),
        of("stream/a", "no room for 64 bytes", "put"), of("stream/a", "no room for 128 bytes", "put"),
        {"app": "himeno", "method": "in_kernel"},
    ])  # fmt: skip
    assert list(map(str, lines)) == [
        "not measured: graph/*, nccl/graph: host ranks have no CUDA graphs",
        "not measured: stream/b: no GPU",
        "not measured: stream/a (put): no room for 64 bytes",
    ]
    assert concerned({f"graph/{name}": ["put"] for name in "abcd"}, {"graph/e"}) == "graph/a, graph/b, graph/c, graph/d"


def test_below_a_table_is_what_bare_is_and_which_figures_are_uncertain() -> None:
    def of(method: str, *samples: float, unit: str = "us") -> Record:
        return {"operation": "message", "method": method, "bytes": 8, "ranks": 2, "unit": unit, "median": samples[0],
                "samples": samples}  # fmt: skip

    lines = shown(bench.render([of("bare/flag", 1.0, 1.01), of("device/peer/ll", 2.0, 1.0, 3.0)]))
    assert lines[0] == "message, us, 2 ranks (lower is better)"
    assert " device/peer/ll   ~2" in lines
    assert " bare: the same work on the same memory, in a loop without Beeline" in lines
    assert " ~ uncertain: a quarter of the samples or more are over 10 % off the median" in lines
    lines = shown(bench.render([of("device/peer/ll", 2.0, 2.0, unit="GB/s")]))
    assert lines[0] == "message, GB/s, 2 ranks (higher is better)"
    assert not any(word in line for word in ("bare", "uncertain") for line in lines)


def test_himeno_fits_80_columns_and_says_once_that_all_is_verified() -> None:
    run = {
        "method": "global_address_space", "ranks": 4, "size": [64, 64, 128], "device": "cpu", "mflops": 1234567.0,
        "bound_share": 0.185, "communication_share": -0.2, "overlap_efficiency": 1.75, "max_error": 0.0,
        "verified": True, "cpu_seconds": 0.248, "samples_seconds": [1.0, 1.0, 1.0], "gosa": 0.002637733,
        "iterations": 38, "verified_iterations": 38, "gosa_reference": 0.002637733,
    }  # fmt: skip
    lines = shown(himeno.render([run, run], "none"), 80)
    assert max(map(cell_len, lines)) <= 80
    assert sum("global_address_space" in line for line in lines) in (2, 4)  # in one part, or two
    assert " verified: yes, each result" in lines
    lines = shown(himeno.render([run, run | {"verified": False}], "none"), 200)
    assert [line.split()[-2] for line in lines if "global_address" in line] == ["yes", "NO"]


def test_a_comparison_with_an_uncertain_time_is_uncertain() -> None:
    results = [{"method": name, "seconds": 2.0, "samples_seconds": [1.0, 2.0, last]} for name, last in
               (("host", 2.1), ("device", 9.0))]  # fmt: skip
    columns = {"method": display.field("method"),
               ">times": lambda one: display.against(one, results, "host", "seconds", ())}  # fmt: skip
    assert result_table("", columns, results).rows == [["host", "1.00"], ["device", "~1"]]
    results[0]["samples_seconds"] = [2.0, 2.0, 2.0]
    assert result_table("", columns, results).rows == [["host", "1.00"], ["device", "~1"]]


class View(ResultView):
    """Records which command would run."""

    def __init__(self) -> None:
        super().__init__(True, None, bench.render)
        self.commands: list[list[str]] = []
        self.lines: list[str] = []

    def run(self, command: list[str], *_: Any) -> list[Record]:
        self.commands.append(command)
        return []

    def show_line(self, line: str) -> None:
        self.lines.append(line)


@pytest.mark.parametrize(
    ("asked", "variable", "passed"), [(None, None, "2"), (None, "3", None), (1, None, "1"), (3, "2", "3")]
)
def test_the_network_needs_no_option(
    monkeypatch: pytest.MonkeyPatch, asked: int | None, variable: str | None, passed: str | None
) -> None:
    monkeypatch.delenv("BEELINE_SPLIT_NODES", raising=False)
    if variable is not None:
        monkeypatch.setenv("BEELINE_SPLIT_NODES", variable)
    monkeypatch.setattr(bench, "find_program", lambda name: name)
    monkeypatch.setattr("beeline.programs.find_program", lambda name: name)
    view = View()
    bench.network(bench.Call("network", ["network"], {}), view, World(2, split_nodes=asked))
    (command,) = view.commands
    assert ("--split-nodes" in command) == (passed is not None)
    assert passed is None or command[command.index("--split-nodes") + 1] == passed
    is_chosen = asked is None and variable is None
    assert view.lines == ["ranks on this machine, as if on two nodes (--split-nodes 2)"] * is_chosen


def test_an_application_says_once_for_each_reason_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {"host": None, "kernel": "is for one rank", "graph": "is for one rank", "device": "no GPU"}
    known = {
        name: {"name": name, "program": "himeno", "available": why is None, "reason": why}
        for name, why in reasons.items()
    }
    monkeypatch.setattr(applications, "list_methods", lambda *_: known)
    view, study = View(), applications.Study({"himeno": None}, [4], [], World(4), lambda _: [])
    assert applications.choose_methods(study, 4, view) == {"himeno": ["host"]}
    assert view.lines == ["left out on 4 ranks: kernel, graph: is for one rank", "left out on 4 ranks: device: no GPU"]


def test_ranks_that_share_cores_are_told_of() -> None:
    def of(ranks: int, kind: str) -> list[str]:
        environment = {"host": {"cores_allowed": 2}, "devices": [{"kind": kind}] * ranks, "commit": "c0ffee"}
        return display.describe_run(environment)

    assert of(4, "host")[:-1] == ["4 ranks share 2 cores: runs differ more than the samples of a run"]
    assert [len(of(2, "host")), len(of(4, "gpu")), len(display.describe_run({"host": "fake"}))] == [1, 1, 1]


def test_energy_ends_where_nothing_can_be_metered() -> None:
    timed, metered = ({"event": "result", "unit": unit, "median": 1.0} for unit in ("us", "nJ"))
    lacking = {"event": "result", "unit": "nJ/word", "median": None, "reason": "gpu: no rank has one"}
    view = View()
    for one in (timed, metered, lacking):
        view.results.append(one)
        joules.check_meter(view, one)
    view.results = [timed, lacking]
    joules.check_meter(view, timed)
    with pytest.raises(CliError, match="cannot meter energy: gpu: no rank has one"):
        joules.check_meter(view, lacking)


@pytest.mark.parametrize(("has_gpu", "size"), [(True, "512x512x256"), (False, "XS")])
def test_launches_have_a_grid_for_the_device(monkeypatch: pytest.MonkeyPatch, has_gpu: bool, size: str) -> None:
    known = {name: {"name": name, "available": has_gpu or name != "one_graph"} for name in launch.METHODS}
    monkeypatch.setattr(launch, "list_methods", lambda *_: known)
    steps: list[str] = []
    monkeypatch.setattr(launch, "run_steps", lambda view, each, asked: steps.extend(each))
    for asked, expected in ((None, size), ("S", "S")):
        steps.clear()
        values = {"size": asked, "iterations": [100], "window": 2000, "no-verify": False}
        launch.launch(bench.Call("launch", ["launch"], values), View())
        assert steps == ["launch methods", f"launch {expected} 100"]


def test_the_parts_of_a_hand_over_are_one_line() -> None:
    def part(name: str, median: float, **settings: str) -> Record:
        return {
            "operation": f"part_{name}", "method": "task/peer/signal", "bytes": 64, "unit": "us", "median": median,
            "samples": [median], "settings": {"target": "peer"} | settings,
        }  # fmt: skip

    parts = [part("whole", 9.5), part("start", 2.5, **{"with": "transfer"}), part("post", 1.5), part("hop", 0.5)]
    lines = shown(bench.render_methods(parts))
    heading = next(line for line in lines if "post" in line)
    assert heading.split() == ["method,", "settings", "post", "start", "whole", "hop"]
    row = next(line for line in lines if line.lstrip().startswith("task/peer/signal"))
    assert row.split(",")[-1].split() == ["target", "peer", "1.5", "2.5", "with", "transfer", "9.5", "0.5"]
