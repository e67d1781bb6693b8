# SPDX-License-Identifier: Apache-2.0
"""The common part of all pictures. matplotlib is loaded when the first picture is drawn."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import typer

from beeline.programs import CliError
from beeline.texts import printable

FORMATS = (".png", ".svg")
# On dark pages the colours of an SVG are inverted; the rotation restores the hue of each curve.
DARK = "@media (prefers-color-scheme: dark){svg{filter: invert(0.93) hue-rotate(180deg)}}"


def check_picture(path: Path) -> Path:
    if path.suffix not in FORMATS:
        raise typer.BadParameter(f"{path} is no picture that can be written; valid: names that end in .png or .svg")
    return path


def new_figure(columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure and the list of its axes."""
    if importlib.util.find_spec("matplotlib") is None:
        raise CliError("plot needs matplotlib, which is not installed: pip install matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    # SVG text stays text, even with two dollar signs; element ids are the same in every run.
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "beeline", "text.parse_math": False}
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, columns, figsize=size, layout="constrained", squeeze=False)
    for each in axes[0]:
        each.set_prop_cycle(color=matplotlib.colormaps["tab20"].colors)
    return figure, axes[0]


def label_of(name: str) -> str:
    """A curve's name for a legend; matplotlib would leave out names that begin with an underscore."""
    return printable(f" {name}" if name.startswith("_") else name)


def scale_values(axes: Any, linear_times: float) -> None:
    """Makes the vertical axis linear from 0 if the largest value is less than `linear_times` the smallest, and
    logarithmic otherwise."""
    values = [value for line in axes.get_lines() for value in line.get_ydata() if not math.isnan(value)]
    if 0 < max(values, default=0) < linear_times * min(values):
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(number_text)


def number_text(value: float, _: int) -> str:
    return f"{value:,.12g}"


def save(figure: Any, output: Path, description: dict[str, Any]) -> None:
    from matplotlib import pyplot

    metadata: dict[str, Any] = {"Description": json.dumps(description)}
    if output.suffix == ".svg":
        metadata["Date"] = None  # equal records make equal files
    try:
        figure.savefig(output, metadata=metadata)
        if output.suffix == ".svg":
            text = output.read_text(encoding="utf-8")
            output.write_text(text.replace("</style>", f"{DARK}</style>", 1), encoding="utf-8")
    except OSError as error:
        raise CliError(f"cannot write {output}: {error.strerror}") from error
    pyplot.close(figure)
