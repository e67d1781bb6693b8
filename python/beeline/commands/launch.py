# SPDX-License-Identifier: Apache-2.0
"""`beeline bench launch`: what launching costs the host, in time and in energy, against the number of iterations."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType

from beeline import options
from beeline.applications import Study, list_methods, raise_failures, run_methods
from beeline.commands.himeno import PROGRAMS
from beeline.commands.steps import run_steps
from beeline.description import Call
from beeline.display import (
    MISSING,
    ResultView,
    explained,
    format_figure,
    format_number,
    format_percent,
    new_table,
    not_measured,
)
from beeline.fitted_table import FittedTable
from beeline.jobs import Event
from beeline.programs import World, given
from beeline.ranks.records import result, unavailable

# The application's methods: the host launches each kernel, or a graph of all; a kernel launches kernels; one kernel is
# all.
METHODS = ("kernel_by_kernel", "one_graph", "device_launched", "persistent")
GPU_SIZE, HOST_SIZE = "512x512x256", "XS"  # defaults: some seconds for each method


def launch(call: Call, view: ResultView, device: options.Device = None) -> None:
    iterations, world = call.values["iterations"], World(1, device=device)
    listed = list_methods(Study(PROGRAMS, [1], [], world, lambda _: []), 1, view)
    known = {method: listed.get(method, {"reason": "the program does not list it"}) for method in METHODS}
    size = call.values["size"] or (GPU_SIZE if known["one_graph"].get("available") else HOST_SIZE)
    fixed = ["--size", size, "--energy", str(call.values["window"] / 1000)]
    fixed += given("no-verify", call.values["no-verify"])
    names = [method for method in METHODS if known[method].get("available")]

    def say_what_is_lacking(_: str) -> bool:
        for method in METHODS:
            if method not in names:
                view.add(result("launch", method, 0, 1) | unavailable(str(known[method].get("reason"))))
        return True

    def measure(count: int, label: str) -> bool:
        arguments = [*fixed, "--iterations", str(count)]
        study = Study(PROGRAMS, [1], names, world, lambda _: arguments, f"{label} ")
        raise_failures(run_methods(study, 1, view), view)
        return True

    asked = {"window": call.values["window"], "device": device or "auto", "no-verify": call.values["no-verify"]}
    steps = {f"launch {size} {count}": partial(measure, count) for count in iterations}
    run_steps(view, {"launch methods": say_what_is_lacking} | steps, asked)


def order_of(result: Event) -> int:
    """The position in METHODS; a record may hold other methods."""
    return METHODS.index(result["method"]) if result["method"] in METHODS else len(METHODS)


def render(results: list[Event]) -> RenderableType:
    runs = [one for one in results if one.get("app") == "himeno"]
    return Group(*([table(runs)] if runs else []), *not_measured(results))


def table(results: list[Event]) -> FittedTable:
    """Idle: the rest of a run's time, in which the CPU may sleep; a host rank's CPU computes in it. Joules are of the
    components that are known."""
    columns = (
        ">iterations", ">ms", ">launching ms", ">idle, %", ">MFLOP/s", ">MFLOP/J", ">CPU cores", ">CPU W", ">GPU W",
        ">DRAM W",
    )  # fmt: skip
    first = results[0]
    size = "×".join(map(str, first["size"]))
    shown = new_table(f"Himeno {size} on {first['device']}, two kernels an iteration", "method", *columns, keys=2)
    for one in sorted(results, key=order_of):
        launching, energy = one.get("launch_seconds"), one.get("energy") or {}
        parts = energy.get("components", {})
        watts = [parts[kind]["watts"] if kind in parts else None for kind in ("cpu", "gpu", "dram")]
        milliseconds = MISSING if launching is None else format_number(1e3 * launching)
        shown.add_row(
            one["method"], format_number(one["iterations"]), format_figure(1e3 * one["seconds"], one), milliseconds,
            format_percent(launching and energy.get("gpus") and 1 - launching / one["seconds"]),
            format_figure(one["mflops"], one),
            *map(format_number, (one.get("mflop_per_joule"), energy.get("cpu_cores"), *watts)),
        )  # fmt: skip
    notes = ["times, watts: lower is better; MFLOP/s, MFLOP/J, idle: higher"]
    if not any((one.get("energy") or {}).get("gpus") for one in results):
        notes.append("idle: not on a host rank, whose CPU computes while it does not launch")
    return explained(shown, *notes)
