# SPDX-License-Identifier: Apache-2.0
"""Pictures of applications: rate and speed-up by ranks, rate by size, work for each joule, projected trainings."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

from beeline.application_rows import APPLICATIONS, Application, place_name, places, places_text
from beeline.picture import label_of, new_figure, save, scale_values
from beeline.records import Event
from beeline.texts import printable

Points = list[tuple[int, Event]]
Curves = dict[str, Points]
BAR_INCHES = 0.28
FEW_PLACES = 12  # numbers of ranks, or sizes, that each have a tick
FEW_TIMES = 30  # ratio of largest and smallest value: a smaller ratio is drawn on a linear axis
MISSING = float("nan")
SPEED_UP = "speed-up"


def is_timed(result: Event) -> bool:
    """Whether a result has a rate, of data that were not found wrong."""
    application = APPLICATIONS.get(str(result.get("app")))
    return application is not None and bool(application.rate_of(result)) and result.get("verified") is not False


def is_metered(result: Event) -> bool:
    application = APPLICATIONS.get(str(result.get("app")))
    return is_timed(result) and application is not None and application.work_for_a_joule(result) is not None


def draw_scaling(results: list[Event], output: Path) -> list[str]:
    """Draws the rate of an application against ranks, a curve for each method and size, and the speed-up over the
    fastest method on the fewest ranks. Returns the curves' names."""
    application = APPLICATIONS[results[0]["app"]]
    is_weak = is_weak_scaling(application, results)

    def problem(one: Event) -> tuple[Any, ...]:
        size = application.count(one) // places(one) if is_weak else application.size(one)
        return (size, *application.kind(one))

    def text(one: Event) -> str:
        return f"{problem(one)[0]:,} {application.unit} a rank" if is_weak else application.size_text(one)

    curves = curves_of(application, results, places, problem, text)
    panels: list[tuple[str, Callable[[Event], float]]] = [(application.rate, lambda one: rate(application, one))]
    if application.is_divided:
        fewest = {key: fastest_on_fewest(application, mine) for key, mine in grouped(results, problem).items()}
        on = " or ".join(dict.fromkeys(places_text(one) for one in sorted(fewest.values(), key=places)))
        panels.append(
            (
                f"{SPEED_UP} over the fastest method on {on}",
                lambda one: rate(application, one) / rate(application, fewest[problem(one)]),
            )
        )
    else:
        panels.append(("time, µs", lambda one: 1e6 * (one.get("seconds") or MISSING)))
    kind = "weak" if is_weak else "strong"
    title = titled(application, results, curves, text, f"{kind} scaling" if application.is_divided else "")
    draw_curves(curves, panels, title, output, place_name(results[0]))
    return list(curves)


def draw_sizes(results: list[Event], output: Path) -> list[str]:
    """Draws the rate of an application against the size of its problem, a curve for each method and number of ranks.
    Returns the curves' names."""
    application = APPLICATIONS[results[0]["app"]]
    curves = curves_of(
        application, results, application.count, lambda one: (places(one), *application.kind(one)), places_text
    )
    title = titled(application, results, curves, places_text, "")
    panel = (application.rate, lambda one: rate(application, one))
    draw_curves(curves, [panel], title, output, application.unit)
    return list(curves)


def draw_joules(results: list[Event], output: Path) -> list[str]:
    """Draws work for each joule, with its error, and power by component: a bar for each method, number of ranks and
    size. Of several results for one bar it takes that with the most work for a joule. Returns the bars' names."""
    application = APPLICATIONS[results[0]["app"]]
    most = work_of(application)
    bars: dict[tuple[Any, ...], Event] = {}
    for one in sorted(results, key=most):
        bars[application.count(one), application.size(one), application.kind(one), places(one), one["method"]] = one
    shown = [bars[key] for key in sorted(bars)]
    names = [f"{one['method']}, {places_text(one)}, {application.size_text(one)}" for one in shown]
    figure, (work, power) = new_figure(2, (14, 1.5 + BAR_INCHES * len(shown)))
    rows = range(len(shown))
    values = [most(one) for one in shown]
    errors = [value * (one["energy"].get("error") or 0) for value, one in zip(values, shown, strict=True)]
    work.barh(rows, values, xerr=errors)
    work.set_yticks(rows, [label_of(name) for name in names])
    work.set_xlabel(application.joules)
    draw_power(power, shown)
    for axes in (work, power):
        axes.invert_yaxis()
        axes.grid(alpha=0.3, axis="x")
    figure.suptitle(printable(f"{application.title}, {devices(shown)}"))
    save(figure, output, {"curves": names})
    return names


def draw_power(axes: Any, shown: list[Event]) -> None:
    """Stacks the power of the metered components; the axis names those without a meter."""
    kinds = list(shown[0]["energy"]["components"])
    left, without = [0.0] * len(shown), []
    for kind in kinds:
        watts = [one["energy"]["components"][kind]["watts"] for one in shown]
        if all(one is None for one in watts):
            without.append(kind)
            continue
        known = [one or 0.0 for one in watts]
        axes.barh(range(len(shown)), known, left=left, label=kind)
        left = [before + now for before, now in zip(left, known, strict=True)]
    axes.set_yticks([])
    lacking = f" (not metered: {', '.join(without)})" if without else ""
    axes.set_xlabel(f"power, W{lacking}")
    if len(kinds) > len(without) + 1:
        axes.legend(fontsize="small")


