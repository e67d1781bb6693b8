# SPDX-License-Identifier: Apache-2.0
"""`beeline plot`: pictures of records of benchmarks, and of `beeline energy`."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from beeline import options
from beeline.application_pictures import draw_joules, draw_scaling, draw_sizes, draw_trainings, is_metered, is_timed
from beeline.commands.training_projection import projections_of
from beeline.display import format_bytes
from beeline.energy_record import Record, record_of
from beeline.picture import check_picture, label_of, new_figure, number_text, save, scale_values
from beeline.power_picture import draw_power, draw_runs
from beeline.programs import CliError
from beeline.records import Event, Line, events_of, read
from beeline.texts import printable

Curves = dict[str, list[tuple[int, Event]]]
Axis = Literal["bytes", "blocks", "iterations"]
Shown = Literal["scaling", "sizes", "energy", "trainings"]
Panels = list[tuple[str, Callable[[Event], float]]]
MISSING = float("nan")
MOST_PICTURES = 64  # more operations than Beeline has; each picture takes matplotlib some tenths of a second
FEW_TIMES = 4  # ratio of largest and smallest value: a smaller ratio is drawn on a linear axis
LAUNCH, POWER = "launch", "power"  # names of pictures that show no operation
# Pictures of applications: the results that they show, and what draws them.
SHOWN: dict[str, tuple[Callable[[Event], bool], Callable[[list[Event], Path], list[str]]]] = {
    "scaling": (is_timed, draw_scaling),
    "sizes": (is_timed, draw_sizes),
    "energy": (is_metered, draw_joules),
}
METHODS = ("message", "put", "get", "two_way")  # operations whose methods `bench methods` compares by size
# Names of methods in records up to November 2026, with today's names.
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
    show: Annotated[
        Shown | None,
        typer.Option(
            "--show",
            help="Of applications: rate and speed-up by ranks; rate by size; work a joule and power; trainings that "
            "`beeline app training-projection` projects.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Draw records as pictures: one for each operation or application, with a curve for each method and peer.

    Collectives: time and bus bandwidth by size. `bench methods`: its results by size. Metered operations: joules a
    word, and power. Metered applications, and records of `beeline energy`: power over time. `bench launch`: launches
    and work a joule against iterations. Applications with --show: their scaling, or their energy.
    """
    if show == "trainings":
        projections = [one for path in records for one in projections_of(path)]
        return report("trainings", output, draw_trainings(projections, output), as_json)
    if show is not None:
        return plot_applications(records, show, output, as_json)
    results: list[Event] = []
    for path in records:
        lines = read(path)
        seen = list(until_event(lines))
        if len(records) == 1 and is_of_energy(seen):
            return plot_power(record_of(path, chain(seen, lines)), path, output, as_json)
        results += drawn_of(chain(seen, lines))
    iterations: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for one in results:
        if one.get("launch_seconds"):
            iterations[launch_of(one)].add(one["iterations"])
    groups: dict[str, list[Event]] = {}
    for one in results:
        for name in pictures_of(one, len(iterations[launch_of(one)]) > 1):
            groups.setdefault(name, []).append(one)
    if not groups:
        raise CliError(
            f"no result in {', '.join(map(str, records))} can be drawn: see `beeline plot --help` for what can"
        )
    if len(groups) > MOST_PICTURES:
        raise CliError(f"the records have {len(groups)} operations, and plot draws {MOST_PICTURES} pictures at most")
    for name, mine in groups.items():
        picture = output if len(groups) == 1 else output.with_name(f"{output.stem}-{name}{output.suffix}")
        shown = draw_runs(mine, picture) if name == POWER else draw_group(name, mine, over, picture)
        report(name, picture, shown, as_json)


def report(name: str, picture: Path, curves: list[str], as_json: bool) -> None:
    if as_json:
        event = {"event": "picture", "operation": name, "file": str(picture), "curves": curves}
        print(json.dumps(event), flush=True)


def plot_applications(records: list[Path], show: str, output: Path, as_json: bool) -> None:
    is_shown, draw_shown = SHOWN[show]
    groups: dict[str, list[Event]] = {}
    for path in records:
        for one in events_of(read(path)):
            if one.get("event", "result") == "result" and is_shown(one):
                groups.setdefault(one["app"], []).append(one)
    if not groups:
        names = ", ".join(map(str, records))
        raise CliError(f"no result in {names} has what --show {show} draws: a rate, or work for each joule")
    for name, mine in groups.items():
        picture = output if len(groups) == 1 else output.with_name(f"{output.stem}-{name}{output.suffix}")
        report(name, picture, draw_shown(mine, picture), as_json)


def launch_of(result: Event) -> tuple[Any, ...]:
    """What results share that a curve of launches shows against their iterations."""
    return result.get("app"), result["method"], result.get("ranks"), str(result.get("size"))


