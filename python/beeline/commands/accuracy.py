# SPDX-License-Identifier: Apache-2.0
"""`beeline bench accuracy`: how far all-reduces are from the exact result, beside the peers that this machine has."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from beeline import options
from beeline.description import Call
from beeline.display import MISSING, ResultView, explained, format_number, format_percent, new_table, not_measured
from beeline.fitted_table import FittedTable
from beeline.jobs import Event
from beeline.on_ranks import measure_on_ranks
from beeline.programs import CliError, World
from beeline.ranks.names import TREE

RANKS = "beeline.ranks.accuracy"


@dataclass(frozen=True)
class Row:
    """Methods whose results have the same bits."""

    type: str
    reduction: str
    data: str
    digest: int


def accuracy(
    call: Call,
    view: ResultView,
    ranks: options.Ranks = "2,4",
    mpirun: Annotated[bool, typer.Option("--mpirun", help="Let mpirun start the ranks: the peer mpi needs it.")] = (
        False
    ),
    device: options.Device = None,
) -> None:
    if importlib.util.find_spec("numpy") is None:
        raise CliError("accuracy needs numpy, which is not installed: pip install numpy")
    for count in options.parse_ranks(ranks):
        measure_on_ranks(World(count, device=device, mpirun=mpirun), RANKS, call, view)


def render(results: list[Event]) -> RenderableType:
    """A table for each number of ranks; methods whose results have the same bits share a row."""
    measured = [one for one in results if one.get("available")]
    counts = dict.fromkeys(one["ranks"] for one in measured)
    parts = [table_of(ranks, [one for one in measured if one["ranks"] == ranks]) for ranks in counts]
    return Group(*parts, *not_measured(results))


def table_of(ranks: int, results: list[Event]) -> FittedTable:
    columns = ("data", "methods", ">max\nulp", ">mean\nulp", ">max\nrelative", ">rounded\nright, %", ">wrong")
    table = new_table(f"all-reduce beside the exact result, {ranks} ranks", "reduction", *columns, keys=3)
    rows: dict[Row, list[Event]] = {}
    for one in results:
        rows.setdefault(Row(one["type"], one["reduction"], one["data"], one["digest"]), []).append(one)
    for row, alike in rows.items():
        first = alike[0]
        figures = [format_figure(first[name]) for name in ("max_ulp", "mean_ulp", "max_relative")]
        figures += [format_percent(first["correctly_rounded"]), format_number(first["wrong"])]
        wrong = [str(one["method"]) for one in alike if one["verified"] is False]
        names = described([str(one["method"]) for one in alike], {str(one["method"]) for one in results})
        names += "".join(f"; WRONG: {method}" for method in wrong)
        table.add_row(f"{row.type} {row.reduction}", row.data, names, *figures)
    return explained(table, "errors (ulp, relative, wrong): lower is better; rounded right: higher")


def format_figure(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3g}"


def described(methods: list[str], all_methods: set[str]) -> str:
    """The methods' names; one name for all of Beeline's algorithms, or for all that combine in rank order."""
    own, all_own = ({name for name in names if name.startswith("stream/")} for names in (methods, all_methods))
    if len(own) > 1 and own in (all_own, all_own - {TREE}):
        others = [method for method in methods if method not in own]
        return ", ".join(["stream/*" if own == all_own else "stream/* but tree", *others])
    return ", ".join(methods)
