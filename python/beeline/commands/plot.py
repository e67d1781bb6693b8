# SPDX-License-Identifier: Apache-2.0
"""`beeline plot`: pictures of records of `beeline bench collectives`, and of `beeline energy`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from beeline import options
from beeline.energy_record import read_record
from beeline.errors import InvalidArgumentError
from beeline.jobs import Event, parse_event
from beeline.picture import check_picture, new_figure, save
from beeline.power_picture import draw_power
from beeline.programs import CliError

Curves = dict[str, list[tuple[int, Event]]]
Axis = Literal["bytes", "blocks"]
# What records up to November 2026 call methods, by today's names.
RENAMED = {r"/packets128(?=_|$)": "/ll128", r"/packets(?=_|$)": "/ll", r"_alike$": "_symmetric"}


def plot(
    records: Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Files of JSON lines.", exists=True)],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            callback=check_picture,
            help="Picture: .png or .svg. Several operations get one each: FILE-OPERATION.",
        ),
    ],
    over: Annotated[
        Axis, typer.Option("--over", help="What runs along the axis: bytes, or blocks of a GPU.")
    ] = "bytes",
    as_json: options.Json = False,
) -> None:
    """Draws time and bus bandwidth of collectives: a picture for each operation, a curve for each method and peer.

    Of a record of `beeline energy`: power over time, a curve for each component.
    """
    if len(records) == 1 and is_of_energy(records[0]):
        plot_power(records[0], output, as_json)
        return
    results = [one for path in records for one in read_results(path)]
    if not results:
        raise CliError(f"no collective was measured in {', '.join(map(str, records))}")
    operations = list(dict.fromkeys(str(one["operation"]) for one in results))
    for operation in operations:
        mine = [one for one in results if one["operation"] == operation]
        curves = curves_over(mine, over)
        if not curves:
            raise CliError(f"no record of {operation} says which {over} it was measured with")
        picture = output if len(operations) == 1 else picture_of(operation, output)
        draw(curves, over, mine, picture)
        if as_json:
            event = {"event": "picture", "operation": operation, "file": str(picture), "curves": list(curves)}
            print(json.dumps(event), flush=True)


def is_of_energy(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        first = parse_event(file.readline())
    return first is not None and "components" in first


def plot_power(path: Path, output: Path, as_json: bool) -> None:
    try:
        record = read_record(path)
    except InvalidArgumentError as problem:
        raise CliError(str(problem)) from problem
    if record.result is None:
        print(f"beeline: {path} ends before its program did", file=sys.stderr)
    curves = draw_power(record, output)
    if not curves:
        raise CliError(f"no component of {path} shows its power")
    if as_json:
        print(
            json.dumps({"event": "picture", "operation": "energy", "file": str(output), "curves": curves}), flush=True
        )


def picture_of(operation: str, output: Path) -> Path:
    return output.with_name(f"{output.stem}-{operation}{output.suffix}")


def read_results(path: Path) -> list[Event]:
    """The measured collectives of a record."""
    events = (parse_event(line) for line in path.read_text(encoding="utf-8").splitlines())
    results = [one for one in events if one and one.get("median") is not None and one.get("bus_gb_per_s") is not None]
    return [one | {"method": name_today(str(one["method"]))} for one in results]


def name_today(method: str) -> str:
    for former, name in RENAMED.items():
        method = re.sub(former, name, method)
    return method


def curves_over(results: list[Event], over: Axis) -> Curves:
    """Points by curve; of several settings at one point the quickest."""
    fastest: dict[tuple[str, int], Event] = {}
    for result in results:
        name = str(result["method"])
        place: Any = result["bytes"] if over == "bytes" else result.get("settings", {}).get("blocks")
        if over == "blocks":
            name += f", {result['bytes']:,} B"
        if not isinstance(place, int):
            continue
        before = fastest.get((name, place))
        if before is None or result["median"] < before["median"]:
            fastest[name, place] = result
    curves: Curves = {}
    for (name, place), result in fastest.items():
        curves.setdefault(name, []).append((place, result))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in curves.items()}


def title_of(results: list[Event]) -> str:
    ranks = ", ".join(dict.fromkeys(str(one["ranks"]) for one in results))
    types = ", ".join(dict.fromkeys(str(one["settings"].get("type")) for one in results))
    return f"{results[0]['operation']} of {types}, {ranks} ranks"


def draw(curves: Curves, over: Axis, results: list[Event], output: Path) -> None:
    figure, (times, bandwidths) = new_figure(2, (15, 7))
    peers = {str(one["method"]) for one in results if one.get("peer_of") is not None}
    for name, points in curves.items():
        style = "--" if str(points[0][1]["method"]) in peers else "-"
        places = [place for place, _ in points]
        times.plot(places, [one["median"] for _, one in points], style, marker=".", label=name)
        bandwidths.plot(places, [one["bus_gb_per_s"] for _, one in points], style, marker=".", label=name)
    for axes, what in ((times, "time of a call, µs"), (bandwidths, "bus bandwidth, GB/s")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel(over)
        axes.set_ylabel(what)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.suptitle(title_of(results))
    figure.legend(*times.get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    save(figure, output, {"curves": list(curves)})
