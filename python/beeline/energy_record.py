# SPDX-License-Identifier: Apache-2.0
"""Records of `beeline energy`: JSON lines of the events `environment`, `sample` and `result`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from beeline.errors import InvalidArgumentError
from beeline.records import Event, Line, read


@dataclass
class Record:
    """The events that a run of `beeline energy` has written."""

    environment: Event
    samples: dict[str, list[Event]] = field(default_factory=dict)  # by component, in the order of time
    result: Event | None = None  # None: the record ends earlier than the program did

    @property
    def components(self) -> list[Event]:
        return self.environment["components"]


def read_record(path: Path | str) -> Record:
    """Reads a record. Leaves out a last line that is cut short, which the record of a failed machine may have.

    Raises InvalidArgumentError, with the line's number and the field, if the file is no record of `beeline energy`.
    """
    return record_of(path, read(path))


def record_of(path: Path | str, lines: Iterable[Line]) -> Record:
    """As `read_record`, for lines that the caller has read from the file at `path`."""
    record: Record | None = None
    for line in lines:
        if line.event is None and line.is_cut:
            break
        if line.event is None:
            raise InvalidArgumentError(f"{line.where}: no JSON object")
        try:
            record = add(record, line.event)
        except ValueError as problem:
            raise InvalidArgumentError(
                f"{line.where}: no line of a record of `beeline energy` ({problem})"
            ) from problem
    if record is None:
        raise InvalidArgumentError(f"{path} holds no record of `beeline energy`")
    return record


def add(record: Record | None, event: Event) -> Record:
    """Adds an event with valid fields; raises ValueError if the event does not belong there."""
    kind = event.get("event")
    if kind in ("environment", "result") and "components" not in event:
        raise ValueError("it has no components")
    if kind == "environment":
        return Record(event)
    if record is None:
        raise ValueError("the line of the environment, which comes first, is missing")
    if kind == "sample":
        if event["component"] not in {one["name"] for one in record.components}:
            raise ValueError(f"component {event['component']!r} is not in the environment")
        samples = record.samples.setdefault(event["component"], [])
        if samples and event["time_s"] < samples[-1]["time_s"]:
            raise ValueError(f"time_s goes back to {event['time_s']}")
        samples.append(event)
    elif kind == "result":
        record.result = event
    return record