def pictures_of(result: Event, against_iterations: bool) -> list[str]:
    """The names of the pictures that show the result."""
    if is_of_application(result):
        is_of_launches = against_iterations and bool(result.get("launch_seconds"))
        return [LAUNCH] * is_of_launches + [POWER] * bool((result.get("energy") or {}).get("power"))
    operation = result["operation"]
    if is_in_joules(result):
        return [f"{operation}-joules"]
    return [operation if operation not in (LAUNCH, POWER) else f"{operation}-operation"]


def draw_group(name: str, results: list[Event], over: Axis, output: Path) -> list[str]:
    units = list(dict.fromkeys(str(one.get("unit")) for one in results))
    if len(units) > 1:
        raise CliError(f"results of {name} are in {' and in '.join(units)}: plot them from records of their own")
    axis: Axis = "iterations" if name == LAUNCH else over
    curves = curves_over(results, axis)
    if not curves:
        raise CliError(f"no result of {name} has a number of {axis}: leave --over {axis} out")
    draw(curves, axis, results, output)
    return list(curves)


def until_event(lines: Iterator[Line]) -> Iterator[Line]:
    """The first lines, up to one that is an event."""
    for line in lines:
        yield line
        if line.event is not None:
            return


def is_of_energy(first: list[Line]) -> bool:
    """Whether a file whose first lines these are is a record of `beeline energy`, be it a whole one or not."""
    event = (first[-1].event if first else None) or {}
    return "components" in event or event.get("event") == "sample"


def plot_power(record: Record, path: Path, output: Path, as_json: bool) -> None:
    if record.result is None:
        print(f"beeline: {path} ends before its program did", file=sys.stderr)
    curves = draw_power(record, output)
    if not curves:
        raise CliError(f"{path} has no power to draw: the reasons of its samples say why")
    report("energy", output, curves, as_json)


def is_of_application(result: Event) -> bool:
    return "app" in result


def is_in_joules(result: Event) -> bool:
    return str(result.get("unit")).startswith("nJ")


def drawn_of(lines: Iterable[Line]) -> list[Event]:
    """The results of a record that can be drawn: collectives, methods, joules of words, applications."""
    results = [one for one in events_of(lines) if one.get("event", "result") == "result" and is_drawn(one)]
    return [one | {"method": name_today(one["method"])} for one in results]


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
    """Points by curve; for several settings at one point, the fastest."""
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
    """The value by which measurements are compared: a time, joules, or a rate."""
    return float(result["seconds"] if is_of_application(result) else result["median"])


def title_of(results: list[Event]) -> str:
    first, ranks = results[0], ", ".join(dict.fromkeys(str(one["ranks"]) for one in results))
    if is_of_application(first):
        return f"{first['app']} {'×'.join(map(str, first['size']))}, {ranks} ranks"
    types = dict.fromkeys(str(one["settings"]["type"]) for one in results if "type" in one["settings"])
    return f"{first['operation']}{' of ' * bool(types)}{', '.join(types)}, {ranks} ranks"


def panels_of(result: Event) -> Panels:
    """The panels of a picture of such results: names and values."""
    if is_of_application(result):
        return [
            ("launching, ms", lambda one: 1e3 * (one["launch_seconds"] or MISSING)),
            ("MFLOP a joule", lambda one: one.get("mflop_per_joule") or MISSING),
        ]
    if is_in_joules(result):
        return [("energy of a word, nJ", lambda one: one["median"]), ("power, W", watts_of)]
    if result["operation"] in METHODS and result.get("bus_gb_per_s") is None:
        return [("one way, µs" if result["unit"] == "us" else "GB/s", lambda one: one["median"])]
    return [("time of a call, µs", lambda one: one["median"]), ("bus bandwidth, GB/s", bandwidth_of)]


def bandwidth_of(result: Event) -> float:
    bandwidth = result.get("bus_gb_per_s")
    return MISSING if bandwidth is None else float(bandwidth)


def watts_of(result: Event) -> float:
    """Watts of all known components together."""
    watts = [part["watts"] for part in result["energy"]["components"].values() if part["watts"] is not None]
    return sum(watts) if watts else MISSING


def size_text(value: float, _: int) -> str:
    return format_bytes(int(value))


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
            axes.plot(places, [value(one) for _, one in points], style, marker=".", label=label_of(name))
    for axes, (what, _) in zip(axes_of_all, panels, strict=True):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(size_text if over == "bytes" else number_text)
        scale_values(axes, FEW_TIMES)
        axes.set_xlabel(over)
        axes.set_ylabel(what)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.suptitle(printable(title_of(results)))
    figure.legend(*axes_of_all[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    save(figure, output, {"curves": list(curves)})
