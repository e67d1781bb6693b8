# SPDX-License-Identifier: Apache-2.0
"""The tables that `beeline bench energy` shows."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean
from typing import Any

from rich.console import Group, RenderableType

from beeline.commands.energy import NOT_METERED
from beeline.display import (
    MISSING,
    explained,
    format_bytes,
    format_figure,
    format_number,
    format_percent,
    measured_of,
    new_table,
    not_measured,
)
from beeline.fitted_table import FittedTable
from beeline.jobs import Event

KINDS = ("cpu", "gpu", "dram")
# Seed 002, conclusion: energy saved in percent, speed-up; average watts of CPU, GPU and DRAM, for direct and MPI.
OF_2014 = {
    "put": (50.67, 2.42, (26.86, 47.05, 3.99), (43.36, 48.86, 10.11)),
    "message": (85.01, 6.96, (29.95, 52.58, 5.26), (43.25, 48.45, 8.07)),
    "barrier": (67.31, 2.28, (18.76, 56.68, 4.33), (39.97, 51.18, 8.48)),
}
DIRECT, BASELINE, STAGED = "device/peer/signal", "mpi/staged", "host/staged/"
BARE = "bare/copy"
PER_JOULE = {  # fields of applications' results
    "mflop_per_joule": "MFLOP", "updates_per_joule": "updates", "reductions_per_joule": "reductions",
}  # fmt: skip
WORD = 4  # bytes
ENGINE, KERNELS = "/copy_engine", ("device/", "stream/")


def metered_of(results: list[Event]) -> list[Event]:
    """The results of benchmarks that have joules."""
    return [one for one in measured_of(results) if str(one.get("unit")).startswith("nJ")]


def render(results: list[Event]) -> RenderableType:
    """A table for each operation and size, and those that compare; below, what is not metered."""
    metered = metered_of(results)
    loads = [one for one in results if one.get("energy")]
    parts: list[RenderableType] = []
    if len(set(map(wait_of, loads))) > 1:
        parts.append(table_of_waits(loads))
    else:
        parts += [table(groups) for groups in groups_of(metered).values()]
        compared = (table_of_puts(metered), table_of_engines(metered), *tables_of_002(metered), table_of_work(results))
        parts += [one for one in compared if one.row_count]
    return Group(*parts, *notes_on(metered), *not_measured(results))


def groups_of(metered: list[Event]) -> dict[tuple[str, int], list[list[Event]]]:
    """By operation and size: the results in groups, of fewest joules first. What differs from the first of a group by
    less than the errors of the two is in that group: no order is known within it."""
    found: dict[tuple[str, int], list[list[Event]]] = {}
    for one in sorted(metered, key=nanojoules):
        groups = found.setdefault((str(one["operation"]), one["bytes"]), [])
        if groups and nanojoules(one) - error_of(one) <= nanojoules(groups[-1][0]) + error_of(groups[-1][0]):
            groups[-1].append(one)
        else:
            groups.append([one])
    kinds = dict.fromkeys((str(one["operation"]), one["bytes"]) for one in metered)
    return {kind: found[kind] for kind in kinds}


def error_share(result: Event) -> float:
    """Error of the joules as a share. Records from before November 27th, 2026 have only the spread."""
    energy = result["energy"]
    error = energy.get("error")
    return float((energy.get("spread") if error is None else error) or 0)


def error_of(result: Event) -> float:
    return error_share(result) * nanojoules(result)


def with_error(value: float, error: float) -> str:
    """A share in percent with its error; only the error if the share may be 0."""
    return f"{100 * value:.1f} ± {100 * error:.1f}" if abs(value) > error else f"within ± {100 * error:.1f}"


def notes_on(results: list[Event]) -> list[str]:
    """Notes on the components that the joules include."""
    if not results:
        return []
    reasons = dict.fromkeys(
        f"not in the joules: {kind}: {part['reason']}"
        for one in results
        for kind, part in one["energy"]["components"].items()
        if part.get("reason")
    )
    ranks, gpus = results[0]["ranks"], len(results[0]["energy"].get("gpus", []))
    shared = [f"{ranks} ranks on {gpus} GPU: what moves between them stays in its memory"] if 0 < gpus < ranks else []
    parts = [part for one in results for part in one["energy"]["components"].values()]
    idle = ["above idle, –: the difference to idle power is within its error"] * any(
        part["watts"] is not None and part["joules_above_idle"] is None for part in parts
    )
    return [
        *reasons,
        f"not metered: {', '.join(NOT_METERED)}",
        *shared,
        *idle,
        "±, %: 95 % interval over the windows, and what the counters leave open",
    ]


def table(groups: list[list[Event]]) -> FittedTable:
    """The table of one operation and size. Methods with the same rank differ by less than their errors."""
    first = groups[0][0]
    size = f" of {format_bytes(first['bytes'])}" if first["bytes"] else ""
    columns = (
        ">rank", f">{first['unit']}", ">±, %", ">above\nidle", ">±, %", ">GPU W", ">CPU W", ">DRAM W", ">CPU\ncores",
        ">of the\nbest, %",
    )  # fmt: skip
    shown = new_table(f"{first['operation']}{size}, {first['ranks']} ranks (lower is better)", "method", *columns)
    for rank, one in ((rank, one) for rank, group in enumerate(groups, 1) for one in group):
        parts = one["energy"]["components"]
        above, error = above_idle(parts)
        watts = [parts[kind]["watts"] for kind in ("gpu", "cpu", "dram")]
        of_best = format_percent(one["median"] / first["median"], one, first)
        shown.add_row(
            one["method"], str(rank), format_figure(one["median"], one), format_percent(error_share(one)),
            format_number(None if above is None else 1e9 * above), format_percent(error),
            *map(format_number, (*watts, one["energy"]["cpu_cores"])), of_best,
        )  # fmt: skip
    shared = any(len(group) > 1 for group in groups)
    return explained(shown, *["one rank: they differ by less than their errors"] * shared)


def above_idle(parts: Event) -> tuple[float | None, float | None]:
    """Joules above idle of the components that have some, and their error as a share."""
    known = [part for part in parts.values() if part["joules_above_idle"] is not None]
    joules = sum(part["joules_above_idle"] for part in known)
    errors = [part.get("joules_above_idle_error") for part in known]
    return (joules, None if None in errors else sum(errors) / joules) if known else (None, None)


def table_of_puts(results: list[Event]) -> FittedTable:
    """Each method of a put against a bare loop of copies and both methods of staging, for the same size."""
    beside = (BARE, f"{STAGED}sequential", f"{STAGED}pipelined")
    shown = new_table(
        "Joules of a put as a part of those of", "method", ">bytes", *(f">{one}" for one in beside), keys=2
    )
    puts = [one for one in results if one["operation"] == "put"]
    for one in puts:
        others = [quickest(puts, name, one["bytes"]) for name in beside]
        if any(others) and one not in others:
            shown.add_row(one["method"], format_bytes(one["bytes"]), *(ratio_of(one, other) for other in others))
    return explained(shown, "lower is better")


def ratio_of(one: Event, other: Event | None) -> str:
    if other is None:
        return MISSING
    ratio = nanojoules(one) / nanojoules(other)
    return f"{ratio:.3f} ± {ratio * (error_share(one) + error_share(other)):.3f}"


def table_of_work(results: list[Event]) -> FittedTable:
    """Work per joule in applications, and random updates per joule."""
    columns = (">ranks", ">a joule", "of", ">±, %", ">GPU W", ">CPU\ncores")
    shown = new_table("Work for each joule (higher is better)", "what", "method", *columns, keys=2)
    for one in results:
        if not one.get("energy"):
            continue
        energy = one["energy"]
        unit = next((field for field in PER_JOULE if one.get(field)), None)
        amount = one[unit] if unit else None
        if str(one.get("operation")).startswith("random_") and str(one.get("unit")).startswith("nJ"):
            amount = 1e9 / (nanojoules(one) * max(one["bytes"] / WORD, 1))
        if amount is not None:
            numbers = map(format_number, (energy["components"]["gpu"]["watts"], energy["cpu_cores"]))
            shown.add_row(
                what_of(one), one["method"], str(one["ranks"]), format_figure(amount, one),
                PER_JOULE[unit] if unit else "updates", format_percent(error_share(one)), *numbers,
            )  # fmt: skip
    return explained(shown, "differences within ± are no order")


def table_of_engines(results: list[Event]) -> FittedTable:
    """The best of the copy engines' methods against the best that takes multiprocessors, where both were metered."""
    columns = (">engines", ">multi-\nprocessors", ">saved, %", "engines' method", "multiprocessors'")
    shown = new_table("Copy engines against multiprocessors, nJ a word", "operation", *columns)
    for operation, size in dict.fromkeys((one["operation"], one["bytes"]) for one in results):
        here = [one for one in results if (one["operation"], one["bytes"]) == (operation, size)]
        by_engines = [one for one in here if ENGINE in one["method"] and not is_bare(one)]
        by_kernels = [
            one for one in here if one["method"].startswith(KERNELS) and one not in by_engines and not is_chosen(one)
        ]
        if size and by_engines and by_kernels:
            engines, kernels = (min(some, key=nanojoules) for some in (by_engines, by_kernels))
            numbers = (format_figure(nanojoules(one), one) for one in (engines, kernels))
            ratio = nanojoules(engines) / nanojoules(kernels)
            saved = with_error(1 - ratio, ratio * (error_share(engines) + error_share(kernels)))
            shown.add_row(f"{operation} of {format_bytes(size)}", *numbers, saved, engines["method"], kernels["method"])
    return explained(shown, "nJ: lower is better; saved: higher")


