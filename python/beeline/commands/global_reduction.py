# SPDX-License-Identifier: Apache-2.0
"""`beeline app global-reduction`: many values on each rank to one sum on all, beside MPI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Study, run_studies
from beeline.display import MISSING, Cell, devices_of, field, format_verified, result_table
from beeline.jobs import Event
from beeline.programs import World

BASELINE = "mpi"  # the method that the others are compared with
LARGEST = 1 << 40


@dataclass(frozen=True)
class Reductions(Study):
    """Over numbers of values."""

    values: list[int]
    reductions: int | None
    mpirun: bool
    programs: ClassVar = {"global-reduction": None}

    def world(self, ranks: int) -> World:
        return World(ranks, self.threads, self.device, mpirun=self.mpirun)

    def arguments(self, methods: list[str], ranks: int) -> list[str]:
        arguments = ["--values", ",".join(map(str, self.values)), "--method", ",".join(methods)]
        return arguments if self.reductions is None else [*arguments, "--reductions", str(self.reductions)]


def parse_values(text: str) -> list[int]:
    counts = options.parse_sizes(text)
    if max(counts) > LARGEST:
        raise typer.BadParameter(f"{max(counts)} values are too many; valid: 1 to 1024G")
    return counts


def global_reduction(
    values: Annotated[
        str,
        typer.Option("--values", metavar="N[,N..]", help="Numbers of float32 values of a rank, like 1000, 64K or 16M."),
    ] = "1K,64K,1M,16M",
    ranks: options.Ranks = "4",
    method: options.Methods = "all",
    reductions: options.Reductions = None,
    mpirun: Annotated[
        bool, typer.Option("--mpirun", help="Let mpirun start the ranks, as the baseline mpi needs it.")
    ] = False,
    threads: options.Threads = False,
    device: options.Device = "auto",
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Reduce many values on each rank to one sum that every rank has; beside kernel, copy, MPI_Allreduce, copy."""
    if mpirun and threads:
        raise typer.BadParameter("mpirun starts processes: leave --threads or --mpirun out")
    study = Reductions(
        options.parse_ranks(ranks), options.parse_names(method), threads, device, parse_values(values), reductions,
        mpirun,
    )  # fmt: skip
    run_studies([study], as_json, output, render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">values\na rank": field("values"),
        ">reductions\na second": field("reductions_per_second"),
        ">against\nMPI": lambda result: against_mpi(result, results),
        ">CPU\ntime, us": field("cpu_seconds", factor=1e6),
        "verified": field("verified", format_verified),
    }
    return result_table(f"Global reduction of float32 values on {devices_of(results)}", columns, results)


def against_mpi(result: Event, results: list[Event]) -> str:
    """How many times more reductions a second than the baseline, with as many ranks and values."""
    same: list[Any] = [
        one.get("reductions_per_second")
        for one in results
        if one.get("method") == BASELINE and all(one.get(key) == result.get(key) for key in ("ranks", "values"))
    ]
    if not same or not same[-1] or not result.get("reductions_per_second"):
        return MISSING
    return f"{result['reductions_per_second'] / same[-1]:.2f}"
