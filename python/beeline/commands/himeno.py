# SPDX-License-Identifier: Apache-2.0
"""`beeline app himeno`: the Himeno benchmark with each method, and how it scales."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Study, run_studies
from beeline.display import (
    BELOW_NOISE,
    MISSING,
    VERIFIED,
    Cell,
    devices_of,
    field,
    figure,
    format_number,
    format_percent,
    format_ratio,
    format_share,
    format_verified,
    per_joule,
    result_table,
)
from beeline.jobs import Event
from beeline.programs import World, given

# The benchmark's sizes, x, y, z: the official i, j, k. Ranks divide z, the official k.
GRIDS = {
    "XS": (32, 32, 64),
    "S": (64, 64, 128),
    "M": (128, 128, 256),
    "L": (256, 256, 512),
    "XL": (512, 512, 1024),
}
SMALLEST, LARGEST = 3, 32768  # points along an axis


Scaling = Literal["none", "weak", "strong"]
Preset = Literal["table-5.6", "weak", "strong"]  # sizes of seed 000 that are more than a size

# What a preset sets: its grids one after another, and how they scale. M and L of the same source are sizes.
PRESETS: dict[Preset, tuple[list[str], Scaling]] = {
    "table-5.6": (
        [
            *("256x256x256", "256x256x512", "256x256x1024"),
            *("512x512x256", "512x512x512", "512x512x640"),
            *("640x640x128", "640x640x256", "640x640x386"),
        ],
        "none",
    ),
    "weak": (["128x192x64"], "weak"),
    "strong": (["128x128x192"], "strong"),
}
DEFAULT_SIZE = "S"

# The programs that have methods; beside those that only some builds have, what to say where they are missing.
PROGRAMS: dict[str, Event | None] = {
    "himeno": None,
    "himeno-device-launched": {
        "name": "device_launched",
        "available": False,
        "reason": "the program himeno-device-launched is not here: it is built with CUDA",
    },
}


def grid_for(size: str, scaling: Scaling, ranks: int) -> tuple[int, int, int]:
    """Under weak scaling each rank keeps the whole size that was asked for."""
    x, y, z = parse_grid(size)
    return x, y, z * ranks if scaling == "weak" else z


def check(size: str, scaling: Scaling, counts: list[int]) -> None:
    """Refuses what cannot run, before anything starts."""
    if scaling != "none" and len(counts) < 2:
        raise options.refusal(
            "--ranks", f"{scaling} scaling compares numbers of ranks: give several, like --ranks 1,2,4"
        )
    for ranks in counts:
        z = grid_for(size, scaling, ranks)[2]
        if z > LARGEST:
            raise options.refusal(
                "--size",
                f"weak scaling to {ranks} ranks makes {z} points along z, more than {LARGEST}: take a smaller "
                "--size, or fewer --ranks",
            )
        if z - 2 < ranks:
            raise options.refusal(
                "--size",
                f"{size} has too few planes along z for {ranks} ranks: each needs one of the {z - 2} inside, at least",
            )


def parse_grid(text: str) -> tuple[int, int, int]:
    if text.upper() in GRIDS:
        return GRIDS[text.upper()]
    match = options.GRID.fullmatch(text)
    if match is None or not all(SMALLEST <= int(extent) <= LARGEST for extent in match.groups()):
        valid = f"{', '.join(GRIDS)}, or XxYxZ with extents from {SMALLEST} to {LARGEST}"
        raise options.refusal("--size", f"{text!r} is no size; valid: {valid}")
    return int(match[1]), int(match[2]), int(match[3])


def check_size(text: str | None) -> str | None:
    if text is None:
        return None
    parse_grid(text)
    return text.upper() if text.upper() in GRIDS else text.lower()


def himeno(
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            help="XS, S, M, L, XL or XxYxZ points (the official i, j, k), "
            f"{SMALLEST} to {LARGEST} along each axis; ranks divide z.",
            callback=check_size,
            show_default=DEFAULT_SIZE,
        ),
    ] = None,
    preset: Annotated[
        Preset | None,
        typer.Option(
            "--preset",
            help="Sizes of the source (seed 000 in docs/sources.md), in place of --size and --scaling: "
            "table-5.6 (nine grids), weak (128x192x64 a rank), strong (128x128x192 in all).",
        ),
    ] = None,
    ranks: Annotated[
        str | None,
        typer.Option(
            "--ranks",
            "-n",
            metavar="N[,N..]",
            help="Numbers of ranks; to compare them by --scaling, several.",
            show_default="4; with --scaling, 1,2,4",
        ),
    ] = None,
    method: options.Methods = "all",
    iterations: Annotated[
        int | None, options.timed("--iterations", "Iterations to time.", "about a second for each method")
    ] = None,
    scaling: Annotated[
        Scaling,
        typer.Option(
            "--scaling",
            help="Compare numbers of ranks: weak (the size is each rank's) or strong (the size is that of all).",
        ),
    ] = "none",
    threads: options.Threads = False,
    device: options.Device = None,
    split_nodes: options.SplitNodes = None,
    energy: options.Energy = None,
    no_verify: options.NoVerify = False,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Run the Himeno benchmark (19-point Jacobi relaxation of the 3-D Poisson equation) with each method."""
    if preset is not None and (size is not None or scaling != "none"):
        raise options.refusal("--preset", "it sets the size and the scaling: leave --size and --scaling out")
    sizes, scaling = ([size or DEFAULT_SIZE], scaling) if preset is None else PRESETS[preset]
    counts = options.parse_ranks(ranks or ("4" if scaling == "none" else "1,2,4"))
    names, world = options.parse_names(method), World(1, threads, device, split_nodes=split_nodes)
    rest = [*given("iterations", iterations), *given("energy", energy), *given("no-verify", no_verify)]

    def study_of(size: str) -> Study:
        def arguments(ranks: int) -> list[str]:
            grid = size if scaling != "weak" else "x".join(map(str, grid_for(size, scaling, ranks)))
            return ["--size", grid, *rest]

        check(size, scaling, counts)
        return Study(PROGRAMS, counts, names, world, arguments, f"{size}, ")

    run_studies([study_of(each) for each in sizes], as_json, output, lambda results: render(results, scaling))


