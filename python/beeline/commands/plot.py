# SPDX-License-Identifier: Apache-2.0
"""`beeline plot`: pictures of records of benchmarks, and of `beeline energy`."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from beeline import options
from beeline.energy_record import read_record
from beeline.errors import InvalidArgumentError
from beeline.jobs import Event, lines_of, parse_event
from beeline.picture import check_picture, new_figure, save
from beeline.power_picture import draw_power, draw_runs
from beeline.programs import CliError

Curves = dict[str, list[tuple[int, Event]]]
Axis = Literal["bytes", "blocks", "iterations"]
Panels = list[tuple[str, Callable[[Event], float]]]
MISSING = float("nan")
FEW_TIMES = 4  # the lowest value: what differs less is drawn on a linear axis
LAUNCH, POWER = "launch", "power"  # names of pictures that show no operation
METHODS = ("message", "put", "get", "two_way")  # of which `bench methods` compares the methods by size
# What records up to November 2026 call methods, by today's names.
RENAMED = {r"/packets128(?=_|$)": "/ll128", r"/packets(?=_|$)": "/ll", r"_alike$": "_symmetric"}


def plot(
    records: Annotated[
        list[Path], typer.Argument(metavar="RECORD", help="Files of JSON lines.", exists=True, dir_okay=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            callback=check_picture,
            help="Picture to write, .png or .svg. Several operations get one each: of NAME.png, NAME-OPERATION.png.",
        ),
    ],
    over: Annotated[
        Literal["bytes", "blocks"], typer.Option("--over", help="The horizontal axis: bytes, or blocks of a GPU.")
    ] = "bytes",
    as_json: options.Json = False,
) -> None:
    """Draw records as pictures: one for each operation, with a curve for each method and peer.

    Collectives: time and bus bandwidth by size. `bench methods`: its results by size. Metered operations: joules a
    word, and power. Metered applications, and records of `beeline energy`: power over time. `bench launch`: launches
    and work a joule against iterations.
    """
    if len(records) == 1 and is_of_energy(records[0]):
        plot_power(records[0], output, as_json)
        return
    results = [one for path in records for one in read_results(path)]
    groups: dict[str, list[Event]] = {}
    for one in results:
        for name in pictures_of(one, results):
            groups.setdefault(name, []).append(one)
    if not groups:
        raise CliError(
            f"no result in {', '.join(map(str, records))} can be drawn: see `beeline plot --help` for what can"
        )
    for name, mine in groups.items():
        picture = output if len(groups) == 1 else output.with_name(f"{output.stem}-{name}{output.suffix}")
        shown = draw_runs(mine, picture) if name == POWER else draw_group(name, mine, over, picture)
        if as_json:
            event = {"event": "picture", "operation": name, "file": str(picture), "curves": shown}
            print(json.dumps(event), flush=True)


def pictures_of(result: Event, results: list[Event]) -> list[str]:
    """The names of those that show it."""
    if is_of_application(result):
        against_iterations = result.get("launch_seconds") and len({one.get("iterations") for one in results}) > 1
        return [LAUNCH] * bool(against_iterations) + [POWER] * bool((result.get("energy") or {}).get("power"))
    return [f"{result['operation']}-joules" if is_in_joules(result) else str(result["operation"])]


def draw_group(name: str, results: list[Event], over: Axis, output: Path) -> list[str]:
    axis: Axis = "iterations" if name == LAUNCH else over
    curves = curves_over(results, axis)
    if not curves:
        raise CliError(f"no result of {name} has a number of {axis}: leave --over {axis} out")
    draw(curves, axis, results, output)
    return list(curves)


def is_of_energy(path: Path) -> bool:
    """Whether it is a record of `beeline energy`, be it a whole one or not."""
    first = next((event for line in lines_of(path) if (event := parse_event(line)) is not None), {})
    return "components" in first or first.get("event") == "sample"


def plot_power(path: Path, output: Path, as_json: bool) -> None:
    try:
        record = read_record(path)
    except InvalidArgumentError as problem:
        raise CliError(str(problem)) from problem
    if record.result is None:
        print(f"beeline: {path} ends before its program did", file=sys.stderr)
    curves = draw_power(record, output)
    if not curves:
        raise CliError(f"{path} has no power to draw: the reasons of its samples say why")
    if as_json:
        print(
            json.dumps({"event": "picture", "operation": "energy", "file": str(output), "curves": curves}), flush=True
        )


def is_of_application(result: Event) -> bool:
    return "app" in result


def is_in_joules(result: Event) -> bool:
    return str(result.get("unit")).startswith("nJ")


def read_results(path: Path) -> list[Event]:
    """The results of a record that can be drawn: collectives, methods, joules of words, applications."""
    results: list[Event] = []
    for number, line in enumerate(lines_of(path), 1):
        one = parse_event(line)
        if one is None or one.get("event", "result") != "result" or not is_drawn(one):
            continue
        of_launches = ("size", "seconds", "iterations") if one.get("launch_seconds") else ()
        needed = of_launches if is_of_application(one) else ("operation", "settings")
        if lacking := [name for name in ("method", "ranks", *needed) if name not in one]:
            raise CliError(f"{path}:{number}: the result lacks {', '.join(lacking)}: plot takes records of beeline")
        results.append(one | {"method": name_today(str(one["method"]))})
    return results


def is_drawn(result: Event) -> bool:
    if is_of_application(result):
        return bool((result.get("energy") or {}).get("power")) or result.get("launch_seconds") is not None
    is_compared = is_in_joules(result) or result.get("bus_gb_per_s") is not None or result.get("operation") in METHODS
    return is_compared and result.get("median") is not None and bool(result.get("bytes"))


def name_today(method: str) -> str:
    for former, name in RENAMED.items():
        method = re.sub(former, name, method)
    return method


def curves_over(results: list[Event], over: Axis) -> Curves:
    """Points by curve; of several settings at one point the quickest."""
    fastest: dict[tuple[str, int], Event] = {}
    for result in results:
        name = str(result["method"])
        place: Any = result.get("settings", {}).get("blocks") if over == "blocks" else result[over]
        if over == "blocks":
            name += f", {result['bytes']:,} B"
        if not isinstance(place, int):
            continue
        before = fastest.get((name, place))
        if before is None or is_better(result, before):
            fastest[name, place] = result
    curves: Curves = {}
    for (name, place), result in fastest.items():
        curves.setdefault(name, []).append((place, result))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in curves.items()}


def is_better(result: Event, before: Event) -> bool:
    if str(result.get("unit")).endswith("/s"):
        return time_of(result) > time_of(before)
    return time_of(result) < time_of(before)


def time_of(result: Event) -> float:
    """Or joules, or a rate: what measurements are compared by."""
    return float(result["seconds"] if is_of_application(result) else result["median"])


def title_of(results: list[Event]) -> str:
    first, ranks = results[0], ", ".join(dict.fromkeys(str(one["ranks"]) for one in results))
    if is_of_application(first):
        return f"{first['app']} {'×'.join(map(str, first['size']))}, {ranks} ranks"
    types = dict.fromkeys(str(one["settings"]["type"]) for one in results if "type" in one["settings"])
    return f"{first['operation']}{' of ' * bool(types)}{', '.join(types)}, {ranks} ranks"


def panels_of(result: Event) -> Panels:
    """What the picture of such results shows: names and values."""
    if is_of_application(result):
        return [
            ("launching, ms", lambda one: 1e3 * (one["launch_seconds"] or MISSING)),
            ("MFLOP a joule", lambda one: one.get("mflop_per_joule") or MISSING),
        ]
    if is_in_joules(result):
        return [("energy of a word, nJ", lambda one: one["median"]), ("power, W", watts_of)]
    if result["operation"] in METHODS and result.get("bus_gb_per_s") is None:
        return [("one way, µs" if result["unit"] == "us" else "GB/s", lambda one: one["median"])]
    return [("time of a call, µs", lambda one: one["median"]), ("bus bandwidth, GB/s", lambda one: one["bus_gb_per_s"])]


def watts_of(result: Event) -> float:
    """Of all components that are known."""
    watts = [part["watts"] for part in result["energy"]["components"].values() if part["watts"] is not None]
    return sum(watts) if watts else MISSING


def draw(curves: Curves, over: Axis, results: list[Event], output: Path) -> None:
    panels = [
        (what, value) for what, value in panels_of(results[0]) if not all(math.isnan(value(one)) for one in results)
    ]
    figure, axes_of_all = new_figure(len(panels), (7.5 * len(panels), 7))
    peers = {str(one["method"]) for one in results if one.get("peer_of") is not None}
    for name, points in curves.items():
        style = "--" if str(points[0][1]["method"]) in peers else "-"
        places = [place for place, _ in points]
        for axes, (_, value) in zip(axes_of_all, panels, strict=True):
            axes.plot(places, [value(one) for _, one in points], style, marker=".", label=name)
    for axes, (what, _) in zip(axes_of_all, panels, strict=True):
        axes.set_xscale("log", base=2)
        lowest, highest = axes.get_ylim()
        if lowest > 0 and highest < FEW_TIMES * lowest:
            axes.set_ylim(bottom=0)
        else:
            axes.set_yscale("log")
        axes.set_xlabel(over)
        axes.set_ylabel(what)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.suptitle(title_of(results))
    figure.legend(*axes_of_all[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    save(figure, output, {"curves": list(curves)})
