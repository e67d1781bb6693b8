# SPDX-License-Identifier: Apache-2.0
"""`beeline bench calls`: calls that block, by the program and then from Python, beside MPI; torch's eager ones."""

from __future__ import annotations

from rich.console import Group, RenderableType

from beeline.commands import bench
from beeline.commands.collectives import Launcher, label_of, start_command, with_launcher
from beeline.description import Call
from beeline.display import (
    VERIFIED,
    Cell,
    ResultView,
    field,
    figure,
    format_bytes,
    format_verified,
    measured_of,
    result_table,
)
from beeline.jobs import Event
from beeline.on_ranks import check_library, run_on_ranks
from beeline.programs import CliError, World

RANKS = "beeline.ranks.python_calls"
IN_PYTHON = ("python/", "mpi4py/", "torch_eager/")


def calls(call: Call, view: ResultView, world: World, launcher: Launcher = "auto") -> None:
    view.run(start_command(world, call.arguments, launcher), label_of)
    if not any(name.startswith(IN_PYTHON) for name in call.values["methods"]):
        return
    try:
        check_library()
        if world.threads:
            raise CliError("ranks are threads, and Python runs one thread at a time: leave --threads out")
    except CliError as reason:
        view.show_line(f"no calls from Python are measured: {reason}")
        return
    run_on_ranks(with_launcher(world, launcher), RANKS, call, view)


def render(results: list[Event]) -> RenderableType:
    """Times by operation, method and size; below, where the time of torch's calls goes."""
    eager = [one for one in measured_of(results) if "call_us" in one]
    columns: dict[str, Cell] = {
        "operation": field("operation"), "method": field("method"), ">bytes": field("bytes", format_bytes),
        ">back to back": figure("median"), ">one call": field("single_us"), ">call": field("call_us"),
        ">launch": field("launch_us"), ">transfer": field("transfer_us"), ">wait": field("wait_us"),
        ">first": field("first_us"), "transfer by": field("last_transfer"),
        VERIFIED: field("verified", format_verified),
    }  # fmt: skip
    title = "where the time of torch's calls goes, us (lower is better)"
    parts = [result_table(title, columns, eager, keys=3)] if eager else []
    return Group(bench.render(results), *parts)