def draw_trainings(projections: list[Event], output: Path) -> list[str]:
    """Draws projected speed-ups of trainings: a panel for each number of ranks and size, a bar for each scheme.
    Returns the schemes' names."""
    places_of = list(dict.fromkeys((one["ranks"], one["bytes"]) for one in projections))
    schemes = list(dict.fromkeys(one["method"] for one in projections))
    figure, panels = new_figure(len(places_of), (2 + 6 * len(places_of), 6))
    thickness = 0.8 / len(schemes)
    for axes, place in zip(panels, places_of, strict=True):
        mine = {one["method"]: one["speed_ups"] for one in projections if (one["ranks"], one["bytes"]) == place}
        trainings = list(next(iter(mine.values())))
        for number, scheme in enumerate(schemes):
            rows = [row + (number - (len(schemes) - 1) / 2) * thickness for row in range(len(trainings))]
            values = [mine[scheme][one] if scheme in mine else 0 for one in trainings]
            axes.barh(rows, values, thickness, label=label_of(scheme))
        axes.set_yticks(range(len(trainings)), trainings)
        axes.invert_yaxis()
        axes.axvline(1, color="black", linewidth=1)
        axes.set_xlabel(f"projected speed-up over host, {place[0]} ranks, reductions of {place[1]:,} bytes")
        axes.grid(alpha=0.3, axis="x")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    save(figure, output, {"curves": schemes})
    return schemes


def is_weak_scaling(application: Application, results: list[Event]) -> bool:
    """Whether results fall on fewer curves of one size for each rank than of one size in all."""
    strong = {(one["method"], application.size(one)) for one in results}
    weak = {(one["method"], application.count(one) / places(one)) for one in results}
    return application.is_divided and len(weak) < len(strong)


def rate(application: Application, result: Event) -> float:
    return application.rate_of(result) or 0.0


def work_of(application: Application) -> Callable[[Event], float]:
    return lambda one: application.work_for_a_joule(one) or 0.0


def grouped(results: list[Event], key: Callable[[Event], tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Event]]:
    groups: dict[tuple[Any, ...], list[Event]] = {}
    for one in results:
        groups.setdefault(key(one), []).append(one)
    return groups


def fastest_on_fewest(application: Application, results: list[Event]) -> Event:
    fewest = min(map(places, results))
    return max((one for one in results if places(one) == fewest), key=lambda one: rate(application, one))


def curves_of(
    application: Application,
    results: list[Event],
    place: Callable[[Event], int],
    problem: Callable[[Event], tuple[Any, ...]],
    text: Callable[[Event], str],
) -> Curves:
    """Points by curve; for several results at one point, the fastest. Names have what differs between curves."""
    has_several = len(grouped(results, problem)) > 1
    has_kinds = len(grouped(results, application.kind)) > 1
    curves: Curves = {}
    for one in results:
        name = [str(one["method"]), *[text(one)] * has_several, *application.kind(one) * has_kinds]
        curves.setdefault(", ".join(name), []).append((place(one), one))
    return {name: fastest_points(application, points) for name, points in curves.items()}


def fastest_points(application: Application, points: Points) -> Points:
    ordered = sorted(points, key=lambda point: (point[0], -rate(application, point[1])))
    return [next(mine) for _, mine in groupby(ordered, key=lambda point: point[0])]


def titled(
    application: Application, results: list[Event], curves: Curves, text: Callable[[Event], str], what: str
) -> str:
    same = {text(one) for points in curves.values() for _, one in points}
    return ", ".join(filter(None, [application.title, what, *(same if len(same) == 1 else ()), devices(results)]))


def devices(results: list[Event]) -> str:
    return " and ".join(dict.fromkeys(str(one.get("device")) for one in results))


def draw_curves(
    curves: Curves, panels: list[tuple[str, Callable[[Event], float]]], title: str, output: Path, axis: str
) -> None:
    figure, axes_of_all = new_figure(len(panels), (3 + 6 * len(panels), 6))
    at = sorted({place for points in curves.values() for place, _ in points})
    for axes, (what, value) in zip(axes_of_all, panels, strict=True):
        for name, points in curves.items():
            axes.plot(
                [place for place, _ in points], [value(one) for _, one in points], marker="o", label=label_of(name)
            )
        if what.startswith(SPEED_UP):
            axes.plot(at, [place / at[0] for place in at], ":", color="black", label="in proportion")
        axes.set_xscale("log", base=2)
        if len(at) <= FEW_PLACES:
            axes.set_xticks(at, [f"{place:,}" for place in at])
        scale_values(axes, FEW_TIMES)
        axes.set_xlabel(axis)
        axes.set_ylabel(what)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.suptitle(printable(title))
    figure.legend(*axes_of_all[-1].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    save(figure, output, {"curves": list(curves)})
