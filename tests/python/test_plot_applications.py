# SPDX-License-Identifier: Apache-2.0
"""`beeline plot --show`: scaling, sizes and energy of applications, and projected trainings."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from beeline import application_pictures
from beeline.application_rows import APPLICATIONS
from beeline.commands.applications import HANDLERS
from beeline.records import events_of, read
from conftest import Run

Drawn = dict[str, dict[str, list[list[float]]]]
COMPONENTS = {
    "gpu": {"watts": 100.0, "joules": 1.0}, "cpu": {"watts": 50.0, "joules": 0.5},
    "dram": {"watts": None, "joules": None},
}  # fmt: skip


def result(method: str, ranks: int, words: int, rate: float, **changed: Any) -> dict[str, Any]:
    return {
        "event": "result", "app": "random_access", "method": method, "ranks": ranks, "device": "NVIDIA Example",
        "words": words, "seconds": 1.0, "updates_per_second": rate, "verified": True, **changed,
    }  # fmt: skip


def write(path: Path, results: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in results))
    return str(path)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The points of the curves of the last picture, by panel and name."""
    panels: Drawn = {}

    def save(figure: Any, output: Path, description: dict[str, Any]) -> None:
        panels.clear()
        for axes in figure.axes:
            panels[axes.get_ylabel()] = {
                str(line.get_label()): [[float(x), round(float(y), 9)] for x, y in line.get_xydata()]
                for line in axes.get_lines()
            }
        from matplotlib import pyplot

        pyplot.close(figure)

    monkeypatch.setattr(application_pictures, "save", save)
    return panels


def test_every_application_can_be_drawn() -> None:
    assert {name.replace("-", "_") for name in HANDLERS} <= set(APPLICATIONS)


def test_strong_scaling(cli: Run, tmp_path: Path, drawn: Drawn) -> None:
    results = [
        result("a", 1, 1024, 1e9), result("b", 1, 1024, 2e9), result("a", 2, 1024, 3e9), result("a", 2, 1024, 2.5e9),
        result("b", 2, 1024, 9e9, verified=False), result("c", 2, 1024, 9e9, updates_per_second=None),
    ]  # fmt: skip
    path = write(tmp_path / "r.jsonl", results)
    done = cli("plot", path, "--show", "scaling", "-o", str(tmp_path / "p.svg"), "--json")
    assert json.loads(done.stdout)["curves"] == ["a", "b"], done.stderr  # neither a wrong one, nor one without a rate
    assert drawn["giga-updates/s"] == {"a": [[1, 1], [2, 3]], "b": [[1, 2]]}
    assert drawn["speed-up over the fastest method on 1 rank"] == {
        "a": [[1, 0.5], [2, 1.5]], "b": [[1, 1]], "in proportion": [[1, 1], [2, 2]],
    }  # fmt: skip


def test_weak_scaling_and_several_sizes(cli: Run, tmp_path: Path, drawn: Drawn) -> None:
    weak = [result("a", ranks, 1024 * ranks, 1e9 * ranks) for ranks in (1, 2, 4)]
    picture = str(tmp_path / "p.svg")
    done = cli("plot", write(tmp_path / "r.jsonl", weak), "--show", "scaling", "-o", picture, "--json")
    assert json.loads(done.stdout)["curves"] == ["a"], done.stderr
    assert drawn["giga-updates/s"] == {"a": [[1, 1], [2, 2], [4, 4]]}
    sizes = [result("a", ranks, words, 1e9) for ranks in (1, 2) for words in (1024, 2048)]
    done = cli("plot", write(tmp_path / "r.jsonl", sizes), "--show", "scaling", "-o", picture, "--json")
    assert json.loads(done.stdout)["curves"] == ["a, 1,024 words", "a, 2,048 words"]
    done = cli("plot", write(tmp_path / "r.jsonl", sizes), "--show", "sizes", "-o", picture, "--json")
    assert json.loads(done.stdout)["curves"] == ["a, 1 rank", "a, 2 ranks"]
    assert drawn["giga-updates/s"]["a, 2 ranks"] == [[1024, 1], [2048, 1]]


