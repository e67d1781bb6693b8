# SPDX-License-Identifier: Apache-2.0
"""The options that several commands share, and the parsing of their texts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

MAX_RANKS = 1024
MAX_ITERATIONS = 1_000_000_000
SIZE = re.compile(r"(\d{1,18})([KMG]?)", re.IGNORECASE)
RANKS = re.compile(r"\d{1,9}")
SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30}
DEVICE = re.compile(r"auto|cuda:[^,\s]+(,[^,\s]+)*|(cpu|cuda:[^,\s]+)(,(cpu|cuda:[^,\s]+))*")
GRID = re.compile(r"(\d{1,9})[xX](\d{1,9})[xX](\d{1,9})")


def refusal(option: str, reason: str) -> typer.BadParameter:
    """An error for values that are parsed outside of the option's callback: the message still names the option."""
    return typer.BadParameter(reason, param_hint=f"'{option}'")


def parse_sizes(text: str, option: str, what: str = "size", examples: str = "bytes like 8, 4K, 1M or 2G") -> list[int]:
    """Parses a list like 8,4K,1M of numbers; they are bytes unless `what` names something else."""
    sizes = []
    for item in text.split(","):
        match = SIZE.fullmatch(item.strip())
        if match is None or int(match[1]) == 0:
            raise refusal(option, f"{item!r} is no {what}; valid: {examples}, separated by commas")
        sizes.append(int(match[1]) << SHIFTS[match[2].upper()])
    return sizes


def parse_ranks(text: str, unit: str = "ranks", most: int = MAX_RANKS) -> list[int]:
    """Numbers of ranks, or of devices, in a list like 1,2,4."""
    counts = []
    for item in text.split(","):
        if RANKS.fullmatch(item.strip()) is None or not 1 <= int(item) <= most:
            raise refusal(f"--{unit}", f"{item!r} is no number of {unit}; valid: 1 to {most}, separated by commas")
        counts.append(int(item))
    return counts


def parse_names(text: str) -> list[str]:
    """Names in a list separated by commas; empty for `all`."""
    names = [item.strip() for item in text.split(",")]
    if "" in names:
        raise refusal("--method", f"{text!r} holds an empty name; valid: all, or names separated by commas")
    return [] if names == ["all"] else names


def check_device(text: str | None) -> str | None:
    if text is not None and DEVICE.fullmatch(text) is None:
        raise typer.BadParameter(
            f"{text!r} is no device; valid: auto, cpu, cuda:ID[,ID...] (ID: index or UUID), or an entry for each rank: "
            "cuda:0,cuda:1,cpu,cpu"
        )
    return text


def check_output(path: Path | None) -> Path | None:
    """Refuses a file that cannot be written, before anything is measured. If the last line is incomplete, ends it, so
    that it does not spoil the next line."""
    if path is not None:
        try:
            path.open("a", encoding="utf-8").close()
            if path.is_file() and path.stat().st_size > 0:
                with path.open("rb+") as file:
                    file.seek(-1, os.SEEK_END)
                    if file.read() != b"\n":
                        file.write(b"\n")
        except OSError as error:
            raise typer.BadParameter(f"{path} cannot be written: {error.strerror}") from error
    return path


def timed(name: str, text: str, without_it: str) -> Any:
    """The option for how often something is timed; `without_it` describes the default."""
    return typer.Option(name, min=1, max=MAX_ITERATIONS, help=text, show_default=without_it)


Json = Annotated[bool, typer.Option("--json", help="Print JSON lines, and nothing else, on standard output.")]
RankCount = Annotated[int, typer.Option("--ranks", "-n", min=2, max=MAX_RANKS, help="Number of ranks.")]
Threads = Annotated[
    bool, typer.Option("--threads", help="Ranks are threads of one process: for C++ programs that call beeline::run.")
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="Where ranks run: auto, cpu, cuda:ID[,ID...] (ID: index or UUID), or an entry for each rank: "
        "cuda:0,cuda:1,cpu,cpu.",
        callback=check_device,
        show_default="BEELINE_DEVICE, or auto",
    ),
]
SplitNodes = Annotated[
    int | None,
    typer.Option(
        "--split-nodes", min=1, max=MAX_RANKS, metavar="K",
        help="Nodes that this machine counts as, by blocks of ranks; between nodes data goes over UCX.",
        show_default="BEELINE_SPLIT_NODES, or 1",
    ),
]  # fmt: skip
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Append the results to FILE as JSON lines.", callback=check_output),
]
Ranks = Annotated[str, typer.Option("--ranks", "-n", metavar="N[,N..]", help="Numbers of ranks.")]
Devices = Annotated[str, typer.Option("--devices", "-n", metavar="N[,N..]", help="Numbers of devices.")]
Methods = Annotated[
    str, typer.Option("--method", metavar="NAME,..", help="Methods by name, or all that are available.")
]
Energy = Annotated[
    float | None,
    typer.Option(
        "--energy", metavar="SECONDS", min=0.1, max=60, help="Also meter the joules of each method, for SECONDS."
    ),
]
NoVerify = Annotated[bool, typer.Option("--no-verify", help="Skip the comparison with the serial reference.")]
