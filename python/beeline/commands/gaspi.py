# SPDX-License-Identifier: Apache-2.0
"""`beeline bench gaspi`: GASPI's functions beside Beeline's own calls, a bare flag, MPI, and GPI-2 if it is here."""

from __future__ import annotations

import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from beeline import options
from beeline.commands import bench
from beeline.description import PROGRAM, Call
from beeline.display import ResultView, explained, format_bytes, format_figure, format_number, measured_of, new_table
from beeline.jobs import Event, running
from beeline.programs import CliError, World, find_program, launch_command
from beeline.ranks.records import result, unavailable

SUMMARY = (
    "GASPI's functions on host memory and GPU segments, beside Beeline's own calls, a bare flag, MPI and GPI-2: "
    "messages, writes, the processor's overhead, notifications, barrier, all-reduce"
)
GASPI, OWN = "beeline-bench-gaspi", "beeline-bench-gaspi-own"
SOURCE = Path(__file__).resolve().parents[3] / "bench" / "gaspi" / "standard.c"
# GPI-2's own launcher needs ssh, so Beeline's starts the ranks and sets the variables that GPI-2's would.
START = (
    'export GASPI_MASTER="$1" GASPI_MFILE="$2" GASPI_NRANKS="$BEELINE_SIZE" GASPI_RANK="$BEELINE_RANK" '
    'GASPI_SOCKET="$BEELINE_RANK"; shift 2; exec "$@"'
)
# The comparisons: operation, GASPI's method, and its reference, at the smallest size that both have.
COMPARED = (
    ("gaspi_message", "gaspi/write_notify", "bare/flag"),
    ("gaspi_message", "gaspi/write_notify", "c/put_signal"),
    ("gaspi_put", "gaspi/write", "c/put"),
    ("gaspi_barrier", "gaspi/barrier", "c/barrier"),
    ("gaspi_allreduce", "gaspi/allreduce", "c/allreduce"),
)


def gaspi(
    call: Call,
    view: ResultView,
    world: World,
    sizes: Annotated[str, typer.Option("--sizes", metavar="BYTES,..", help="Sizes of writes.")] = "8,4K,64K,1M",
    gpi2: Annotated[
        Path | None,
        typer.Option("--gpi2", metavar="FOLDER", help="Also measure GPI-2, which is installed in this folder."),
    ] = None,
    turns: Annotated[
        int,
        typer.Option(
            "--turns", min=1, max=100, help="Runs of GASPI and of what it is compared with, which take turns on CPUs."
        ),
    ] = 3,
) -> None:
    if world.threads:
        raise CliError("ranks of GASPI are processes: leave --threads out")
    in_bytes = ",".join(map(str, options.parse_sizes(sizes, "--sizes")))
    has_gpus = show_environment(call, view, world)
    on_cpus = replace(world, device="cpu")
    compared = [] if (world.split_nodes or 1) > 1 else [launch_command(on_cpus, find_program(OWN), [in_bytes])]
    of_gaspi = launch_command(on_cpus, find_program(GASPI), ["gaspi", "host", in_bytes])
    for one in in_turns([*compared, of_gaspi], turns, view):
        view.add(one)
    if has_gpus:
        view.run(launch_command(world, find_program(GASPI), ["gaspi", "gpu", in_bytes]), lambda _: "GPU segments")
    measure_mpi(in_bytes, view, world)
    measure_gpi2(gpi2, in_bytes, view, on_cpus)


def show_environment(call: Call, view: ResultView, world: World) -> bool:
    """The record's first line, as beeline-bench prints it for commands that are measured elsewhere. Returns whether all
    ranks have GPUs."""
    devices: list[Event] = []
    with running(launch_command(world, find_program(PROGRAM), ["launch"]), view.show_line) as events:
        for event in events:
            if event.get("event") == "environment":
                view.add(event | {"arguments": ["beeline", *map(without_folder, sys.argv[1:])]})
                devices = event.get("devices") or []
    return bool(devices) and all(one.get("kind") != "host" for one in devices)


def without_folder(argument: str) -> str:
    return Path(argument).name if argument.startswith("/") else argument


