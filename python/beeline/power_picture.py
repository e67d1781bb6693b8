# SPDX-License-Identifier: Apache-2.0
"""Power over time by component, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from beeline.energy_record import Record
from beeline.picture import label_of, new_figure, save
from beeline.records import Event
from beeline.texts import printable


def draw_power(record: Record, output: Path) -> list[str]:
    """Draws a curve for each component that has power; returns their names. Without any, draws no picture."""
    curves = {
        name: [(one["time_s"], one["watts"]) for one in samples if one.get("watts") is not None]
        for name, samples in record.samples.items()
    }
    curves = {name: points for name, points in curves.items() if points}
    if not curves:
        return []
    figure, (axes,) = new_figure(1, (10, 5))
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), label=label_of(with_joules(name, record)), linewidth=1)
    axes.set_xlabel("time, s")
    axes.set_ylabel("power, W")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.set_title(printable(" ".join(record.environment.get("arguments", []))))
    figure.legend(loc="outside right upper", fontsize="small")
    save(figure, output, {"curves": list(curves)})
    return list(curves)


def draw_runs(results: list[Event], output: Path) -> list[str]:
    """Draws power over time of applications' methods, with a panel for each component. For each method, number of
    ranks and size it shows the run with the most iterations. Returns the curves' names."""
    sizes = {str(one.get("size")) for one in results}
    longest: dict[str, Event] = {}
    for one in sorted(results, key=lambda one: one.get("iterations") or 0):
        size = ["×".join(map(str, one.get("size") or []))] if len(sizes) > 1 else []
        longest[", ".join([one["method"], f"{one['ranks']} ranks", *size])] = one
    components = list(dict.fromkeys(name for one in longest.values() for name in one["energy"]["power"]))
    figure, panels = new_figure(len(components), (5 + 5 * len(components), 5))
    for panel, component in zip(panels, components, strict=True):
        for label, one in longest.items():
            points = one["energy"]["power"].get(component, [])
            times, watts = zip(*points, strict=True) if points else ((), ())  # empty: the next curve keeps its colour
            panel.plot(times, watts, label=label_of(label), linewidth=1)
        panel.set_xlabel("time, s")
        panel.set_ylabel(printable(f"power of {component}, W"))
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    save(figure, output, {"curves": list(longest)})
    return list(longest)


def with_joules(name: str, record: Record) -> str:
    energies: list[dict[str, Any]] = record.result["components"] if record.result else []
    joules = next((one["joules"] for one in energies if one["name"] == name), None)
    return name if joules is None else f"{name}: {joules:,.0f} J"
