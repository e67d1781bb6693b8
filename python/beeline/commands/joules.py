# SPDX-License-Identifier: Apache-2.0
"""`beeline bench energy`: joules per word of every method, in steps that a later run continues."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from statistics import mean

from rich.console import Group, RenderableType

from beeline import options
from beeline.commands.collectives import Launcher, nccl_library, start_command
from beeline.description import Call, call_of, commands
from beeline.display import (
    ResultView,
    format_bytes,
    format_number,
    format_percent,
    measured_of,
    new_table,
    not_measured,
)
from beeline.jobs import Event
from beeline.programs import World

STEP = "energy_step"  # the event that says which step is over


@dataclass(frozen=True)
class Step:
    """A run of the program: a command at one size."""

    command: str
    operations: str
    size: str
    methods: str = ""  # how their names begin; empty: all
    launcher: Launcher = "beeline"

    @property
    def name(self) -> str:
        return f"{self.command} {self.operations} {self.size} {self.methods}".rstrip()

    def arguments(self, window_ms: int) -> list[str]:
        size = ["--sizes", self.size] if self.size else []
        methods = ["--methods", ",".join(self.methods_here())]
        return [self.command, "--operations", self.operations, *size, *methods, "--energy", str(window_ms)]

    def methods_here(self) -> list[str]:
        """Those that the program describes: one that is added later is metered without a line here."""
        names = [one["name"] for one in commands()[self.command]["methods"]]
        return [name for name in names if name.startswith(tuple(self.methods.split(",")))]


# Of the collectives those on streams and NCCL's: in graphs and kernels they move the same bytes.
ON_STREAMS = "stream/,nccl/stream"
SETS = {
    "default": [
        Step("latency", "message", "8"),
        Step("latency", "barrier", ""),
        *(Step("bandwidth", "put", size) for size in ("64K", "256M")),
        *(Step("collectives", "allreduce", size, ON_STREAMS, "auto") for size in ("1M", "256M")),
    ],
    "full": [
        *(Step("latency", "message", size) for size in ("8", "512", "4K", "32K", "256K", "1M")),
        Step("latency", "barrier", ""),
        *(Step("bandwidth", "put,get", size) for size in ("64K", "256K", "1M", "4M", "16M", "64M", "256M")),
        *(
            Step("collectives", operation, size, ON_STREAMS, "auto")
            for operation in ("allreduce", "allgather", "alltoall", "reduce_scatter", "broadcast")
            for size in ("8", "64K", "1M", "256M")
        ),
    ],
    # Seed 002, whose baseline is MPI's; beside it staging in chunks that overlap.
    "table-002": [
        Step(command, operation, size, "device/peer/signal,mpi/staged,host/staged/pipelined", "auto")
        for command, operation, sizes in (
            ("bandwidth", "put", ("64K", "1M", "16M")),
            ("latency", "message", ("8", "512", "4K", "32K", "256K")),
            ("latency", "barrier", ("",)),
        )
        for size in sizes
    ],
}
# Seed 002, conclusion: energy saved in percent, speed-up; average watts of CPU, GPU and DRAM, direct and by MPI.
OF_2014 = {
    "put": (50.67, 2.42, (26.86, 47.05, 3.99), (43.36, 48.86, 10.11)),
    "message": (85.01, 6.96, (29.95, 52.58, 5.26), (43.25, 48.45, 8.07)),
    "barrier": (67.31, 2.28, (18.76, 56.68, 4.33), (39.97, 51.18, 8.48)),
}
DIRECT, BASELINES = "device/peer/signal", ("mpi/staged", "host/staged/pipelined")


def energy(
    call: Call,
    view: ResultView,
    ranks: options.RankCount = 2,
    threads: options.Threads = False,
    device: options.Device = "auto",
) -> None:
    if nccl := nccl_library():
        os.environ.setdefault("BEELINE_NCCL", nccl)
    steps = SETS[call.values["set"]]
    over = {one["name"] for one in view.earlier() if one.get("event") == STEP}
    for number, step in enumerate(steps, 1):
        if not step.methods_here():
            continue
        if step.name in over:
            view.show_line(f"{step.name}: measured by an earlier run")
            continue
        asked = call_of(*step.arguments(call.values["window"]))
        label = f"{number}/{len(steps)} {step.name}"
        view.run(start_command(World(ranks, threads, device), asked.arguments, step.launcher), partial(label_of, label))
        view.add({"event": STEP, "name": step.name})


def label_of(label: str, progress: Event) -> str:
    return f"{label} {progress.get('method', '')}"


def is_energy(result: Event) -> bool:
    return str(result.get("unit")).startswith("nJ")


def render(results: list[Event]) -> RenderableType:
    """A table for each operation and size; below, what is not metered."""
    metered = [one for one in measured_of(results) if is_energy(one)]
    kinds = dict.fromkeys((str(one["operation"]), one["bytes"]) for one in metered)
    parts: list[RenderableType] = [
        table([one for one in metered if (one["operation"], one["bytes"]) == kind]) for kind in kinds
    ]
    parts += table_of_002(metered)
    missing = [one for one in results if one.get("median") is None]
    return Group(*parts, *not_measured(missing))


def table(results: list[Event]) -> RenderableType:
    first = results[0]
    size = f" of {format_bytes(first['bytes'])}" if first["bytes"] else ""
    columns = (
        f">{first['unit']}",
        ">above idle",
        ">GPU W",
        ">CPU W",
        ">DRAM W",
        ">CPU cores",
        ">spread %",
        ">of the best %",
    )
    best = min(one["median"] for one in results)
    shown = new_table(f"{first['operation']}{size}, {first['ranks']} ranks", "method", *columns)
    for one in results:
        parts = one["energy"]["components"]
        above = [part["joules_above_idle"] for part in parts.values() if part["joules_above_idle"] is not None]
        watts = [parts[kind]["watts"] for kind in ("gpu", "cpu", "dram")]
        numbers = [one["median"], 1e9 * sum(above) if above else None, *watts, one["energy"]["cpu_cores"]]
        shares = [one["energy"]["spread"], one["median"] / best]
        shown.add_row(one["method"], *map(format_number, numbers), *map(format_percent, shares))
    return shown


def table_of_002(results: list[Event]) -> list[RenderableType]:
    """What direct communication saves against the baselines, where both were metered, beside the figures of 2014.

    Savings and speed-ups are computed for each size, then averaged; so is power.
    """
    shown = new_table(
        "Direct against staged, as seed 002", "operation", "against", ">energy\nsaved, %", ">speed-\nup",
        ">W: CPU,\nGPU, DRAM", ">against", ">2014:\nsaved, %", ">speed-\nup", ">W", ">against",
    )  # fmt: skip
    for operation, (saved, speed_up, watts, watts_against) in OF_2014.items():
        mine = {(one["method"], one["bytes"]): one for one in results if one["operation"] == operation}
        for baseline in BASELINES:
            sizes = [size for method, size in mine if method == DIRECT and (baseline, size) in mine]
            if not sizes:
                continue
            pairs = [(mine[DIRECT, size], mine[baseline, size]) for size in sizes]
            savings = mean([1 - direct["median"] / other["median"] for direct, other in pairs])
            quicker = mean([other["energy"]["seconds"] / direct["energy"]["seconds"] for direct, other in pairs])
            powers = [average_watts([pair[which] for pair in pairs]) for which in (0, 1)]
            then = (saved, speed_up, join_watts(watts), join_watts(watts_against)) if baseline == "mpi/staged" else ()
            cells = [format_percent(savings), format_number(quicker), *powers, *map(str, then)]
            shown.add_row(operation, baseline, *cells)
    return [shown] if shown.row_count else []


def average_watts(results: list[Event]) -> str:
    def average(kind: str) -> float | None:
        watts = [one["energy"]["components"][kind]["watts"] for one in results]
        return None if None in watts else mean(watts)

    return join_watts([average(kind) for kind in ("cpu", "gpu", "dram")])


def join_watts(watts: Iterable[float | None]) -> str:
    return " ".join(format_number(each) for each in watts)