def render(results: list[Event], scaling: Scaling) -> RenderableType:
    scales = scaling != "none"
    sizes = dict.fromkeys(map(size_of, results))
    several = not scales and len(sizes) > 1
    columns: dict[str, Cell] = {
        **({"size": size_of} if several else {}),
        "method": field("method", str),
        ">ranks": field("ranks"),
        ">MFLOP/s": figure("mflops"),
        ">of copy\nspeed, %": figure("bound_share", format_percent),
        ">comm.,\n%": figure("communication_share", format_share),
        ">over-\nlap, %": figure("overlap_efficiency", format_percent),
        ">max\nerror": field("max_error"),
        VERIFIED: lambda result: format_verified(result.get("verified")) + verified_part(result),
        ">CPU\ntime, s": field("cpu_seconds", lambda seconds: format_number(seconds, digits=3)),
        **per_joule(results, "MFLOP", "mflop_per_joule"),
    }
    if scales:
        columns[">speed-\nup"] = lambda result: scaling_cells(result, results)[0]
        columns[">effi-\nciency, %"] = lambda result: scaling_cells(result, results)[1]
    rates = "MFLOP/s, copy speed, overlap, speed-up" if scales else "MFLOP/s, copy speed, overlap"
    notes = [f"{rates}: higher is better; comm., error, CPU time: lower", *dict.fromkeys(map(gosa_note, results))]
    if any(format_share(result.get("communication_share")) == BELOW_NOISE for result in results):
        notes.append(f"{BELOW_NOISE}: runs without communication took longer than those with it")
    title = f"Himeno {', '.join(sizes)} on {devices_of(results)}"
    return result_table(title, columns, results, *notes, keys=3 if several else 2)


def verified_part(result: Event) -> str:
    """How many of the timed iterations the reference followed, if not all."""
    verified, timed = (result.get(key) for key in ("verified_iterations", "iterations"))
    return "" if verified is None or verified == timed else f" ({verified} of {timed})"


def size_of(result: Event) -> str:
    return "×".join(str(extent) for extent in result.get("size") or [])


def scaling_cells(result: Event, results: list[Event]) -> list[str]:
    """Speed against the fewest ranks of the same method, and that divided by how many times the ranks grew."""
    same = [one for one in results if one.get("method") == result.get("method") and one.get("mflops")]
    base = min(same, key=lambda one: one["ranks"], default=None)
    if base is None or not result.get("mflops"):
        return [MISSING, MISSING]
    speed_up = result["mflops"] / base["mflops"]
    efficiency = speed_up * base["ranks"] / result["ranks"]
    return [format_ratio(speed_up, result, base), format_percent(efficiency, result, base)]


def gosa_note(result: Event) -> str:
    """The residual of a run; beside the reference's where that has done as many iterations."""
    gosa, reference, drifted = (
        format_number(result.get(key), digits=7) for key in ("gosa", "gosa_reference", "gosa_float32")
    )
    iterations, followed = result.get("iterations"), result.get("verified_iterations")
    note = f"gosa {gosa} after {format_number(iterations)} iterations"
    if followed is None:
        return note
    if followed != iterations:
        return f"{note}, to which the reference, after {format_number(followed)}, does not compare"
    note += f", reference {reference}"
    if result.get("gosa_float32") is not None:
        note += f"; the C benchmark, whose float32 sum drifts on large grids, prints {drifted}"
    return note