def is_chosen(result: Event) -> bool:
    """Whether the library chose the algorithm, perhaps with engines."""
    return str(result["method"]).endswith("/automatic")


def is_bare(result: Event) -> bool:
    return str(result["method"]).startswith("bare/")


def nanojoules(result: Event) -> float:
    return float(result["median"])


def seconds(result: Event) -> float:
    """Seconds per word, per operation without data, or per unit that an application counts."""
    return float(result["energy"]["seconds"])


def tables_of_002(results: list[Event]) -> list[FittedTable]:
    """What direct communication saves against MPI and against the quickest staging, beside the figures of 2014; and the
    average power of each. Savings and speed-ups are computed for each size, then averaged; so is power."""
    groups = [f"{name}:\n{what}" for name in (BASELINE, f"{STAGED}*", "2014") for what in ("saved, %", "speed-up")]
    saved = new_table("Seed 002: direct communication against staged", "operation", *(f">{one}" for one in groups))
    columns = (">CPU", ">GPU", ">DRAM", ">total", ">2014")
    power = new_table("Seed 002: average power, W", "operation", "method", *columns, keys=2)
    for operation, (*then, watts, watts_against) in OF_2014.items():
        mine = [one for one in results if one["operation"] == operation]
        by_size = {one["bytes"]: one for one in mine if one["method"] == DIRECT}
        by_mpi, staged = (
            [(by_size[size], quickest(mine, baseline, size)) for size in by_size if quickest(mine, baseline, size)]
            for baseline in (BASELINE, STAGED)
        )
        if by_mpi or staged:
            saved.add_row(operation, *savings(by_mpi), *savings(staged), *map(str, then))
        if by_mpi:
            for which, old in enumerate((watts, watts_against)):
                runs = [pair[which] for pair in by_mpi]
                power.add_row(operation, runs[0]["method"], *average_watts(runs), join(old))
    return [explained(saved, "saved, speed-up: higher is better"), explained(power, "lower is better")]


