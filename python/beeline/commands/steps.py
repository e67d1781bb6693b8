# SPDX-License-Identifier: Apache-2.0
"""Commands that measure for long, in steps: what was measured is in the record, and a later run goes on behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from beeline.display import ResultView
from beeline.jobs import Event

STEP = "energy_step"  # the event that says which step is over, and how many results it has


def run_steps(view: ResultView, steps: Mapping[str, Callable[[str], None]]) -> None:
    """Runs each step, by name, with the label of its progress, unless the output file has it already: then its results
    are shown with the others."""
    over = results_by_step(view.earlier())
    for number, (name, run) in enumerate(steps.items(), 1):
        if name in over:
            view.show_line(f"{name}: measured by an earlier run")
            view.results += over[name]
            continue
        before = len(view.results)
        run(f"{number}/{len(steps)} {name}")
        view.add({"event": STEP, "name": name, "results": len(view.results) - before})


def results_by_step(events: list[Event]) -> dict[str, list[Event]]:
    """Of the steps that are over, and whose results are all there; not what a step that was stopped has left."""
    found: dict[str, list[Event]] = {}
    results: list[Event] = []
    for event in events:
        if event.get("event") == "result":
            results.append(event)
        elif event.get("event") == STEP:
            begin = len(results) - event.get("results", 0)
            if begin >= 0:
                found[event["name"]] = results[begin:]
            results = []
    return found
