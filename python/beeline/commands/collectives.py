# SPDX-License-Identifier: Apache-2.0
"""`beeline bench collectives`: collectives beside the peers that this machine has."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Group, RenderableType

from beeline import options
from beeline.commands import bench
from beeline.description import PROGRAM, Call
from beeline.display import (
    MISSING,
    ResultView,
    explained,
    format_bytes,
    format_figure,
    measured_of,
    new_table,
    not_measured,
)
from beeline.jobs import Event
from beeline.programs import CliError, World, find_program, launch_command
from beeline.ranks.records import result, unavailable

TORCH_PEER = "beeline.torch_peer"
MPI_MODULE = "beeline-bench-mpi.so"  # next to beeline-bench, if that was built with MPI

Launcher = Annotated[
    Literal["auto", "beeline", "mpirun"],
    typer.Option(
        "--launcher", help="What starts the ranks: MPI is measured only under mpirun; auto takes mpirun where it can."
    ),
]


def collectives(call: Call, view: ResultView, world: World, launcher: Launcher = "auto") -> None:
    if nccl := nccl_library():
        os.environ.setdefault("BEELINE_NCCL", nccl)
    command = start_command(world, call.arguments, launcher)
    if not any(name.startswith("torch/") for name in call.values["methods"]):
        view.run(command, label_of)
        return
    with view.results_kept_back():
        measure_torch(view, kinds_of(view.run(command, label_of)), call.values["type"], world.device)
        complete_baselines(view.results)


def label_of(progress: Event) -> str:
    return f"{progress.get('operation', '')} {progress.get('bytes', '')}"


def kinds_of(events: list[Event]) -> list[str]:
    """The kinds of the ranks' devices in the program's environment record."""
    devices = [one.get("devices", []) for one in events if one.get("event") == "environment"]
    return [str(one.get("kind")) for one in (devices[-1] if devices else []) if isinstance(one, dict)]


def nccl_library() -> str | None:
    """The library of the wheel nvidia-nccl-cu13, which torch brings along."""
    try:
        found = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        return None
    folders = [] if found is None else found.submodule_search_locations or []
    paths = [Path(folder) / "lib" / "libnccl.so.2" for folder in folders]
    return next((str(path) for path in paths if path.exists()), None)


def start_command(world: World, arguments: list[str], launcher: Launcher) -> list[str]:
    return launch_command(with_launcher(world, launcher), find_program(PROGRAM), arguments)


def with_launcher(world: World, launcher: Launcher) -> World:
    if launcher == "mpirun" and world.threads:
        raise options.refusal("--launcher", "mpirun starts processes: leave --threads or --launcher mpirun out")
    usable = (
        shutil.which("mpirun") is not None
        and not world.threads
        and (find_program(PROGRAM).parent / MPI_MODULE).exists()
    )
    by_mpirun = launcher == "mpirun" or (launcher == "auto" and usable)
    return replace(world, mpirun=by_mpirun)


def measure_torch(view: ResultView, kinds: list[str], element_type: str, device: str) -> None:
    """The same sizes by torch's symmetric memory, in a program of its own, on the same GPUs right behind."""
    measured = [one for one in view.results if one.get("operation") == "allreduce" and one.get("bytes")]
    sizes = sorted({int(one["bytes"]) for one in measured})
    if not sizes:
        return
    reason = None
    if not kinds or any(kind != "gpu" for kind in kinds):
        reason = "torch's symmetric memory is for GPUs"
    elif importlib.util.find_spec("torch") is None:
        reason = "torch is not installed"
    if reason is not None:
        for size in sizes:
            view.add(lacking("allreduce", "torch/symmetric_memory", size, int(measured[0]["ranks"]), reason))
        return
    gpus = [] if not device.startswith("cuda:") else ["--gpus", device]
    arguments = ["--ranks", str(len(kinds)), "--type", element_type, "--sizes", ",".join(map(str, sizes)), *gpus]
    try:
        view.run([sys.executable, "-m", TORCH_PEER, *arguments], label_of)
    except CliError as error:  # the failure of one peer leaves the others' results as they are
        view.show_line(f"torch: {error}")
        view.add(lacking("allreduce", "torch/symmetric_memory", 0, len(kinds), str(error.args[0]).split(":")[0]))


def complete_baselines(results: list[Event]) -> None:
    """Compares with torch's peers, too: beeline-bench knows only the peers that it measured."""
    measured = measured_of(results)
    for one in measured:
        here = [other for other in measured if all(other[key] == one[key] for key in ("operation", "bytes"))]
        peer = None if one.get("peer_of") else best(rivals_of(here, control_of(one)))
        if peer is not None and str(peer["method"]).startswith("torch/"):
            one["baseline"], one["ratio_to_baseline"] = peer["method"], one["median"] / peer["median"]


def lacking(operation: str, method: str, size: int, ranks: int, reason: str) -> Event:
    """The record of a peer that is absent, with the same fields as the program's records."""
    return result(operation, method, size, ranks) | unavailable(reason)


def render(results: list[Event]) -> RenderableType:
    """Tables for each operation: times by method and size, and how they compare with the best peer."""
    measured = measured_of(results)
    parts: list[RenderableType] = []
    for operation in dict.fromkeys(str(one.get("operation")) for one in measured):
        mine = [one for one in measured if str(one.get("operation")) == operation]
        parts += [*bench.tables_of(mine, bench.operation_table), summary_table(operation, mine)]
        parts += [blocks_table(operation, sweeps, mine)] if (sweeps := sweeps_of(mine)) else []
    return Group(*parts, *not_measured(results))


