# SPDX-License-Identifier: Apache-2.0
"""Records: JSON objects, one per line. This module reads and checks all records, from files and from programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from beeline.errors import InvalidArgumentError
from beeline.record_fields import fields_of

Event = dict[str, Any]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # editors may have put it before the first line
NAMED_LINES = 3
DEEPEST = 32  # nesting of objects and arrays


@dataclass(frozen=True)
class Line:
    """A line of a file that is not empty."""

    where: str
    """FILE:NUMBER."""
    event: Event | None
    """None: it is no JSON object."""
    is_cut: bool
    """The last line, without an end."""


def parse_event(line: str | bytes) -> Event | None:
    """The JSON object on a line; None for other text, and for numbers or levels that `decode` refuses."""
    with suppress(InvalidArgumentError):
        return decode(line, "")
    return None


def decode(line: str | bytes, where: str) -> Event | None:
    """As `parse_event`; raises InvalidArgumentError for numbers that are too large, and for too many levels."""
    try:
        event = msgspec.json.decode(line)
    except RecursionError:
        raise too_deep(where) from None
    except msgspec.ValidationError as problem:
        raise refusal(where, str(problem).split(" - at ")[0], name_of_fault(line)) from None
    except (msgspec.DecodeError, UnicodeError):
        return None
    if not isinstance(event, dict):
        return None
    if is_deep(event):
        raise too_deep(where)
    return event


def is_deep(event: Event) -> bool:
    level: list[Any] = [event]
    for _ in range(DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [child for children in inner for child in children if isinstance(child, (dict, list))]
    return bool(level)


def name_of_fault(line: str | bytes) -> str:
    """The field of the object whose value cannot be read; empty if none is found."""
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
        for name, value in msgspec.json.decode(line, type=dict[str, msgspec.Raw]).items():
            try:
                msgspec.json.decode(value)
            except msgspec.ValidationError:
                return name
    return ""


def too_deep(where: str) -> InvalidArgumentError:
    return refusal(where, f"objects and arrays inside each other on more than {DEEPEST} levels")


def refusal(where: str, problem: str, field: str = "") -> InvalidArgumentError:
    return InvalidArgumentError(f"{where}: {f'field {field!r}: ' if field else ''}{problem[:1].lower()}{problem[1:]}")


def check(event: Event, where: str) -> Event:
    """Raises InvalidArgumentError, with `where` and the field, if a field has the wrong type or an impossible value."""
    try:
        msgspec.convert(event, fields_of(event))
    except msgspec.ValidationError as problem:
        text, _, path = str(problem).partition(" - at `$")
        raise refusal(where, text, path.rstrip("`").removeprefix(".")) from None
    return event


def read(path: Path | str) -> Iterator[Line]:
    """The lines of a file, checked."""
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            if not text.strip():
                continue
            where = f"{path}:{number}"
            event = decode(text, where)
            yield Line(where, None if event is None else check(event, where), not text.endswith(b"\n"))


def events_of(lines: Iterable[Line]) -> Iterator[Event]:
    """Skips lines that are no JSON object, with messages on standard error: an interrupted run may have left a part of
    a line. A file of another kind has many such lines: those after the first NAMED_LINES are counted."""
    left_out = 0
    for line in lines:
        if line.event is not None:
            yield line.event
            continue
        left_out += 1
        if left_out <= NAMED_LINES:
            print(f"beeline: {line.where} is left out: no JSON object", file=sys.stderr)
    if left_out > NAMED_LINES:
        print(f"beeline: {left_out - NAMED_LINES} more lines are left out, which are no JSON objects", file=sys.stderr)
