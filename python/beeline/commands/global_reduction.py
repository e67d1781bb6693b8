# SPDX-License-Identifier: Apache-2.0
"""`beeline app global-reduction`: many values on each rank to one sum on all, beside MPI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import raise_failures, run_methods
from beeline.display import MISSING, ResultView, format_number, format_verified, new_table
from beeline.jobs import Event
from beeline.programs import CliError, World

BASELINE = "mpi"  # the method that the others are compared with
LARGEST = 1 << 40


@dataclass(frozen=True)
class Study:
    """What to run: each method on each number of ranks, over numbers of values."""

    values: list[int]
    ranks: list[int]
    methods: list[str]
    reductions: int | None
    threads: bool
    device: str
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
    ranks: Annotated[str, typer.Option("--ranks", "-n", metavar="N[,N..]", help="Numbers of ranks.")] = "4",
    method: Annotated[
        str, typer.Option("--method", metavar="NAME,..", help="Methods by name, or all that are available.")
    ] = "all",
    reductions: Annotated[
        int | None,
        typer.Option(
            "--reductions", min=1, max=options.MAX_ITERATIONS, help="Reductions to time.", show_default="by size"
        ),
    ] = None,
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
    study = Study(
        parse_values(values), options.parse_ranks(ranks), options.parse_names(method), reductions, threads, device,
        mpirun,
    )  # fmt: skip
    failures: list[CliError] = []
    with ResultView(as_json, output, render) as view:
        for count in study.ranks:
            view.set_progress(f"{count} ranks")
            failures += run_methods(study, count, view)
    raise_failures(failures, view)


def render(results: list[Event]) -> RenderableType:
    columns = ("method", ">ranks", ">values\na rank", ">reductions\na second", ">against\nMPI", ">CPU\ntime, us")
    table = new_table(describe(results), *columns, "verified")
    for result in results:
        cpu = result.get("cpu_seconds")
        table.add_row(
            str(result.get("method")),
            format_number(result.get("ranks")),
            format_number(result.get("values")),
            format_number(result.get("reductions_per_second")),
            against_mpi(result, results),
            format_number(cpu * 1e6 if isinstance(cpu, (int, float)) else None),
            format_verified(result.get("verified")),
        )
    return table


def describe(results: list[Event]) -> str:
    devices = dict.fromkeys(str(result.get("device")) for result in results)
    return f"Global reduction of float32 values on {', '.join(devices)}"


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
