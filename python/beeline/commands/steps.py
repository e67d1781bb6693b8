# SPDX-License-Identifier: Apache-2.0
"""Commands that measure for long, in steps: finished steps are in the record, and a later run continues after them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from beeline.display import ResultView
from beeline.jobs import Event

STEP = "energy_step"  # the event at the end of a step: the step's name, its options, and its number of results
SECRET = "BEELINE_TOKEN"


def run_steps(
    view: ResultView,
    steps: Mapping[str, Callable[[str], bool]],
    options: Event,
    before: Callable[[list[str]], None] = lambda _: None,
) -> None:
    """Runs each step, by name, with the label of its progress, unless the output file has it already, with the same
    options and variables: then its results are shown with the others. A step returns whether it is over, or has left
    something to a later run. `before` gets the names of the steps that are not over, the next one first."""
    asked = options | {"variables": variables()}
    earlier = view.earlier()
    over = results_by_step(earlier, asked)
    others = {event.get("name") for event in earlier if event.get("event") == STEP} - set(over)
    for number, (name, run) in enumerate(steps.items(), 1):
        if name in over:
            view.show_line(f"{name}: measured by an earlier run")
            view.show_earlier(over[name])
            continue
        if name in others:
            view.show_line(f"{name}: measured again: an earlier run had other options, or left no whole results")
        before([one for one in list(steps)[number - 1 :] if one not in over])
        count = len(view.results)
        if run(f"{number}/{len(steps)} {name}"):
            view.add({"event": STEP, "name": name, "asked": asked, "results": len(view.results) - count})


def variables() -> dict[str, str]:
    """Beeline's variables that are set, without those that are paths, because records are published."""
    ours = {name: text for name, text in os.environ.items() if name.startswith("BEELINE_") and name != SECRET}
    return {name: text for name, text in sorted(ours.items()) if "/" not in text}


def results_by_step(events: list[Event], asked: Event) -> dict[str, list[Event]]:
    """Of the steps that are over, were asked for so, and whose results are all there; not what a step that was stopped
    has left."""
    found: dict[str, list[Event]] = {}
    results: list[Event] = []
    for event in events:
        if event.get("event") == "result":
            results.append(event)
        elif event.get("event") == STEP:
            begin = len(results) - event.get("results", 0)
            if begin >= 0 and event.get("asked") == asked:
                found[event["name"]] = results[begin:]
            results = []
    return found
