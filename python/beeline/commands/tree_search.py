# SPDX-License-Identifier: Apache-2.0
"""`beeline app tree-search`: an unbalanced tree, searched level by level and by tasks."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Study, run_studies
from beeline.display import VERIFIED, Cell, against, devices_of, field, figure, format_verified, per_joule, result_table
from beeline.jobs import Event
from beeline.programs import World, given

BASELINE = "bulk"  # the method that the others are compared with


def tree_search(
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", help="Nodes that the tree is expected to have.")] = (
        2_000_000
    ),
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the tree.")] = 1,
    ranks: Annotated[
        str, typer.Option("--ranks", "-n", metavar="N[,N..]", help="Numbers of ranks; the tree stays the same.")
    ] = "2",
    method: options.Methods = "all",
    searches: Annotated[
        int | None, options.timed("--searches", "Searches to time.", "about a second for each method")
    ] = None,
    energy: options.Energy = None,
    threads: options.Threads = False,
    device: options.Device = None,
    no_verify: options.NoVerify = False,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Count the nodes of an unbalanced tree, level by level and by tasks (active messages)."""
    arguments = [
        "--nodes",
        str(nodes),
        "--seed",
        str(seed),
        *given("searches", searches),
        *given("energy", energy),
        *given("no-verify", no_verify),
    ]
    names, world = options.parse_names(method), World(1, threads, device)
    study = Study({"tree-search": None}, options.parse_ranks(ranks), names, world, lambda _: arguments)
    run_studies([study], as_json, output, render)


def render(results: list[Event]) -> RenderableType:
    columns: dict[str, Cell] = {
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">time,\nms": figure("seconds", factor=1e3),
        ">against\nbulk": lambda one: against(one, results, BASELINE, "seconds", ("ranks",)),
        ">million\nnodes/s": figure("nodes_per_second", factor=1e-6),
        ">CPU\ntime, ms": field("cpu_seconds", factor=1e3),
        **per_joule(results, "searches", "searches_per_joule"),
        VERIFIED: field("verified", format_verified),
    }
    first = results[0]
    title = f"Search of a tree of {first.get('nodes')} nodes, {first.get('deepest')} deep, on {devices_of(results)}"
    directions = "times: lower is better; nodes/s, against bulk (times as fast): higher"
    return result_table(title, columns, results, directions, keys=2)
