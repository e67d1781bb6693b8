# SPDX-License-Identifier: Apache-2.0
"""`beeline app ring-reduction`: one ring all-reduce under every control scheme, on growing numbers of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import raise_failures, run_methods
from beeline.display import MISSING, ResultView, format_bytes, format_number, format_verified, new_table
from beeline.jobs import Event
from beeline.programs import CliError, World

ELEMENT_BYTES = 4
BASELINE = "host"  # the scheme that the others are compared with


@dataclass(frozen=True)
class Study:
    """What to run: each scheme on each number of ranks."""

    bytes: int
    ranks: list[int]
    methods: list[str]
    reductions: int | None
    threads: bool
    device: str
    verify: bool
    programs: ClassVar = {"ring-reduction": None}

    def world(self, ranks: int) -> World:
        return World(ranks, self.threads, self.device)

    def arguments(self, methods: list[str], ranks: int) -> list[str]:
        arguments = ["--size", str(self.bytes), "--method", ",".join(methods)]
        if self.reductions is not None:
            arguments += ["--reductions", str(self.reductions)]
        return arguments if self.verify else [*arguments, "--no-verify"]


def parse_size(text: str) -> int:
    sizes = options.parse_sizes(text)
    if len(sizes) != 1 or sizes[0] % ELEMENT_BYTES != 0:
        raise typer.BadParameter(f"{text!r} is no vector of float32; valid: one size, a multiple of {ELEMENT_BYTES}")
    return sizes[0]


def ring_reduction(
    size: Annotated[
        str, typer.Option("--size", metavar="BYTES", help="Bytes of a rank's vector of float32, like 1024, 4K or 64M.")
    ] = "64M",
    ranks: Annotated[
        str, typer.Option("--ranks", "-n", metavar="N[,N..]", help="Numbers of ranks; the vector stays the same.")
    ] = "2,4",
    method: Annotated[str, typer.Option("--method", metavar="NAME,..", help="Schemes by name, or all.")] = "all",
    reductions: Annotated[
        int | None,
        typer.Option(
            "--reductions", min=1, max=options.MAX_ITERATIONS, help="Reductions to time.", show_default="by size"
        ),
    ] = None,
    threads: options.Threads = False,
    device: options.Device = "auto",
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Skip the comparison with the serial reference.")
    ] = False,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Run one ring all-reduce (float32 sums, in place) under each control scheme; strong scaling over ranks."""
    study = Study(
        parse_size(size), options.parse_ranks(ranks), options.parse_names(method), reductions, threads, device,
        not no_verify,
    )  # fmt: skip
    failures: list[CliError] = []
    with ResultView(as_json, output, render) as view:
        for count in study.ranks:
            view.set_progress(f"{count} ranks")
            failures += run_methods(study, count, view)
    raise_failures(failures, view)


def render(results: list[Event]) -> RenderableType:
    columns = (
        "method",
        ">ranks",
        ">time,\nus",
        ">against\nhost",
        ">bus,\nGB/s",
        ">CPU\ntime, us",
        ">blocks",
        "verified",
    )
    table = new_table(describe(results), *columns)
    for result in results:
        table.add_row(
            str(result.get("method")),
            format_number(result.get("ranks")),
            format_number(scaled(result.get("seconds"), 1e6)),
            against_host(result, results),
            format_number(scaled(result.get("bus_bytes_per_second"), 1e-9)),
            format_number(scaled(result.get("cpu_seconds"), 1e6)),
            format_number(result.get("lanes")),
            format_verified(result.get("verified")),
        )
    return table


def describe(results: list[Event]) -> str:
    devices = dict.fromkeys(str(result.get("device")) for result in results)
    return f"Ring reduction of {format_bytes(results[0].get('bytes') or 0)} on {', '.join(devices)}"


def scaled(value: Any, factor: float) -> Any:
    return value * factor if isinstance(value, (int, float)) else value


def against_host(result: Event, results: list[Event]) -> str:
    """How many times faster than the host's scheme on as many ranks."""
    same = [one for one in results if one.get("method") == BASELINE and one.get("ranks") == result.get("ranks")]
    if not same or not same[-1].get("seconds") or not result.get("seconds"):
        return MISSING
    return f"{same[-1]['seconds'] / result['seconds']:.2f}"
