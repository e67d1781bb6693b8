# SPDX-License-Identifier: Apache-2.0
"""Figures that documents take from records of measurements: the marks that say where each comes from.

A mark is a comment behind a table or a paragraph. Its first line names a record; each of its other lines has one form:

    <!-- record 2030-01-31_4xH200_latency
    each: type=float32                          holds for all cells of the table
    columns: bytes=8; bytes=4K                  for each column behind the first; left out: headings are sizes
    rows: method=device/peer/signal; -          for each row; a dash: not compared; left out: labels in backticks
    numbers: value=median; method=nccl/stream   for each number of a cell; left out: a cell has one
    0.98 = method=device/peer/signal bytes=8    a number of the paragraph or table
    × 1.5 = bytes=8 method=x OVER bytes=8 method=y
    -->

What stands behind the equals signs are fields of a result or of its `settings`; commas divide alternatives. `value`
names the field that is shown (`median` unless given), `times` a factor, `record` another record, or several. Where
several results of another library or of a bare loop fit, the best of them counts; of Beeline's own results exactly one
has to fit, unless `range=low` or `range=high` asks for an end of what several of them have.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = re.compile(r"<!-- record (\S+)\n(.*?)-->\n?", re.DOTALL)
PROGRAM = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(~?)(-?\d[\d,]*(?:\.\d+)?)")
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)i?B")
PEERS = re.compile(r"(^|/)(nccl|nvshmem|mpi|mpi4py|gloo|ucx|bare)(/|$)|^torch/")
TUNING = {"threads_per_block", "group", "chunk_bytes", "streams_per_pair", "slots", "buffers", "algorithm", "order"}
RATES = {"mflops", "updates_per_second", "reductions_per_second", "nodes_per_second", "bus_gb_per_s"}
WORDS = {"value", "times", "record", "range"}

Constraints = dict[str, str]


class WrongFigure(Exception):
    """A figure that its record does not contain, or a mark without a clear meaning."""


@dataclass
class Counted:
    """Counts of numbers that were compared and of numbers in tables that a dash leaves out, and the errors."""

    compared: int = 0
    left_out: int = 0
    wrong: list[str] = field(default_factory=list)
    unverified: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)


@functools.cache
def results(path: Path) -> list[dict[str, Any]]:
    """The available results of a record, each with `is_checked`: whether the run verified its data."""
    found, is_checked = [], True
    for line in path.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if one.get("event") == "environment":
            is_checked = "--no-verify" not in one.get("arguments", [])
        elif one.get("event", "result") == "result" and one.get("available", True):
            found.append(one | {"is_checked": is_checked})
    return found


def look_up(result: dict[str, Any], name: str) -> Any:
    for outer in (result, result.get("settings") or {}):
        inner: Any = outer
        for part in name.split("."):
            inner = inner.get(part) if isinstance(inner, dict) else None
        if inner is not None:
            return inner
    return None


def size(text: str) -> str:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT])", text)
    return text if match is None else str(int(float(match[1]) * 1024 ** ("KMGT".index(match[2]) + 1)))


@functools.cache
def alternatives(wanted: str) -> frozenset[str]:
    """The values that a constraint admits; a field may also be a list."""
    texts = [wanted, *wanted.split(",")]
    return frozenset([*texts, *map(size, texts)])


def parse(text: str) -> Constraints:
    pairs = [word.partition("=") for word in text.split()]
    if any(not value for _, _, value in pairs):
        raise WrongFigure(f"`{text}` is no list of FIELD=VALUE")
    return {name: value for name, _, value in pairs}


def fits(result: dict[str, Any], constraints: Constraints) -> bool:
    for name, wanted in constraints.items():
        if name in WORDS:
            continue
        value = look_up(result, name)
        if ("none" if value is None else str(value).replace(" ", "")) not in alternatives(wanted):
            return False
    return True


def recorded(folder: Path, constraints: Constraints, counted: Counted) -> float:
    """The value of the one result that fits, or of the best one if another library's results are asked for."""
    names, shown, end = constraints["record"].split(","), constraints.get("value", "median"), constraints.get("range")
    if lost := [name for name in names if not (folder / f"{name}.jsonl").exists()]:
        raise WrongFigure(f"there is no record {lost}")
    every = [one for name in names for one in results(folder / f"{name}.jsonl")]
    found = [one for one in every if fits(one, constraints) and isinstance(look_up(one, shown), int | float)]
    if not found:
        raise WrongFigure(f"no result has {constraints}")
    are_peers = all(PEERS.search(str(one.get("method"))) for one in found)
    if are_peers and TUNING & constraints.keys():
        raise WrongFigure(f"{TUNING & constraints.keys()} picks one of the peer's results: {constraints}")
    if len(found) > 1 and not are_peers and end is None:
        choices = [one.get("settings") for one in found]
        raise WrongFigure(f"{len(found)} results have {constraints}: {choices}")
    is_rate = shown in RATES or (shown == "median" and str(found[0].get("unit")).endswith("/s"))
    takes_most = is_rate if end is None else end == "high"
    best = (max if takes_most else min)(found, key=lambda one: look_up(one, shown))
    counted.records.update(names)
    if not best["is_checked"]:
        counted.unverified.update(names)
    return float(look_up(best, shown)) * float(constraints.get("times", 1))


