# SPDX-License-Identifier: Apache-2.0
"""`beeline bench collectives` and `beeline plot`: the tables and pictures that they make from records."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from beeline import display
from beeline.commands import collectives, plot
from beeline.display import ResultView
from beeline.programs import World, mpirun_command
from beeline.records import read
from beeline.torch_peer import deviation, enough, unavailable
from rich.console import Console

Record = dict[str, Any]


def result(method: str, size: int, median: float, peer: bool = False, **settings: Any) -> Record:
    control = "host" if method.startswith("mpi") else method.split("/")[0 if not peer else -1]
    return {
        "event": "result", "operation": "allreduce", "method": method, "bytes": size, "ranks": 4, "available": True,
        "reason": None, "unit": "us", "median": median, "bus_gb_per_s": 1.5 * size / median / 1e3, "verified": True,
        "peer_of": "stream/automatic" if peer else None,
        "settings": {"control": control, "type": "float32", "blocks": 1, **settings},
    }  # fmt: skip


RESULTS = [
    result("stream/automatic", 8, 4.0), result("stream/two_shot", 8, 3.0), result("graph/automatic", 8, 2.0),
    result("nccl/stream", 8, 16.0, peer=True), result("nccl/graph", 8, 10.0, peer=True),
    result("mpi/host", 8, 8.0, peer=True), result("stream/automatic", 4096, 5.0),
]  # fmt: skip


def shown(results: list[Record]) -> list[list[str]]:
    text = io.StringIO()
    Console(file=text, width=200).print(collectives.render(results))
    return [line.split() for line in text.getvalue().splitlines()]


def test_the_choice_is_compared_with_the_best_peer_that_is_called_alike() -> None:
    rows = shown(RESULTS)
    # A peer that blocks the host is an alternative to a call on a stream, not to a graph.
    assert ["stream", "8", "B", "4", "8", "mpi/host", "0.5", "0.003", "3", "two_shot"] in rows
    assert ["graph", "8", "B", "2", "10", "nccl/graph", "0.2", "0.006", "2", "automatic"] in rows
    assert ["stream", "4", "KiB", "5", "–", "–", "–", "1.23", "5", "automatic"] in rows


def test_a_ratio_of_a_figure_whose_samples_lie_apart_is_marked() -> None:
    """Four runs of one all-reduce took these times."""
    apart = {"samples": [12.1, 7.65, 1.8, 1.41], "bus_gb_per_s": 0.002}
    own = result("stream/automatic", 8, 4.725) | apart
    peer = result("nccl/stream", 8, 9.0, peer=True) | {"samples": [8.9, 9.0, 9.1, 9.0]}
    rows = shown([own, peer])
    assert ["stream", "8", "B", "~4.7", "9", "nccl/stream", "~0.52", "~0.002", "~4.7", "automatic"] in rows
    assert sum(row[:2] == ["~", "uncertain:"] for row in rows) == 2  # below each table
    certain = shown([own | {"samples": [4.7, 4.725, 4.75]}, peer])
    assert ["stream", "8", "B", "4.725", "9", "nccl/stream", "0.525", "0.002", "4.725", "automatic"] in certain
    assert not any(row[:1] == ["~"] for row in certain)
    sweep = [result("stream/two_shot", 8, 4.0, blocks=blocks) | {"samples": [1.0, 4.0, 9.0]} for blocks in (1, 2)]
    assert ["stream/two_shot", "8", "B", "~4", "~1", "~1", "9", "nccl/stream", "~1"] in shown([*sweep, peer])


def test_a_sweep_over_blocks_says_from_how_many_it_is_worth_it() -> None:
    times = {1: 20.0, 2: 9.5, 4: 7.0, 8: 6.9}
    sweep = [result("stream/two_shot", 4096, time, blocks=blocks) for blocks, time in times.items()]
    rows = shown([*sweep, result("nccl/stream", 4096, 10.0, peer=True), result("graph/two_shot", 4096, 1.0)])
    assert ["stream/two_shot", "4", "KiB", "6.9", "8", "4", "10", "nccl/stream", "2"] in rows
    assert not any(row[:1] == ["graph/two_shot"] and len(row) > 4 for row in rows)  # measured with one number


def test_mpi_gives_its_core_away_where_ranks_share_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 4.1.6'\n")
    mpirun.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    crowded, roomy = (mpirun_command(World(ranks, device="cpu")) for ranks in (3, 2))
    assert "--mca mpi_yield_when_idle 1" in " ".join(crowded)
    assert "--mca" not in roomy
    for command in (crowded, roomy, mpirun_command(World(3, device="cuda:0"))):
        assert "--bind-to none" in " ".join(command)
        assert "btl" not in command
    split = " ".join(mpirun_command(World(2, device="cpu", split_nodes=2)))
    assert " BEELINE_SPLIT_NODES=2 " in split
    assert "--mca btl self,tcp" in split
    bound = {ranks: " ".join(mpirun_command(World(ranks, device="cpu"), on_a_core=True)) for ranks in (1, 2)}
    assert "--bind-to none" in bound[1]
    assert "--map-by core --bind-to core:overload-allowed" in bound[2]
    nodes = mpirun_command(World(2, device="cpu", split_nodes=2), on_a_core=True)
    assert "--bind-to none" in " ".join(nodes)
    one_node = " ".join(mpirun_command(World(2, device="cpu", split_nodes=1)))
    assert " BEELINE_SPLIT_NODES=1 " in one_node  # whatever the environment says
    assert "btl" not in one_node


def test_torch_joins_the_baselines() -> None:
    own, nccl = result("graph/automatic", 8, 4.0), result("nccl/graph", 8, 8.0, peer=True)
    own |= {"baseline": "nccl/graph", "ratio_to_baseline": 0.5}
    slower, quicker = (result("torch/two_shot/graph", 8, time, peer=True) for time in (10.0, 5.0))
    collectives.complete_baselines([own, nccl, slower])
    assert (own["baseline"], own["ratio_to_baseline"]) == ("nccl/graph", 0.5)
    collectives.complete_baselines([own, nccl, quicker, result("torch/two_shot/graph", 64, 1.0, peer=True)])
    assert (own["baseline"], own["ratio_to_baseline"]) == ("torch/two_shot/graph", 0.8)
    assert "baseline" not in nccl


def test_progress_of_long_work_is_a_line_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    view = ResultView(False, None, collectives.render)
    with view:
        view.set_progress("broadcast 8", 0, 4)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(display, "SECONDS_BETWEEN_LINES", 0)
        view.set_progress("broadcast 64", 1, 4)
    assert capsys.readouterr().err == "broadcast 64, 1 of 4 done, after 0 s\n"


def test_results_kept_back_are_written_whatever_happens(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    view = ResultView(False, path, collectives.render)
    first = result("graph/automatic", 8, 4.0)

    def events() -> list[Record]:
        return [json.loads(line) for line in path.read_text().splitlines()]

    def fail_behind_a_result() -> None:
        with view.results_kept_back():
            view.add({"event": "environment"})
            view.add(first)
            assert [one["event"] for one in events()] == ["environment"]
            first["baseline"] = "late"
            raise ValueError("torch")

    with pytest.raises(ValueError, match="torch"):
        fail_behind_a_result()
    assert events()[1]["baseline"] == "late"


def test_on_host_ranks_everything_is_compared_with_what_blocks() -> None:
    rows = shown([result("device/automatic", 8, 4.0), result("mpi/host", 8, 8.0, peer=True)])
    assert ["device", "8", "B", "4", "8", "mpi/host", "0.5", "0.003", "4", "automatic"] in rows


def test_an_absent_peer_has_all_fields_and_a_reason() -> None:
    record = collectives.lacking("allreduce", "torch/symmetric_memory", 8, 4, "torch is not installed")
    assert set(record) == set(unavailable("")) | {"event", "schema_version", "operation", "method", "bytes", "ranks"}
    assert record["median"] is None
    assert ["not", "measured:", "torch/symmetric_memory:", "torch", "is", "not", "installed"] in shown([record])


def test_torch_samples_until_they_agree() -> None:
    assert deviation([1.0, 1.0, 3.0]) == 0
    assert not enough([1.0] * 19)
    assert enough([1.0] * 20)
    assert not enough([1.0, 2.0] * 20)
    assert enough([1.0, 2.0] * 30)


def test_the_command_passes_everything_on_and_shows_a_table(cli) -> None:
    done = cli("bench", "collectives", "--launcher", "beeline", "--type", "bfloat16", "--blocks", "1,2", "--sizes", "8")
    assert done.returncode == 0, done.stderr
    assert "allreduce, us, 2 ranks" in done.stdout  # the only operation that is measured by default
    assert "not measured: device/bulk/signal: no GPU of this kind" in done.stdout
    assert "alltoall, us, 2 ranks" in cli("bench", "collectives", "--operations", "alltoall", "--sizes", "8").stdout


def test_curves_take_the_quickest_of_several_settings() -> None:
    results = [result("stream/two_shot", 8, 3.0, blocks=2), result("stream/two_shot", 8, 2.0, blocks=4)]
    (points,) = plot.curves_over(results, "bytes").values()
    assert [(place, one["median"]) for place, one in points] == [(8, 2.0)]
    (points,) = plot.curves_over(results, "blocks").values()
    assert [(place, one["median"]) for place, one in points] == [(2, 3.0), (4, 2.0)]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in [{"event": "environment"}, *RESULTS]))
    return path


def test_bare_copies_are_the_limit_not_a_peer() -> None:
    copies = result("bare/copies", 8, 3.0, peer=True)
    rows = shown([result("stream/automatic", 8, 4.0), result("stream/peer", 8, 3.5), copies])
    assert ["stream", "8", "B", "4", "–", "–", "–", "0.003", "3.5", "peer", "0.857"] in rows


def test_of_bare_copies_the_best_plan_counts() -> None:
    plans = [result("bare/copies", 8, time, peer=True, streams_per_pair=1) for time in (3.0, 2.0, 4.0)]
    rows = shown([result("stream/automatic", 8, 4.0), *plans])
    assert ["stream", "8", "B", "4", "–", "–", "–", "0.003", "4", "automatic", "0.5"] in rows


def test_without_a_choice_the_best_is_compared() -> None:
    rows = shown([result("stream/flat", 8, 4.0), result("nvshmem/stream", 8, 5.0, peer=True)])
    assert ["stream", "8", "B", "–", "5", "nvshmem/stream", "0.8", "–", "4", "flat"] in rows


@pytest.mark.parametrize(
    ("recorded", "today"),
    [
        ("stream/packets128_two_shot", "stream/ll128_two_shot"), ("graph/packets", "graph/ll"),
        ("stream/automatic_alike", "stream/automatic_symmetric"), ("host/device_packets", "host/device_packets"),
    ],
)  # fmt: skip
def test_old_records_have_the_names_of_today(cli, tmp_path: Path, recorded: str, today: str) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(json.dumps(result(recorded, 8, 4.0) | {"bus_gb_per_s": 1.0}) + "\n")
    assert [one["method"] for one in plot.drawn_of(read(path))] == [today]


def test_each_operation_has_a_picture(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[str]] = {}
    monkeypatch.setattr(plot, "draw", lambda curves, over, results, output: drawn.update({output.name: list(curves)}))
    others = [one | {"operation": "alltoall"} for one in RESULTS[:2]]
    path = tmp_path / "record.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in RESULTS + others))
    assert cli("plot", str(path), "-o", str(tmp_path / "all.svg")).returncode == 0
    assert list(drawn) == ["all-allreduce.svg", "all-alltoall.svg"]
    lines = cli("plot", str(path), "-o", str(tmp_path / "all.svg"), "--json").stdout.splitlines()
    pictures = [json.loads(line) for line in lines]
    assert [Path(one["file"]).name for one in pictures] == list(drawn)
    assert pictures[1]["curves"] == drawn["all-alltoall.svg"]
    assert drawn["all-alltoall.svg"] == ["stream/automatic", "stream/two_shot"]
    assert "nccl/graph" in drawn["all-allreduce.svg"]


FROM_PATH = Path(sysconfig.get_path("purelib"), "python3-on-path.pth")  # written by a set-up without a network


@pytest.mark.skipif(
    FROM_PATH.exists() and importlib.util.find_spec("matplotlib") is None,
    reason="the python3 on PATH has no matplotlib",
)
@pytest.mark.parametrize("name", ["picture.png", "picture.svg"])
def test_plot_writes_a_picture(cli, record: Path, name: str) -> None:
    picture = record.parent / name
    assert cli("plot", str(record), "-o", str(picture)).returncode == 0
    assert picture.stat().st_size > 1000
    done = cli("plot", str(record), "-o", str(record.parent / "missing" / name))
    assert done.returncode != 0
    assert f"missing/{name}: No such file or directory" in done.stderr


def test_plot_says_that_matplotlib_is_missing(cli, record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = cli("plot", str(record), "-o", str(record.parent / "picture.png"))
    assert done.returncode == 1
    assert "plot needs matplotlib, which is not installed: pip install matplotlib" in done.stderr


def test_plot_refuses_what_it_cannot_draw(cli, record: Path) -> None:
    assert "valid: names that end in .png or .svg" in cli("plot", str(record), "-o", "picture.txt").stderr
    record.write_text('{"event": "environment"}\n')
    done = cli("plot", str(record), "-o", str(record.parent / "picture.png"))
    assert done.returncode == 1
    assert "can be drawn: see `beeline plot --help`" in done.stderr
