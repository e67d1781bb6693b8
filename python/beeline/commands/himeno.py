# SPDX-License-Identifier: Apache-2.0
"""`beeline app himeno`: the Himeno benchmark with each method, and how it scales."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.console import RenderableType

from beeline import options
from beeline.applications import Asked, run_studies
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

Scaling = Literal["none", "weak", "strong"]
Preset = Literal["table-5.6", "weak", "strong"]  # sizes of seed 000 that are more than a size

# The settings of a preset: its grids, one after another, and how they scale. M and L of the same source are sizes.
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

# The programs that have methods; for those that only some builds have, the event to report if they are missing.
PROGRAMS: dict[str, Event | None] = {
    "himeno": None,
    "himeno-device-launched": {
        "name": "device_launched",
        "available": False,
        "reason": "the program himeno-device-launched is not here: it is built with CUDA",
    },
    "himeno-gaspi": {
        "name": "gaspi_hybrid",
        "available": False,
        "reason": "the program himeno-gaspi is not here: it is built with the C interface",
    },
}


def study(
    asked: Asked,
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
    scaling: Annotated[
        Scaling,
        typer.Option(
            "--scaling",
            help="Compare numbers of ranks: weak (the size is each rank's) or strong (the size is that of all).",
        ),
    ] = "none",
) -> None:
    size = asked.options.get("size")
    if preset is not None and (size is not None or scaling != "none"):
        raise options.refusal("--preset", "it sets the size and the scaling: leave --size and --scaling out")
    sizes, scaling = ([size], scaling) if preset is None else PRESETS[preset]
    counts = ranks or ("4" if scaling == "none" else "1,2,4")
    if scaling != "none" and len(options.parse_ranks(counts)) < 2:
        raise options.refusal(
            "--ranks", f"{scaling} scaling compares numbers of ranks: give several, like --ranks 1,2,4"
        )
    changed = {"weak": True} if scaling == "weak" else {}
    studies = [asked.study(counts, f"{each}, " if each else "", PROGRAMS, size=each, **changed) for each in sizes]
    run_studies(asked, studies, lambda results: render(results, scaling))


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
    """Speed-up over the fewest ranks of the same method, and the speed-up divided by the ratio of the ranks."""
    same = [one for one in results if one.get("method") == result.get("method") and one.get("mflops")]
    base = min(same, key=lambda one: one["ranks"], default=None)
    if base is None or not result.get("mflops"):
        return [MISSING, MISSING]
    speed_up = result["mflops"] / base["mflops"]
    efficiency = speed_up * base["ranks"] / result["ranks"]
    return [format_ratio(speed_up, result, base), format_percent(efficiency, result, base)]


def gosa_note(result: Event) -> str:
    """The residual of a run, and that of the reference if it has done as many iterations."""
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
