# SPDX-License-Identifier: Apache-2.0
"""Records of `beeline energy`: JSON lines of the events `environment`, `sample` and `result`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from beeline.errors import InvalidArgumentError
from beeline.jobs import Event, lines_of, parse_event


@dataclass
class Record:
    """What a run of `beeline energy` left."""

    environment: Event
    samples: dict[str, list[Event]] = field(default_factory=dict)  # by component, in the order of time
    result: Event | None = None  # None: the record ends before the program did

    @property
    def components(self) -> list[Event]:
        return self.environment["components"]


def read_record(path: Path | str) -> Record:
    """Reads a record. A last line that is cut short is left out, as the record of a machine that failed has one.

    Raises InvalidArgumentError, with the line's number, for what is no record of `beeline energy`.
    """
    path = Path(path)
    lines = lines_of(path)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    record: Record | None = None
    for number, line in enumerate(lines, 1):
        event = parse_event(line)
        if event is None:
            raise InvalidArgumentError(f"{path}:{number}: no JSON object: {line.strip()[:60]!r}")
        try:
            record = add(record, event)
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidArgumentError(
                f"{path}:{number}: no line of a record of `beeline energy` ({problem})"
            ) from problem
    if record is None:
        raise InvalidArgumentError(f"{path} holds no record of `beeline energy`")
    return record


def add(record: Record | None, event: Event) -> Record:
    if event["event"] == "environment":
        for one in event["components"]:
            if missing := {"kind", "name", "device", "tick_s", "range_joules"} - set(one):
                raise ValueError(f"a component without {', '.join(sorted(missing))}")
        if not all(isinstance(one, str) for one in event.get("arguments", [])):
            raise ValueError("arguments that are no texts")
        return Record(event)
    if record is None:
        raise ValueError("the line of the environment, which comes first, is missing")
    if event["event"] == "sample":
        if event["component"] not in {one["name"] for one in record.components}:
            raise ValueError(f"component {event['component']!r} is not in the environment")
        samples = record.samples.setdefault(event["component"], [])
        if samples and float(event["time_s"]) < samples[-1]["time_s"]:
            raise ValueError(f"time_s goes back to {event['time_s']}")
        samples.append(event)
    elif event["event"] == "result":
        for one in event["components"]:
            if missing := {"name", "joules"} - set(one):
                raise ValueError(f"a component without {', '.join(sorted(missing))}")
        record.result = event
    return record