def in_turns(commands: list[list[str]], turns: int, view: ResultView) -> list[Event]:
    """The results of all programs, each run several times, with the samples of all runs: between two runs of a program
    the machine's speed may change."""
    merged: dict[tuple[str, str, int], Event] = {}
    for turn in range(turns):
        for number, command in enumerate(commands):
            view.set_progress("gaspi on CPUs", turn * len(commands) + number, turns * len(commands))
            with running(command, view.show_line) as events:
                for event in events:
                    key = (event["operation"], event["method"], event["bytes"])
                    before = merged.get(key)
                    merged[key] = event if before is None else with_samples(before, event)
    return list(merged.values())


def with_samples(first: Event, second: Event) -> Event:
    samples = [*first["samples"], *second["samples"]]
    middle = statistics.median(samples)
    deviation = statistics.median(abs(one - middle) for one in samples) / middle if middle else 0
    verified = first["verified"] and second["verified"]
    return first | {"samples": samples, "median": middle, "relative_deviation": deviation, "verified": verified}


def measure_mpi(sizes: str, view: ResultView, world: World) -> None:
    """Messages that the CPU stages and MPI sends, by beeline-bench under mpirun."""
    arguments = ["latency", "--operations", "message", "--methods", "mpi/staged", "--sizes", sizes]
    try:
        command = launch_command(replace(world, mpirun=True), find_program(PROGRAM), arguments)
        with running(command, view.show_line) as events:
            for event in events:
                if event.get("event") == "result":
                    view.add(event | {"operation": "gaspi_message"})
    except CliError as reason:
        view.add(result("gaspi_message", "mpi/staged", 0, world.ranks) | unavailable(str(reason)))


def measure_gpi2(folder: Path | None, sizes: str, view: ResultView, world: World) -> None:
    """The source that measures Beeline's GASPI, compiled with GPI-2."""
    with tempfile.TemporaryDirectory() as temporary:
        hosts, program = Path(temporary) / "hosts", Path(temporary) / "gpi2"
        hosts.write_text(f"{socket.gethostname()}\n" * world.ranks)
        try:
            compile_with_gpi2(folder, program)
            arguments = ["-c", START, "sh", socket.gethostname(), str(hosts), str(program), "gpi2", "host", sizes]
            view.run(launch_command(world, "sh", arguments), lambda _: "GPI-2")
        except CliError as reason:
            view.add(result("gaspi_message", "gpi2/write_notify", 0, world.ranks) | unavailable(str(reason)))


def compile_with_gpi2(folder: Path | None, program: Path) -> None:
    """Raises CliError with the reason if that is not possible."""
    if folder is None:
        raise CliError("--gpi2 says where GPI-2 is installed")
    compiler = shutil.which("cc")
    if compiler is None or not SOURCE.exists():
        raise CliError("GPI-2 is measured from a checkout, with a C compiler")
    libraries = [one for one in (folder / "lib64", folder / "lib") if one.is_dir()]
    searched = [text for one in libraries for text in (f"-L{one}", f"-Wl,-rpath,{one}")]
    command = [compiler, "-O2", "-std=gnu99", f"-I{folder / 'include'}", str(SOURCE), *searched, "-lGPI2", "-lpthread"]
    done = subprocess.run([*command, "-lm", "-o", str(program)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.splitlines() or ["the compiler failed"])[0]
        raise CliError(f"no program with GPI-2 in {folder}: {reason}")


def render(results: list[Event]) -> RenderableType:
    """A table for each operation; GASPI beside what it is compared with; below, what this machine lacks."""
    compared = comparisons([one for one in measured_of(results) if one.get("settings", {}).get("memory") != "gpu"])
    if not compared:
        return bench.render(results)
    table = new_table(
        "GASPI beside other ways, us", "operation", "bytes", "GASPI", "beside", ">us", ">beside us", ">ratio"
    )
    for one, other in compared:
        table.add_row(
            one["operation"].removeprefix("gaspi_"), format_bytes(one["bytes"]), one["method"], other["method"],
            format_figure(one["median"], one), format_figure(other["median"], other),
            format_number(one["median"] / other["median"] if other["median"] else None, 3),
        )  # fmt: skip
    return Group(bench.render(results), explained(table))


def comparisons(results: list[Event]) -> list[tuple[Event, Event]]:
    found = []
    for operation, method, beside in COMPARED:
        mine = [one for one in results if one["operation"] == operation and one["method"] == method]
        others = {one["bytes"]: one for one in results if one["operation"] == operation and one["method"] == beside}
        found += [(one, others[one["bytes"]]) for one in mine if one["bytes"] in others][:1]
    return found
