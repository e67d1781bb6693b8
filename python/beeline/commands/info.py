# SPDX-License-Identifier: Apache-2.0
"""`beeline info`: what this machine and this build offer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from beeline import options
from beeline.display import MISSING, format_bytes, format_number, make_console, new_table
from beeline.jobs import Event, running
from beeline.programs import CliError, World, find_program, launch_command


def check_sections(names: list[str] | None) -> list[str]:
    for name in names or []:
        if name not in SECTIONS:
            raise typer.BadParameter(f"{name!r} is no section; valid: {', '.join(SECTIONS)}")
    return names or ["machine"]


Sections = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SECTION",
        callback=check_sections,
        help="What to show: machine (a summary), devices, links (between GPUs), reach (which processor reaches whose "
        "memory), engines (the threads that serve kernels' commands), algorithms, settings (environment variables).",
        show_default="machine",
    ),
]
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
    sections: Sections = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show all sections.")] = False,
    ranks: InfoRanks = None,
    device: options.Device = None,
    split_nodes: options.SplitNodes = None,
    as_json: options.Json = False,
) -> None:
    """Show what this machine and this build offer: a summary, or the sections named; with --ranks, also the path
    between each pair of ranks, and why it is taken. --json prints everything."""
    report = collect_info()
    if ranks is not None:
        report |= collect_paths(World(ranks, device=device, split_nodes=split_nodes))
    if as_json:
        print(json.dumps(report))
        return
    console = make_console()
    for section in SECTIONS if show_all else dict.fromkeys(sections or []):
        SECTIONS[section](console, report)
    show_paths(console, report.get("paths") or [])


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


def show_machine(console: Console, report: Event) -> None:
    """The machine and the build in about ten lines."""
    build, host = (report.get(key) or {} for key in ("build", "host"))
    facts = {
        "Beeline": f"{format_number(report.get('version'))}, compiled by {format_number(build.get('compiler'))}",
        "CPU": f"{format_number(host.get('cpu'))}, {format_number(host.get('cores'))} cores, "
        f"Linux {format_number(host.get('kernel'))}",
        "GPUs": describe_gpus(report),
        "CUDA": describe_cuda(build, report.get("driver") or {}),
        "links": describe_links(report.get("links") or []),
        "reach": describe_reach(report.get("access") or []),
        "algorithms": describe_algorithms(report.get("methods") or []),
        "several nodes": describe_network(report.get("network") or {}),
        "files": describe_files(report.get("files") or {}),
        "launcher": describe_launcher(report.get("launcher") or {}),
        "settings": describe_settings(report.get("configuration") or []),
        "more": f"beeline info {' '.join(name for name in SECTIONS if name != 'machine')}, or --all",
    }
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)


def describe_gpus(report: Event) -> str:
    """GPUs of one name, memory and size are counted together."""
    counts: dict[str, int] = {}
    for device in report.get("devices") or []:
        if device.get("kind") == "gpu":
            what = f"{device.get('name', MISSING)}, {format_memory(device.get('memory_bytes'))}"
            counts[what] = counts.get(what, 0) + 1
    if not counts:
        return f"none: {report.get('no_gpu_reason') or 'reason unknown'}"
    return "; ".join(f"{count} × {what}" for what, count in counts.items())


def describe_cuda(build: Event, driver: Event) -> str:
    if not build.get("cuda"):
        return "not in this build"
    versions = (driver.get(key) for key in ("cuda_driver", "cuda_runtime"))
    shown = "driver {}, runtime {}".format(*map(format_number, versions))
    return f"compiled for {format_number(build.get('architectures'))}; {shown}"


def describe_links(links: list[Event]) -> str:
    if not links:
        return "none: there are fewer than two GPUs"
    direct = sum(bool(link.get("peer_access")) for link in links)
    if direct == len(links):
        return "peer access between all GPUs"
    return f"peer access in {direct} of {len(links)} directions between GPUs; other copies go through host memory"


def describe_reach(access: list[Event]) -> str:
    """The best kind of access, which the program names first."""
    if not access:
        return MISSING
    first = access[0]
    return "{} to {}: {}".format(*(format_number(first.get(key)) for key in ("from", "to", "how")))


def describe_algorithms(methods: list[Event]) -> str:
    return f"{sum(bool(one.get('available')) for one in methods)} of {len(methods)} are available here"


def describe_network(network: Event) -> str:
    transports = network.get("transports") or []
    there = [str(one.get("name")) for one in transports if one.get("available")]
    if network.get("available"):
        return f"yes, by {', '.join(there) or 'UCX'}"
    return f"no: {network.get('reason') or 'reason unknown'}"


def describe_files(files: Event) -> str:
    """How files are read and written, and whether they go to GPUs without host memory between."""

    def text(name: str, there: str, lacking: str) -> str:
        one = files.get(name) or {}
        return there if one.get("available") else f"{lacking}: {one.get('reason') or 'reason unknown'}"

    by = text("io_uring", "by io_uring", "by threads")
    return f"{by}; {text('gds', 'GPUDirect Storage', 'no GPUDirect Storage')}"


def describe_settings(entries: list[Event]) -> str:
    """The variables that are set here; the others have their defaults."""
    changed = [str(entry["variable"]) for entry in entries if str(entry.get("variable")) in os.environ]
    return f"set in the environment: {', '.join(changed) or 'none'}"


def describe_launcher(launcher: Event) -> str:
    if not launcher.get("name"):
        return "none"
    hosts = "" if launcher.get("one_host", True) else ", on several hosts"
    return f"{launcher['name']}: rank {launcher.get('rank')} of {launcher.get('size')}{hosts}"


def show_devices(console: Console, report: Event) -> None:
    table = new_table("Devices", "kind", ">index", "name", ">memory", ">multiprocessors", "UUID")
    for device in report.get("devices") or []:
        table.add_row(
            str(device.get("kind", MISSING)),
            format_number(device.get("index")),
            str(device.get("name", MISSING)),
            format_memory(device.get("memory_bytes")),
            format_number(device.get("multiprocessors")),
            str(device.get("uuid") or MISSING),
        )
    console.print(table)
    if reason := report.get("no_gpu_reason"):
        console.print(f"No GPU: {reason}\n")


def format_memory(value: Any) -> str:
    if isinstance(value, int) and value >= 2**30:
        return f"{value / 2**30:.1f} GiB"
    return format_bytes(value) if isinstance(value, int) else MISSING


def describe_link(link: Event) -> str:
    if not link.get("peer_access"):
        return f"no peer access; copies {link.get('copies') or MISSING}"
    return "peer access, atomics" if link.get("native_atomics") else "peer access"


def show_matrix(console: Console, title: str, cells: list[Event], describe: Callable[[Event], str]) -> None:
    """A table with a row for each `from` and a column for each `to` of the cells."""
    if not cells:
        return
    rows = list(dict.fromkeys(str(cell.get("from")) for cell in cells))
    columns = list(dict.fromkeys(str(cell.get("to")) for cell in cells))
    known = {(str(cell.get("from")), str(cell.get("to"))): describe(cell) for cell in cells}
    table = new_table(title, "from \\ to", *columns)
    for row in rows:
        table.add_row(row, *(known.get((row, column), MISSING) for column in columns))
    console.print(table)


def show_engine_cores(console: Console, engines: list[Event]) -> None:
    """The cores of the engine threads of a rank on each GPU."""
    if not engines:
        return
    table = new_table("Engines", ">GPU", "PCI", "their threads' cores")
    for engine in engines:
        cores = ",".join(map(str, engine.get("near_cores") or [])) or f"any: {engine.get('reason') or MISSING}"
        table.add_row(format_number(engine.get("gpu")), str(engine.get("pci") or MISSING), cores)
    console.print(table)


def show_command_engines(console: Console, engines: list[Event]) -> None:
    """The engines that serve the queues to which kernels post commands."""
    table = new_table("Engines of command queues", "engine", "method", "served by", ">threads", ">poll, µs", "commands")
    for engine in engines:
        names = [str(engine.get(key) or MISSING) for key in ("id", "method", "served_by")]
        numbers = [format_number(engine.get(key)) for key in ("threads", "poll_us")]
        table.add_row(*names, *numbers, str(engine.get("commands") or MISSING))
    console.print(table)


def show_algorithms(console: Console, methods: list[Event]) -> None:
    table = new_table("Algorithms", "algorithm", "here", "operations", "how", "needs")
    for method in methods:
        here = "yes" if method.get("available") else f"no: {method.get('reason') or 'reason unknown'}"
        names = [str(method.get(key) or MISSING) for key in ("id", "summary", "needs")]
        table.add_row(names[0], here, ", ".join(method.get("operations") or []), *names[1:])
    console.print(table)


def show_settings(console: Console, entries: list[Event]) -> None:
    table = new_table("Settings", "variable", "value", "meaning", "valid values")
    for entry in entries:
        texts = (str(entry.get(field) or "") for field in ("meaning", "values"))
        table.add_row(str(entry.get("variable")), format_number(entry.get("value")), *texts)
    console.print(table)


def show_links(console: Console, report: Event) -> None:
    links = report.get("links") or []
    if links:
        show_matrix(console, "Links between GPUs", links, describe_link)
    else:
        console.print(f"Links between GPUs: {describe_links(links)}\n")


def show_reach(console: Console, report: Event) -> None:
    access = report.get("access") or []
    show_matrix(console, "Who reaches whose memory", access, lambda cell: str(cell.get("how", MISSING)))


def show_engines(console: Console, report: Event) -> None:
    show_engine_cores(console, report.get("engines") or [])
    show_command_engines(console, report.get("command_engines") or [])


SECTIONS: dict[str, Callable[[Console, Event], None]] = {
    "machine": show_machine,
    "devices": show_devices,
    "links": show_links,
    "reach": show_reach,
    "engines": show_engines,
    "algorithms": lambda console, report: show_algorithms(console, report.get("methods") or []),
    "settings": lambda console, report: show_settings(console, report.get("configuration") or []),
}
