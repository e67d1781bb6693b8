# SPDX-License-Identifier: Apache-2.0
"""`beeline bench files`: files to memory and back, beside a bare io_uring loop, pinned copies, fio and KvikIO."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from beeline import options
from beeline.commands.gaspi import show_environment, with_samples
from beeline.description import Call
from beeline.display import ResultView, explained, format_bytes, format_figure, measured_of, new_table, not_measured
from beeline.fitted_table import FittedTable
from beeline.jobs import Event, running
from beeline.programs import CliError, World, find_program
from beeline.ranks.records import unavailable

SUMMARY = (
    "files to memory of the host and of a device, and back (beeline::hpe): the variants of seed 001, beside a bare "
    "io_uring loop, pinned copies, fio and KvikIO"
)
OF_FILES = "beeline-bench-files"
KVIKIO = Path(__file__).resolve().parents[3] / "bench" / "peers" / "kvikio" / "measure.py"
MEMORIES = ("host", "device")
STATES = ("cold", "cached", "existing", "new", "durable")
OWN = ("automatic", "user", "pinned", "double_buffered", "direct")
BARE = ("io_uring", "io_uring_buffers", "io_uring_small_pages", "pinned_copy")
METHODS = (*(f"hpe/{one}" for one in OWN), *(f"bare/{one}" for one in BARE), "kvikio", "fio")
# What fio does for each state of the file.
FIO = {"cold": "read", "existing": "write"}


def files(
    call: Call,
    view: ResultView,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="BYTES,..", help="Lengths of files, multiples of 4K.")
    ] = "1M,16M,256M",
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="FOLDER", help="Where the files are.", show_default="of temporary files"),
    ] = None,
    memory: Annotated[str, typer.Option("--memory", metavar="KIND,..", help="Some of host, device.")] = "host,device",
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Samples of a method in each turn.")] = 3,
    turns: Annotated[
        int, typer.Option("--turns", min=1, max=100, help="Runs of the program and of its peers, which take turns.")
    ] = 3,
    states: Annotated[
        str, typer.Option("--states", metavar="STATE,..", help=f"Of the file: some of {', '.join(STATES)}.")
    ] = ",".join(STATES),
    methods: Annotated[
        str, typer.Option("--methods", metavar="METHOD,..", help=f"Some of {', '.join(METHODS)}.")
    ] = ",".join(METHODS),
) -> None:
    kinds = some_of(MEMORIES, memory, "--memory")
    chosen = Chosen(rounds, some_of(STATES, states, "--states"), some_of(METHODS, methods, "--methods"))
    lengths = options.parse_sizes(sizes, "--sizes")
    for length in lengths:
        if length % 4096:
            raise options.refusal("--sizes", f"{length} is no multiple of 4096")
    with new_folder(folder) as inside:
        show_environment(call, view, World(2, threads=True))
        found: dict[str, Event] = {}
        try:
            for turn in range(turns):
                for number, kind in enumerate(kinds):
                    view.set_progress(f"files, memory of the {kind}", turn * len(kinds) + number, turns * len(kinds))
                    for one in run_programs(Path(inside), kind, lengths, chosen, view):
                        merge(found, one)
        finally:  # also what was measured before a signal ended the command
            for one in found.values():
                view.add(one)


def new_folder(inside: Path | None) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(dir=inside)
    except OSError as error:
        raise options.refusal("--folder", f"no folder can be made in {inside}: {error.strerror}") from error


@dataclass(frozen=True)
class Chosen:
    """What is measured of each length and memory."""

    rounds: int
    states: list[str]
    methods: list[str]


def some_of(valid: tuple[str, ...], text: str, option: str) -> list[str]:
    names = [item.strip() for item in text.split(",")]
    for name in names:
        if name not in valid:
            raise options.refusal(option, f"{name!r}; valid: {', '.join(valid)}")
    return names


def run_programs(folder: Path, kind: str, lengths: list[int], chosen: Chosen, view: ResultView) -> Iterator[Event]:
    for length in lengths:  # all methods with one length after the other, so that an early end leaves comparisons
        arguments = [str(folder), kind, str(length), str(chosen.rounds), ",".join(chosen.states)]
        yield from lines_of([str(find_program(OF_FILES)), *arguments, ",".join(chosen.methods)], view)
        if "kvikio" in chosen.methods:
            yield from kvikio(kind, arguments, view)
        if kind == "host" and "fio" in chosen.methods:
            yield from fio(folder, length, chosen)


def kvikio(kind: str, arguments: list[str], view: ResultView) -> Iterator[Event]:
    try:
        if not KVIKIO.exists():
            raise CliError("KvikIO is measured from a checkout")
        yield from lines_of([sys.executable, str(KVIKIO), *arguments], view)
    except CliError as reason:
        yield lacking("file_read", "kvikio", kind, str(reason))


def lines_of(command: list[str], view: ResultView) -> Iterator[Event]:
    with running(command, view.show_line) as events:
        yield from events


def lacking(operation: str, method: str, kind: str, reason: str) -> Event:
    one = {"event": "result", "schema_version": 1, "operation": operation, "method": method, "bytes": 0, "ranks": 1}
    return one | unavailable(reason) | {"settings": {"memory": kind}}


def fio(folder: Path, length: int, chosen: Chosen) -> Iterator[Event]:
    """What fio measures with the same blocks and calls in flight, and buffers of its own in large pages."""
    program = shutil.which("fio")
    if program is None:
        yield lacking("file_read", "fio", "host", "fio is not installed")
        return
    block = min(max(1 << (length // 8).bit_length() - 1, 256 << 10), 1 << 20)
    for state, way in FIO.items():
        if state not in chosen.states:
            continue
        samples = [run_fio(program, folder, way, length, block) for _ in range(chosen.rounds)]
        first: Event = {
            "event": "result", "schema_version": 1, "operation": f"file_{way}", "method": "fio", "bytes": length,
            "ranks": 1, "available": True, "reason": None, "unit": "GB/s", "verified": None,
            "settings": {"memory": "host", "file": state, "block_bytes": block},
        }  # fmt: skip
        yield with_samples(first | {"samples": samples}, {"samples": [], "verified": None})


def run_fio(program: str, folder: Path, way: str, length: int, block: int) -> float:
    """GB/s."""
    command = [
        program, "--name=file", f"--filename={folder / 'fio'}", f"--rw={way}", f"--size={length}", f"--bs={block}",
        "--ioengine=io_uring", "--iodepth=4", "--direct=1", "--output-format=json",
    ]  # fmt: skip
    large_pages = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # its buffers are of malloc
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=large_pages)
    if done.returncode != 0:
        raise CliError(f"fio failed: {(done.stderr or done.stdout).strip()[-200:]}")
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0][way]
    return length / (job["runtime"] * 1e6) if job["runtime"] else job["bw_bytes"] / 1e9


def merge(found: dict[str, Event], one: Event) -> None:
    """Joins the samples of all turns: between two runs the machine's speed may change."""
    key = json.dumps([one["operation"], one["method"], one["bytes"], one["settings"]])
    if key in found and one["available"]:
        found[key] = with_samples(found[key], one)
    else:
        found.setdefault(key, one)


def render(results: list[Event]) -> RenderableType:
    measured = measured_of(results)
    groups = dict.fromkeys((one["settings"]["memory"], one["operation"]) for one in measured)
    tables = [explained(table_of(memory, operation, measured)) for memory, operation in groups]
    return Group(*tables, *not_measured(results))


def table_of(memory: str, operation: str, results: list[Event]) -> FittedTable:
    """States of the file and methods down, sizes across."""
    chosen = [one for one in results if (one["settings"]["memory"], one["operation"]) == (memory, operation)]
    sizes = sorted({one["bytes"] for one in chosen})
    table = new_table(
        f"{operation.replace('_', ' ')}, memory of the {memory}, GB/s", "file", "method",
        *(f">{format_bytes(size)}" for size in sizes),
    )  # fmt: skip
    rows: dict[tuple[str, str], dict[int, Event]] = {}
    for one in chosen:
        rows.setdefault((one["settings"]["file"], one["method"]), {})[one["bytes"]] = one
    for (state, method), by_size in rows.items():
        figures = (by_size.get(size) for size in sizes)
        table.add_row(state, method, *(format_figure(one["median"], one) if one else "" for one in figures))
    return table
