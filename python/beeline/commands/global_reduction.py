# SPDX-License-Identifier: Apache-2.0
"""`beeline app global-reduction`: many values on each rank to one sum on all, beside MPI."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Study, run_studies
from beeline.display import VERIFIED, Cell, against, devices_of, field, figure, format_verified, per_joule, result_table
from beeline.jobs import Event
from beeline.programs import World, given

BASELINE = "mpi"  # the method that the others are compared with
LARGEST = 1 << 40


def parse_values(text: str) -> list[int]:
    counts = options.parse_sizes(text, "--values", "number of values", "numbers like 1000, 64K or 16M")
    if max(counts) > LARGEST:
        raise options.refusal("--values", f"{max(counts)} values are too many; valid: 1 to 1024G")
    return counts


def global_reduction(
    values: Annotated[
        str,
        typer.Option("--values", metavar="N[,N..]", help="Numbers of float32 values of a rank, like 1000, 64K or 16M."),
    ] = "1K,64K,1M,16M",
    ranks: options.Ranks = "4",
    method: options.Methods = "all",
    reductions: Annotated[
        int | None, options.timed("--reductions", "Reductions to time.", "about a third of a second each")
    ] = None,
    energy: options.Energy = None,
    mpirun: Annotated[
        bool, typer.Option("--mpirun", help="Let mpirun start the ranks: the baseline mpi needs it.")
    ] = False,
    threads: options.Threads = False,
    device: options.Device = None,
    split_nodes: options.SplitNodes = None,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Add up many values on each rank to one sum that every rank has. Baseline: kernel, copy, MPI_Allreduce, copy."""
    if mpirun and threads:
        raise options.refusal("--mpirun", "mpirun starts processes: leave --threads or --mpirun out")
    arguments = [
        "--values",
        ",".join(map(str, parse_values(values))),
        *given("reductions", reductions),
        *given("energy", energy),
    ]
    names, world = options.parse_names(method), World(1, threads, device, split_nodes=split_nodes, mpirun=mpirun)
    study = Study({"global-reduction": None}, options.parse_ranks(ranks), names, world, lambda _: arguments)
    run_studies([study], as_json, output, render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">values\na rank": field("values"),
        ">reductions\na second": figure("reductions_per_second"),
        ">against\nMPI": lambda one: against(one, results, BASELINE, "reductions_per_second", ("ranks", "values")),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        **per_joule(results, "reductions", "reductions_per_joule"),
        VERIFIED: field("verified", format_verified),
    }
    title = f"Global reduction of float32 values on {devices_of(results)}"
    directions = "reductions, against MPI (times as fast): higher is better; CPU time: lower"
    return result_table(title, columns, results, directions, keys=3)
