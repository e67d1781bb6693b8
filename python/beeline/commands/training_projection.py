# SPDX-License-Identifier: Apache-2.0
"""`beeline app training-projection`: what measured reductions would make of trainings of neural networks.

Source: seed 003, its deep-learning study: a training that is blocked on reductions for a share b of its time under the
baseline becomes 1 / (1 - b + b / s) times as quick where the reductions become s times as quick.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from beeline import options
from beeline.display import explained, format_bytes, make_console, new_table
from beeline.programs import CliError
from beeline.records import Event, events_of, read

BASELINE = "host"


@dataclass(frozen=True)
class Training:
    """A network of seed 003, with the share of its time that waits for reductions, driven by hosts."""

    name: str
    blocked: float
    reductions: int

    def speed_up(self, of_reductions: float) -> float:
        return 1 / (1 - self.blocked + self.blocked / of_reductions)

    @property
    def ceiling(self) -> float:
        return 1 / (1 - self.blocked)


TRAININGS = (
    Training("AlexNet", 0.14, 4_672),
    Training("AN4 LSTM", 0.50, 131_192),
    Training("CIFAR", 0.04, 939_820),
    Training("Large Synth", 0.28, 52_800),
    Training("MNIST Conv", 0.12, 900_000),
    Training("MNIST Hidden", 0.29, 900_000),
)


def training_projection(
    records: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD", help="Files of JSON lines of `beeline app ring-reduction`.", exists=True, dir_okay=False
        ),
    ],
    as_json: options.Json = False,
) -> None:
    """Project trainings of neural networks from measured ring reductions, for each control against `host`."""
    projections = [one for path in records for one in projections_of(path)]
    if as_json:
        for one in projections:
            print(json.dumps(one), flush=True)
        return
    console = make_console()
    for ranks, size in dict.fromkeys((one["ranks"], one["bytes"]) for one in projections):
        mine = [one for one in projections if (one["ranks"], one["bytes"]) == (ranks, size)]
        schemes = [f">{one['method']}\nx {one['reduction_speed_up']:.2f}" for one in mine]
        table = new_table(
            f"Speed-up of trainings, {ranks} ranks, reductions of {format_bytes(size)}",
            "training", ">blocked", *schemes, ">at most",
        )  # fmt: skip
        for training in TRAININGS:
            speed_ups = [f"{one['speed_ups'][training.name]:.3f}" for one in mine]
            table.add_row(training.name, f"{training.blocked:.0%}", *speed_ups, f"{training.ceiling:.2f}")
        console.print(explained(table, "higher is better"))


def projections_of(path: Path) -> list[Event]:
    """One for each scheme, number of ranks and size that was timed and verified beside the baseline."""
    timed = [
        one for one in events_of(read(path))
        if one.get("app") == "ring_reduction" and one.get("seconds") and one.get("verified") is not False
    ]  # fmt: skip
    baselines = {(one["ranks"], one["bytes"]): one["seconds"] for one in timed if one["method"] == BASELINE}
    if not baselines:
        raise CliError(
            f"{path} has no reduction by {BASELINE}, which the others are compared with: measure it beside them, as by "
            "--method all"
        )
    projections: list[Event] = []
    for one in timed:
        place = (one["ranks"], one["bytes"])
        if place not in baselines:
            continue
        of_reductions = baselines[place] / one["seconds"]
        projections.append(
            {
                "event": "projection",
                "method": one["method"],
                "ranks": one["ranks"],
                "bytes": one["bytes"],
                "reduction_speed_up": of_reductions,
                "speed_ups": {each.name: each.speed_up(of_reductions) for each in TRAININGS},
            }
        )
    return projections