def shows(text: str, value: float) -> bool:
    """Whether a printed number is the value, rounded to the printed digits; with a `~` to two digits."""
    match = NUMBER.search(text)
    assert match is not None
    plain = match[2].replace(",", "")
    if match[1]:
        return f"{float(plain):.1e}" == f"{value:.1e}"
    unit = 10.0 ** -len(plain.partition(".")[2])
    return abs(float(plain) - value) <= unit * 0.5000001


def cells_of(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.strip().splitlines()]


def column_default(heading: str) -> str:
    match = SIZE.search(heading)
    return "-" if match is None else f"bytes={match[1]}{match[2]}"


def row_default(label: str) -> str:
    match = re.search(r"`([^`]+)`", label)
    return "-" if match is None else f"method={match[1].replace(' ', '')}"


def lines_of(body: str) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """The lists in a mark, and its single figures."""
    lists, single = {}, []
    for line in filter(None, map(str.strip, body.splitlines())):
        match = re.match(r"(each|columns|rows|numbers): (.*)", line)
        if match:
            lists.setdefault(match[1], []).extend(one.strip() for one in match[2].rstrip(";").split(";"))
        elif " = " in line:
            text, _, query = line.partition(" = ")
            single.append((text.strip(), query))
        else:
            raise WrongFigure(f"not understood: {line}")
    return lists, single


def compare(folder: Path, text: str, queries: list[Constraints], where: str, counted: Counted) -> None:
    try:
        values = [recorded(folder, query, counted) for query in queries]
        value = values[0] if len(values) == 1 else values[0] / values[1]
        counted.compared += 1
        if not shows(text, value):
            counted.wrong.append(f"{where}: {text}, the record has {value:.6g} ({queries})")
    except WrongFigure as problem:
        counted.wrong.append(f"{where}: {text}: {problem}")


def check_table(folder: Path, record: str, table: str, lists: dict[str, list[str]], counted: Counted) -> None:
    head, _, *rows = cells_of(table)
    columns = lists.get("columns") or [column_default(one) for one in head[1:]]
    labels = lists.get("rows") or [row_default(row[0]) for row in rows]
    numbers = lists.get("numbers", [""])
    if len(columns) != len(head) - 1 or len(labels) != len(rows) or {len(row) for row in rows} != {len(head)}:
        raise WrongFigure(f"{len(head) - 1} columns, {len(rows)} rows; the mark has {len(columns)}, {len(labels)}")
    for row, of_row in zip(rows, labels, strict=True):
        for cell, of_column in zip(row[1:], columns, strict=True):
            found = [match[0] for match in NUMBER.finditer(cell)]
            if not found:
                continue
            if "-" in (of_row, of_column):
                counted.left_out += len(found)
                continue
            where = f"{record}, row {row[0]}"
            if len(found) > len(numbers):
                counted.wrong.append(f"{where}: {cell}: {len(found)} numbers, the mark has {len(numbers)}")
            for one, of_number in zip(found, numbers, strict=False):
                if of_number == "-":
                    counted.left_out += 1
                    continue
                query = {"record": record}
                for part in (*lists.get("each", []), of_column, of_row, of_number):
                    query |= parse(part)
                compare(folder, one, [query], where, counted)


def check_mark(folder: Path, record: str, block: str, body: str, counted: Counted) -> None:
    lists, single = lines_of(body)
    if lists or not single:
        check_table(folder, record, block, lists, counted)
    plain = " ".join(block.split())
    for text, query in single:
        if not re.search(rf"(?<![\d.,]){re.escape(text)}(?![\d]|[.,]\d)", plain):
            counted.wrong.append(f"{record}: the text has no `{text}`")
            continue
        queries = [{"record": record} | parse(one) for one in query.split(" OVER ")]
        compare(folder, text, queries, record, counted)


def check_document(document: Path, folder: Path) -> Counted:
    """Compares all marked figures of a document with the records in `folder`."""
    text, counted = PROGRAM.sub("", document.read_text(encoding="utf-8")), Counted()
    for match in MARK.finditer(text):
        before = MARK.sub("", text[: match.start()]).rstrip()
        block = re.split(r"\n\s*\n", before)[-1]
        try:
            check_mark(folder, match[1], block, match[2], counted)
        except WrongFigure as problem:
            counted.wrong.append(f"{match[1]}: {problem}")
    return counted