def test_programs_without_ranks_scale_over_devices(cli: Run, tmp_path: Path) -> None:
    sort = {"event": "result", "app": "merge_sort", "method": "m", "keys": 1024, "keys_per_second": 1e9}
    results = [sort | {"devices": count, "key_bits": bits} for count in (1, 2) for bits in (32, 64)]
    path, picture = write(tmp_path / "r.jsonl", results), tmp_path / "p.svg"
    assert cli("plot", path, "--show", "scaling", "-o", str(picture)).returncode == 0
    text = picture.read_text()
    for words in (
        "Merge sort, strong scaling",
        "m, 1,024 keys, 64 key bits",
        "fastest method on 1 device",
        ">devices<",
    ):
        assert words in text


def test_energy_has_a_bar_for_each_method_and_says_what_was_not_metered(cli: Run, tmp_path: Path) -> None:
    energy = {"components": COMPONENTS, "seconds": 1.0, "cpu_cores": 1.0, "error": 0.1}
    results = [
        result("a", 2, 1024, 1e9, energy=energy, updates_per_joule=work) for work in (2e6, 3e6)
    ] + [result("b", 2, 1024, 1e9)]  # fmt: skip
    path, picture = write(tmp_path / "r.jsonl", results), tmp_path / "p.svg"
    done = cli("plot", path, "--show", "energy", "-o", str(picture), "--json")
    assert json.loads(done.stdout)["curves"] == ["a, 2 ranks, 1,024 words"], done.stderr
    text = picture.read_text()
    for words in ("million updates a joule", "power, W (not metered: dram)", ">cpu<", ">gpu<"):
        assert words in text


def test_trainings(cli: Run, tmp_path: Path) -> None:
    ring = {"event": "result", "app": "ring_reduction", "ranks": 2, "bytes": 64, "bus_bytes_per_second": 1e9}
    results = [ring | {"method": "host", "seconds": 2.0}, ring | {"method": "device", "seconds": 1.0}]
    path, picture = write(tmp_path / "r.jsonl", results), tmp_path / "p.svg"
    done = cli("plot", path, "--show", "trainings", "-o", str(picture), "--json")
    assert json.loads(done.stdout)["curves"] == ["host", "device"], done.stderr
    assert "AN4 LSTM" in picture.read_text()
    done = cli("plot", write(tmp_path / "r.jsonl", results[1:]), "--show", "trainings", "-o", str(picture))
    assert "has no reduction by host" in done.stderr


@pytest.mark.parametrize("show", ["scaling", "sizes", "energy"])
def test_what_cannot_be_drawn_is_refused(cli: Run, tmp_path: Path, show: str) -> None:
    path = write(tmp_path / "r.jsonl", [result("a", 1, 1024, 1.0, updates_per_second=None)])
    done = cli("plot", path, "--show", show, "-o", str(tmp_path / "p.svg"))
    assert done.returncode == 1
    assert f"has what --show {show} draws" in done.stderr
    assert not (tmp_path / "p.svg").exists()


def test_the_pictures_of_the_documents_show_their_records(repository: Path) -> None:
    """Each picture stands beside the command that drew it; it has curves for the methods of these records."""
    text = (repository / "docs/measured-scaling.md").read_text(encoding="utf-8")
    pictures = set(re.findall(r"\]\((pictures/[^)]+)\)", text))
    commands = [shlex.split(one) for one in re.findall(r"^beeline (plot .*)$", text, re.MULTILINE)]
    methods: dict[str, set[str]] = {}
    for command in commands:
        results = [
            one for name in command if name.endswith(".jsonl") for one in events_of(read(repository / name))
            if one.get("app") and application_pictures.is_timed(one)
        ]  # fmt: skip
        for app in {one["app"] for one in results}:
            name = command[command.index("-o") + 1].removeprefix("docs/")
            mine = {one["method"] for one in results if one["app"] == app}
            methods[name] = methods[name.replace(".svg", f"-{app}.svg")] = mine
    assert pictures <= set(methods)
    for name in pictures:
        picture = html.unescape((repository / "docs" / name).read_text(encoding="utf-8"))
        curves = json.loads(re.findall(r'\{"curves": \[.*?\]\}', picture)[0])["curves"]
        assert {curve.split(", ")[0] for curve in curves} == methods[name], name
