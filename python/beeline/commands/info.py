# SPDX-License-Identifier: Apache-2.0
"""`beeline info`: what this machine and this build offer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from beeline import options
from beeline.display import MISSING, format_bytes, format_number, make_console, new_table
from beeline.jobs import Event, running
from beeline.programs import CliError, World, find_program, launch_command

InfoRanks = Annotated[
    int | None,
    typer.Option(
        "--ranks",
        "-n",
        min=2,
        max=options.MAX_RANKS,
        help="Also start so many ranks, and show how they reach each other.",
    ),
]


def info(
    ranks: InfoRanks = None,
    device: options.Device = None,
    split_nodes: options.SplitNodes = None,
    as_json: options.Json = False,
) -> None:
    """Show devices, links, which rank reaches which memory, methods, versions and configuration; with --ranks, also the
    path between each pair of ranks, and why it is taken."""
    report = collect_info()
    if ranks is not None:
        report |= collect_paths(World(ranks, device=device, split_nodes=split_nodes))
    if as_json:
        print(json.dumps(report))
        return
    console = make_console()
    show_paths(console, report.get("paths") or [])
    show_versions(console, report)
    show_devices(console, report)
    show_matrix(console, "Links between GPUs", report.get("links") or [], describe_link)
    show_matrix(
        console, "Who reaches whose memory", report.get("access") or [], lambda cell: str(cell.get("how", MISSING))
    )
    show_engines(console, report.get("engines") or [])
    show_command_engines(console, report.get("command_engines") or [])
    show_methods(console, report.get("methods") or [])
    show_configuration(console, report.get("configuration") or [])


def collect_info() -> Event:
    """What beeline-info prints: one object that describes this machine and build."""
    return only_object([str(find_program("beeline-info"))])


def collect_paths(world: World) -> Event:
    """What it prints on the ranks of a world: how they reach each other."""
    return only_object(launch_command(world, find_program("beeline-info"), ["--paths"]))


def only_object(command: list[str]) -> Event:
    with running(command) as events:
        reports = list(events)
    if not reports:
        raise CliError("beeline-info printed no JSON object")
    return reports[0]


def show_paths(console: Console, paths: list[Event]) -> None:
    """How ranks reach each other; pairs of one path and reason share a row."""
    if not paths:
        return
    pairs: dict[tuple[str, str, str], list[str]] = {}
    for path in paths:
        how = tuple(str(path.get(key) or MISSING) for key in ("operations", "copies", "reason"))
        pairs.setdefault(how, []).append(f"{path.get('from')} to {path.get('to')}")
    table = new_table("Paths between ranks", "ranks", "operations", "copies by the host", "why")
    for how, ranks in pairs.items():
        table.add_row(", ".join(ranks), *how)
    console.print(table)


def show_versions(console: Console, report: Event) -> None:
    build, driver, host = (report.get(key) or {} for key in ("build", "driver", "host"))
    architectures = build.get("architectures") or []
    if not isinstance(architectures, str):
        architectures = ", ".join(str(item) for item in architectures)
    facts = {
        "Beeline": report.get("version"),
        "compiler": build.get("compiler"),
        "CUDA in this build": f"yes, for {architectures}" if build.get("cuda") else "no",
        "CUDA driver": driver.get("cuda_driver"),
        "CUDA runtime": driver.get("cuda_runtime"),
        "CPU": host.get("cpu"),
        "cores": host.get("cores"),
        "kernel": host.get("kernel"),
        "launcher": describe_launcher(report.get("launcher") or {}),
    }
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in facts.items():
        table.add_row(name, format_number(value))
    console.print(table)
    console.print()


def describe_launcher(launcher: Event) -> str:
    if not launcher.get("name"):
        return "none"
    hosts = "" if launcher.get("one_host", True) else ", on several hosts"
    return f"{launcher['name']}: rank {launcher.get('rank')} of {launcher.get('size')}{hosts}"


def show_devices(console: Console, report: Event) -> None:
    table = new_table("Devices", "kind", ">index", "name", ">memory", ">multiprocessors", "UUID")
    for device in report.get("devices") or []:
        memory = device.get("memory_bytes")
        table.add_row(
            str(device.get("kind", MISSING)),
            format_number(device.get("index")),
            str(device.get("name", MISSING)),
            f"{memory / 2**30:.1f} GiB" if isinstance(memory, int) and memory >= 2**30 else format_memory(memory),
            format_number(device.get("multiprocessors")),
            str(device.get("uuid") or MISSING),
        )
    console.print(table)
    if reason := report.get("no_gpu_reason"):
        console.print(f"No GPU: {reason}\n")


def format_memory(value: Any) -> str:
    return format_bytes(value) if isinstance(value, int) else MISSING


def describe_link(link: Event) -> str:
    if not link.get("peer_access"):
        return f"no peer access; copies {link.get('copies') or MISSING}"
    return "peer access, atomics" if link.get("native_atomics") else "peer access"


def show_matrix(console: Console, title: str, cells: list[Event], describe: Callable[[Event], str]) -> None:
    """A table of what is known from each row's `from` to each column's `to`."""
    if not cells:
        return
    rows = list(dict.fromkeys(str(cell.get("from")) for cell in cells))
    columns = list(dict.fromkeys(str(cell.get("to")) for cell in cells))
    known = {(str(cell.get("from")), str(cell.get("to"))): describe(cell) for cell in cells}
    table = new_table(title, "from \\ to", *columns)
    for row in rows:
        table.add_row(row, *(known.get((row, column), MISSING) for column in columns))
    console.print(table)


def show_engines(console: Console, engines: list[Event]) -> None:
    """Where an engine's threads run, of a rank on each GPU."""
    if not engines:
        return
    table = new_table("Engines", ">GPU", "PCI", "their threads' cores")
    for engine in engines:
        cores = ",".join(map(str, engine.get("near_cores") or [])) or f"any: {engine.get('reason') or MISSING}"
        table.add_row(format_number(engine.get("gpu")), str(engine.get("pci") or MISSING), cores)
    console.print(table)


def show_command_engines(console: Console, engines: list[Event]) -> None:
    """What serves the queues that kernels post commands to."""
    table = new_table("Engines of command queues", "engine", "method", "served by", ">threads", ">poll, µs", "commands")
    for engine in engines:
        names = [str(engine.get(key) or MISSING) for key in ("id", "method", "served_by")]
        numbers = [format_number(engine.get(key)) for key in ("threads", "poll_us")]
        table.add_row(*names, *numbers, str(engine.get("commands") or MISSING))
    console.print(table)


def show_methods(console: Console, methods: list[Event]) -> None:
    table = new_table("Methods", "method", "here", "operations", "how", "needs")
    for method in methods:
        here = "[green]yes[/green]" if method.get("available") else f"no: {method.get('reason') or 'reason unknown'}"
        names = [str(method.get(key) or MISSING) for key in ("id", "summary", "needs")]
        table.add_row(names[0], here, ", ".join(method.get("operations") or []), *names[1:])
    console.print(table)


def show_configuration(console: Console, entries: list[Event]) -> None:
    table = new_table("Configuration", "variable", "value", "meaning")
    for entry in entries:
        table.add_row(str(entry.get("variable")), format_number(entry.get("value")), str(entry.get("meaning") or ""))
    console.print(table)