def quickest(results: list[Event], beginning: str, size: int) -> Any:
    """The fastest of the methods whose names start with `beginning`; None if there is none."""
    found = [one for one in results if one["method"].startswith(beginning) and one["bytes"] == size]
    return min(found, key=seconds, default=None)


def savings(pairs: list[tuple[Event, Event]]) -> tuple[str, str]:
    """Energy saved and speed-up, each the mean over sizes."""
    if not pairs:
        return format_percent(None), format_number(None)
    ratios = [nanojoules(direct) / nanojoules(other) for direct, other in pairs]
    errors = [error_share(direct) + error_share(other) for direct, other in pairs]
    error = mean(ratio * error for ratio, error in zip(ratios, errors, strict=True))
    speed_up = mean(seconds(other) / seconds(direct) for direct, other in pairs)
    measured = [one for pair in pairs for one in pair]
    return with_error(1 - mean(ratios), error), format_figure(speed_up, *measured)


def average_watts(results: list[Event]) -> list[str]:
    """Average watts by component, and the sum of the known components."""

    def average(kind: str) -> float | None:
        watts = [one["energy"]["components"][kind]["watts"] for one in results]
        return None if None in watts else mean(watts)

    averages = [average(kind) for kind in KINDS]
    known = [each for each in averages if each is not None]
    return [format_number(each) for each in (*averages, sum(known) if known else None)]


def join(watts: Iterable[float]) -> str:
    return " ".join(format_number(each) for each in (*watts, sum(watts)))


def table_of_waits(results: list[Event]) -> FittedTable:
    """Each wait policy against spinning: time lost, energy saved."""
    columns = ("host waits", ">lost, %", ">saved, %", ">CPU cores", ">CPU W", ">GPU W")
    shown = new_table("Waits of the host: against spinning", "what", *columns, keys=2)
    for what in dict.fromkeys(map(work_of, results)):
        mine = [one for one in results if work_of(one) == what]
        spinning = next((one for one in mine if one["energy"]["wait_policy"] == "spin"), None)
        for one in mine:
            lost = spinning and seconds(one) / seconds(spinning) - 1
            both = (joules(one), joules(spinning)) if spinning else (None, None)
            saved = None if None in both or both[1] == 0 else 1 - both[0] / both[1]
            watts = [one["energy"]["components"][kind]["watts"] for kind in ("cpu", "gpu")]
            numbers = map(format_number, (one["energy"]["cpu_cores"], *watts))
            ratios = (format_percent(share, one, spinning) for share in (lost, saved))
            shown.add_row(what, wait_of(one), *ratios, *numbers)
    return explained(shown, "saved: higher is better; the others: lower")


def work_of(result: Event) -> str:
    return f"{what_of(result)}, {result['method']}"


def what_of(result: Event) -> str:
    sizes = result.get("size") or [result[name] for name in ("columns", "rows", "values") if result.get(name)]
    what = result.get("operation") or " ".join(filter(None, (str(result.get("app")), "×".join(map(str, sizes)))))
    return f"{what} of {format_bytes(result['bytes'])}" if result.get("bytes") else str(what)


def wait_of(result: Event) -> str:
    energy = result["energy"]
    policy = energy.get("wait_policy", "automatic")  # records of November 2026 may lack it
    return f"sleep {energy['wait_period_us']:,} us" if policy == "sleep" else str(policy)


def joules(result: Event) -> float | None:
    """Joules of the known components; None if none is known."""
    parts = [part["joules"] for part in result["energy"]["components"].values()]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None