def control_of(result: Event) -> str:
    return str(result.get("settings", {}).get("control", ""))


def is_peer(result: Event) -> bool:
    return result.get("peer_of") is not None and not str(result.get("method")).startswith("bare/")


def best(results: list[Event]) -> Event | None:
    return min(results, key=lambda one: float(one["median"]), default=None)


def rivals_of(results: list[Event], control: str) -> list[Event]:
    """Peers with the same control. A peer that blocks the host is compared with calls from the host, or with all."""
    peers = [one for one in results if is_peer(one)]
    alike = [one for one in peers if control_of(one) == control]
    blocking = [one for one in peers if control_of(one) == "host"]
    on_host = all(control_of(one) == "host" for one in peers)
    return alike + (blocking if on_host or control == "stream" else [])


def bare_copies_of(results: list[Event], size: int) -> Event | None:
    """The bare copies of the operation, if they were measured, by the fastest plan."""
    return best([one for one in results if one.get("method") == "bare/copies" and one["bytes"] == size])


def summary_table(operation: str, results: list[Event]) -> RenderableType:
    """For each way of calling and size: Beeline's choice, its best, the best peer, and the ratio of the choice to it
    (of the best where there is no choice); where bare copies were measured, their time as a share of the best's."""
    names = [">bytes", ">automatic us", ">best peer us", "peer", ">ratio", ">bus GB/s", ">best us", "algorithm"]
    has_copies = any(one.get("method") == "bare/copies" for one in results)
    names += [">of bare copies"] * has_copies
    table = new_table(f"{operation}: beside the best peer", "called", *names, keys=2)
    own = [one for one in results if one.get("peer_of") is None]
    for control in dict.fromkeys(control_of(one) for one in own):
        for size in dict.fromkeys(one["bytes"] for one in own):
            here = [one for one in own if control_of(one) == control and one["bytes"] == size]
            chosen = best([one for one in here if str(one.get("method")).endswith("/automatic")])
            fastest = best(here)
            if fastest is None:
                continue
            peer = best([one for one in rivals_of(results, control) if one["bytes"] == size])
            ratio = (chosen or fastest)["median"] / peer["median"] if peer else None
            copies = bare_copies_of(results, size)
            of_copies = format_figure(copies and copies["median"] / fastest["median"], copies, fastest, digits=3)
            table.add_row(
                control, format_bytes(size), time_of(chosen), time_of(peer), str(peer["method"]) if peer else MISSING,
                format_figure(ratio, chosen or fastest, peer, digits=3),
                format_figure(chosen and chosen.get("bus_gb_per_s"), chosen, digits=3), time_of(fastest),
                str(fastest["method"]).split("/")[-1], *([of_copies] * has_copies),
            )  # fmt: skip
    beside = "`automatic`" if any(str(one.get("method")).endswith("/automatic") for one in own) else "the best"
    notes = [f"us, ratio (time of {beside} by the best peer's): lower is better; GB/s: higher"]
    notes += ["of bare copies (their time by the best's; 1: no time is lost): higher is better"] * has_copies
    return explained(table, *notes)


def sweeps_of(results: list[Event]) -> list[list[Event]]:
    """The results of each method and size with several numbers of blocks, fewest blocks first."""
    found: dict[tuple[str, int], list[Event]] = {}
    for one in results:
        if "blocks" in one.get("settings", {}) and one.get("peer_of") is None:
            found.setdefault((str(one["method"]), one["bytes"]), []).append(one)
    several = [sweep for sweep in found.values() if len({one["settings"]["blocks"] for one in sweep}) > 1]
    return [sorted(sweep, key=lambda one: one["settings"]["blocks"]) for sweep in several]


def fewest_blocks(sweep: list[Event], longest_us: float, *others: Event) -> str:
    """The fewest blocks with which a call takes at most `longest_us`; marked if `sweep` or `others` are uncertain."""
    enough = [one["settings"]["blocks"] for one in sweep if one["median"] <= longest_us]
    return format_figure(enough[0] if enough else None, *sweep, *others)


def blocks_table(operation: str, sweeps: list[list[Event]], results: list[Event]) -> RenderableType:
    """From how many blocks on, each a multiprocessor's worth of threads, an algorithm is about as quick as it gets, and
    no slower than the best peer, which takes as many as it likes."""
    columns = (">bytes", ">best us", ">with blocks", ">within 5 % from", ">best peer us", "peer", ">no slower from")
    table = new_table(f"{operation}: against blocks (lower is better)", "method", *columns, keys=2)
    for sweep in sweeps:
        fastest = min(sweep, key=lambda one: float(one["median"]))
        rivals = rivals_of(results, control_of(fastest))
        peer = best([one for one in rivals if one["bytes"] == fastest["bytes"]])
        table.add_row(
            str(fastest["method"]), format_bytes(fastest["bytes"]), time_of(fastest),
            format_figure(fastest["settings"]["blocks"], *sweep), fewest_blocks(sweep, 1.05 * fastest["median"]),
            time_of(peer), str(peer["method"]) if peer else MISSING,
            fewest_blocks(sweep, peer["median"], peer) if peer else MISSING,
        )  # fmt: skip
    return explained(table)


def time_of(result: Event | None) -> str:
    return format_figure(result and result["median"], result)
