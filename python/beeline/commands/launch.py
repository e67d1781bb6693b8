# SPDX-License-Identifier: Apache-2.0
"""`beeline bench launch`: what launching costs the host, in time and in energy, against the number of iterations."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.table import Table

from beeline import options
from beeline.applications import Study, list_methods, raise_failures, run_methods
from beeline.commands.himeno import PROGRAMS
from beeline.commands.steps import run_steps
from beeline.description import Call
from beeline.display import MISSING, ResultView, format_number, format_percent, new_table, not_measured
from beeline.jobs import Event
from beeline.programs import World, given
from beeline.ranks.records import result, unavailable

# The application's: the host launches each kernel, a graph of all; a kernel launches them, one kernel is all.
METHODS = ("kernel_by_kernel", "one_graph", "device_launched", "persistent")


def launch(call: Call, view: ResultView, device: options.Device = None) -> None:
    size, iterations, world = call.values["size"], call.values["iterations"], World(1, device=device)
    fixed = ["--size", size, "--energy", str(call.values["window"] / 1000)]
    fixed += given("no-verify", call.values["no-verify"])
    known = list_methods(Study(PROGRAMS, [1], [], world, lambda _: []), 1, view)
    names = [method for method in METHODS if known[method].get("available")]

    def say_what_is_lacking(_: str) -> None:
        for method in METHODS:
            if method not in names:
                view.add(result("launch", method, 0, 1) | unavailable(str(known[method].get("reason"))))

    def measure(count: int, label: str) -> None:
        arguments = [*fixed, "--iterations", str(count)]
        study = Study(PROGRAMS, [1], names, world, lambda _: arguments, f"{label} ")
        raise_failures(run_methods(study, 1, view), view)

    asked = {"window": call.values["window"], "device": device or "auto", "no-verify": call.values["no-verify"]}
    steps = {f"launch {size} {count}": partial(measure, count) for count in iterations}
    run_steps(view, {"launch methods": say_what_is_lacking} | steps, asked)


def render(results: list[Event]) -> RenderableType:
    runs = [one for one in results if one.get("app")]
    lacking = [one for one in results if one.get("available") is False]
    return Group(*([table(runs)] if runs else []), *not_measured(lacking))


def table(results: list[Event]) -> Table:
    """Idle: the rest of a run's time, in which the CPU may sleep; a host rank's CPU computes in it. Joules are of the
    components that are known."""
    columns = (
        ">iterations", ">ms", ">launching ms", ">idle, %", ">MFLOP/s", ">MFLOP/J", ">CPU cores", ">CPU W", ">GPU W",
        ">DRAM W",
    )  # fmt: skip
    first = results[0]
    size = "×".join(map(str, first["size"]))
    shown = new_table(f"Himeno {size} on {first['device']}, two kernels an iteration", "method", *columns)
    for one in sorted(results, key=lambda one: METHODS.index(one["method"])):
        launching, energy = one.get("launch_seconds"), one.get("energy") or {}
        parts = energy.get("components", {})
        watts = [parts[kind]["watts"] if kind in parts else None for kind in ("cpu", "gpu", "dram")]
        milliseconds = MISSING if launching is None else format_number(1e3 * launching)
        shown.add_row(
            one["method"], format_number(one["iterations"]), format_number(1e3 * one["seconds"]), milliseconds,
            format_percent(launching and energy.get("gpus") and 1 - launching / one["seconds"]),
            *map(format_number, (one["mflops"], one.get("mflop_per_joule"), energy.get("cpu_cores"), *watts)),
        )  # fmt: skip
    if not any((one.get("energy") or {}).get("gpus") for one in results):
        shown.caption = "idle: not on a host rank, whose CPU computes while it does not launch"
    return shown
