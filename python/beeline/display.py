# SPDX-License-Identifier: Apache-2.0
"""The display: tables on standard output while results arrive, everything else on standard error."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from beeline.errors import InvalidArgumentError
from beeline.figures import LARGE_DEVIATION, is_uncertain
from beeline.fitted_table import FittedTable
from beeline.jobs import running
from beeline.programs import CliError
from beeline.records import Event, check, events_of, read
from beeline.texts import plain, printable

MISSING = "–"
VERIFIED = "verified"  # the column of `format_verified`
BELOW_NOISE = "< noise"
UNCERTAIN = "~"
UNCERTAIN_DIGITS = 2
OFF = f"over {100 * LARGE_DEVIATION:.0f} % off the median"
NOTES = {  # by the beginning of the cells that need the note
    "bare/": "bare: the same work on the same memory, in a loop without Beeline",
    UNCERTAIN: f"{UNCERTAIN} uncertain: a quarter of the samples or more are {OFF}",
}
SECONDS_BETWEEN_LINES = 10  # of progress, where the output is no terminal
FEW = 3  # methods of a family that are named one by one
NUMBER = re.compile(r"\d+")


class Screen(Console):
    """Prints lines that are too wide unbroken, for the terminal to break: a name that is cut short is useless. Shows
    texts unchanged, even if they look like rich's markup or a terminal's control sequences."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{"crop": False} | options)


def make_console(stderr: bool = False) -> Console:
    """A console as wide as the terminal, or as COLUMNS says; otherwise 80 columns."""
    return Screen(stderr=stderr, highlight=False, markup=False, emoji=False)


def format_bytes(count: int) -> str:
    for shift, suffix in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift and count % (1 << shift) == 0:
            return f"{count >> shift} {suffix}"
    return f"{count} B"


def format_number(value: Any, digits: int = 4) -> str:
    """A number with `digits` significant digits; a dash for a missing value; text unchanged."""
    if value is None:
        return MISSING
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def format_figure(value: Any, *of: Event | None, digits: int = 4) -> str:
    """A number that was computed from these results: marked, and rounded, if one of them is uncertain."""
    if value is None or not is_uncertain(*of):
        return format_number(value, digits)
    return UNCERTAIN + format_number(float(f"{value:.{UNCERTAIN_DIGITS}g}"))


def format_percent(value: Any, *of: Event | None) -> str:
    if not isinstance(value, (int, float)):
        return MISSING
    return f"{UNCERTAIN}{100 * value:.0f}" if is_uncertain(*of) else f"{100 * value:.1f}"


def format_share(share: Any, *of: Event | None) -> str:
    """A share in percent. The time of communication is a difference of two runs, which noise can make negative."""
    return BELOW_NOISE if isinstance(share, (int, float)) and share < 0 else format_percent(share, *of)


def format_verified(value: Any) -> str:
    return MISSING if value is None else "yes" if value else "NO"


def describe_run(environment: Event) -> list[str]:
    """Notes on whether host ranks shared cores; on the measured commit, and whether its files had been changed."""
    commit = environment.get("commit") or "unknown"
    state = {True: "dirty", False: "clean"}.get(environment.get("dirty"), "dirty or clean unknown")
    return [*describe_crowd(environment), f"commit {commit}, {state}"]


def describe_crowd(environment: Event) -> list[str]:
    host, devices = environment.get("host"), environment.get("devices") or []
    cores = host.get("cores_allowed") if isinstance(host, dict) else None
    ranks = sum(one.get("kind") == "host" for one in devices)
    return [f"{ranks} ranks share {cores} cores: runs differ more than the samples of a run"] * bool(
        cores and ranks > cores
    )


def new_table(title: str, *columns: str, keys: int = 1) -> FittedTable:
    """An empty table. Columns whose names start with `>` hold numbers; the first `keys` columns name a row."""
    return FittedTable(title, columns, keys)


def explained(table: FittedTable, *notes: str) -> FittedTable:
    """The table with lines below it: `notes`, and the meaning of its marks."""
    cells = [cell for row in table.rows for cell in row]
    table.notes += [*notes, *(note for mark, note in NOTES.items() if any(cell.startswith(mark) for cell in cells))]
    return table


def better(unit: str) -> str:
    return "higher is better" if unit.endswith("/s") else "lower is better"


Cell = Callable[[Event], str]


def field(key: str, show: Callable[[Any], str] = format_number, factor: float = 1) -> Cell:
    """A cell that shows the field of a result, multiplied by `factor`; a dash if it is missing."""

    def cell(result: Event) -> str:
        value = result.get(key)
        return show(value * factor if factor != 1 and isinstance(value, (int, float)) else value)

    return cell


def figure(key: str, show: Callable[..., str] = format_figure, factor: float = 1) -> Cell:
    """As `field`, for a figure that is marked as uncertain if the samples of the result vary much."""

    def cell(result: Event) -> str:
        value = result.get(key)
        return show(value * factor if isinstance(value, (int, float)) else value, result)

    return cell


def per_joule(results: list[Event], unit: str, key: str) -> dict[str, Cell]:
    """The column of work per joule, if results were metered."""
    return {f">{unit}\na joule": field(key)} if any(one.get("energy") for one in results) else {}


def result_table(title: str, columns: dict[str, Cell], results: list[Event], *notes: str, keys: int = 1) -> FittedTable:
    """A row for each result, with the columns' cells; below, `notes`, and the meaning of marks. If all results were
    verified, one line says so, instead of a column."""
    shown = [{name: cell(result) for name, cell in columns.items()} for result in results]
    if shown and all(row.get(VERIFIED) == format_verified(True) for row in shown):
        columns = {name: cell for name, cell in columns.items() if name != VERIFIED}
        notes = ("verified: yes, each result", *notes)
    table = new_table(title, *columns, keys=keys)
    for row in shown:
        table.add_row(*(row[name] for name in columns))
    return explained(table, *notes)


def against(result: Event, results: list[Event], baseline: str, key: str, same: Sequence[str]) -> str:
    """The speed-up over the result of method `baseline` that agrees in the fields `same`. Of several, which runs on
    other numbers of ranks or devices have measured, the last before `result`, else the first.

    key  a time, in seconds, or a rate
    """
    like_it = {name: result.get(name) for name in same} | {"method": baseline}
    there = next(i for i, one in enumerate(results) if one is result)
    others = [(i, one) for i, one in enumerate(results) if all(one.get(name) == like_it[name] for name in like_it)]
    if not others:
        return MISSING
    other = ([one for i, one in others if i <= there] or [others[0][1]])[-1]
    if not other.get(key) or not result.get(key):
        return MISSING
    ratio = result[key] / other[key]
    of = () if result is other else (result, other)
    return format_ratio(1 / ratio if key == "seconds" else ratio, *of)


def against_one_device(results: list[Event], same: Sequence[str]) -> dict[str, Cell]:
    """The column of speed-ups over the results on one device that agree in the fields `same`; none if no result, or
    each of them, is of one device."""

    def key_of(one: Event) -> str:
        return str([one.get(name) for name in same])

    alone = {key_of(one): one for one in results if one.get("devices") == 1}

    def cell(one: Event) -> str:
        other = alone.get(key_of(one))
        if other is None or not other.get("seconds") or not one.get("seconds"):
            return MISSING
        return format_ratio(other["seconds"] / one["seconds"], *(() if one is other else (one, other)))

    several = any(one.get("devices") != 1 for one in results)
    return {">against\none\ndevice": cell} if alone and several else {}


def format_ratio(ratio: float, *of: Event) -> str:
    return format_figure(ratio, *of) if is_uncertain(*of) else f"{ratio:.2f}"


def devices_of(results: list[Event]) -> str:
    return ", ".join(dict.fromkeys(str(result.get("device")) for result in results))


def measured_of(results: list[Event]) -> list[Event]:
    return [one for one in results if one.get("median") is not None]


def not_measured(results: list[Event]) -> list[Text]:
    """A line for each reason of unavailable results, with the methods concerned. Reasons that differ only in numbers,
    as for each size, are merged and shown with the first numbers."""
    there = {str(one.get("method")) for one in results if not is_lacking(one)}
    reasons: dict[str, str] = {}
    methods: dict[str, dict[str, dict[str, None]]] = {}
    for one in filter(is_lacking, results):
        reason = str(one.get("reason"))
        kind = NUMBER.sub("N", reason)
        reasons.setdefault(kind, reason)
        methods.setdefault(kind, {}).setdefault(str(one.get("method")), {})[str(one.get("operation"))] = None
    return [plain(f"not measured: {concerned(methods[kind], there)}: {reason}") for kind, reason in reasons.items()]


def is_lacking(result: Event) -> bool:
    return result.get("available") is False or ("median" in result and result["median"] is None)


def concerned(methods: Mapping[str, Iterable[str]], there: set[str]) -> str:
    """The names of the methods; a family that is missing altogether as one name; with operations if a method has
    others."""

    def name_of(method: str, operations: Iterable[str]) -> str:
        family = method.split("/")[0] + "/"
        is_whole = not any(name.startswith(family) for name in there)
        if is_whole and sum(name.startswith(family) for name in methods) > FEW:
            return f"{family}*"
        return f"{method} ({', '.join(operations)})" if method in there else method

    return ", ".join(dict.fromkeys(name_of(*one) for one in methods.items()))


Render = Callable[[list[Event]], RenderableType]


class ResultView:
    """Takes the events of one command, and shows them as JSON lines, or as a table that grows, with a progress bar.

    Use it as a context manager; `render` makes the table from the results so far.
    """

    def __init__(self, as_json: bool, output: Path | None, render: Render) -> None:
        self.results: list[Event] = []
        self.taken: list[Event] = []
        """By the last `run`, also of a program that failed."""
        self.listed: dict[tuple[str, ...], list[Event]] = {}
        """What programs say of their methods, by the command that asked: many runs of them ask the same."""
        self._remarks: list[str] = []
        self._kept_back: list[Event] | None = None
        self._as_json = as_json
        self._output = output
        self._render = render
        self._console = make_console(stderr=as_json)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=self._console,
        )  # fmt: skip
        self._task = self._progress.add_task("starting", total=None)
        self._live: Live | None = None
        self._begun = self._told = time.monotonic()

    def __enter__(self) -> ResultView:
        if self._console.is_terminal:
            self._live = Live(self._body(), console=self._console, transient=True, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
        if not self._as_json and self.results:
            self._console.print(self._render(self.results))
            for remark in dict.fromkeys(self._remarks):
                self._console.print(plain(remark, "dim"))

    def run(
        self, command: list[str], label: Callable[[Event], str], check: Callable[[Event], None] = lambda _: None
    ) -> list[Event]:
        """Runs a program and returns all its events; `label` names the progress. An exception of `check` ends the
        program."""
        self.taken = []
        with running(command, self.show_line) as events:
            for event in events:
                self._check(event, command)
                self.taken.append(event)
                if event.get("event") == "progress":
                    self.set_progress(label(event), event.get("done"), event.get("total"))
                else:
                    self.add(event)
                check(event)
        return self.taken

    def earlier(self) -> list[Event]:
        """The events of earlier runs in the output file, if it is a regular file; also shows remarks on them."""
        if self._output is None or not self._output.is_file():  # a pipe or device has no earlier events, or no end
            return []
        try:
            events = list(events_of(read(self._output)))
        except OSError as error:
            raise CliError(f"{self._output} cannot be read: {error.strerror}") from error
        self._remarks += [one for event in events if event.get("event") == "environment" for one in describe_run(event)]
        return events

    def _check(self, event: Event, command: list[str]) -> None:
        try:
            check(event, f"output of {' '.join(command)}")
        except InvalidArgumentError as problem:
            raise CliError(str(problem)) from problem

    def show_earlier(self, results: list[Event]) -> None:
        """Shows results that are already in the output file."""
        self.results += results
        if self._as_json:
            for one in results:
                print(json.dumps(one), flush=True)

    def add(self, event: Event) -> None:
        """Takes an event that is not progress: results go to the table, and every event is passed on as JSON."""
        if event.get("event") == "result":
            self.results.append(event)
        elif event.get("event") == "environment":
            self._remarks += describe_run(event)
        if event.get("event") == "result" and self._kept_back is not None:
            self._kept_back.append(event)
        else:
            self._write(event)
        self._refresh()

    @contextmanager
    def results_kept_back(self) -> Iterator[None]:
        """Inside, results are shown, but only written at the end, so that later results may complete them."""
        self._kept_back = []
        try:
            yield
        finally:
            kept_back, self._kept_back = self._kept_back, None
            for event in kept_back:
                self._write(event)

    def _write(self, event: Event) -> None:
        line = json.dumps(event)
        if self._as_json:
            print(line, flush=True)
        if self._output is not None:
            try:
                with self._output.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
            except OSError as error:
                raise CliError(f"{self._output} cannot be written: {error.strerror}") from error

    def set_progress(self, label: str, done: Any = None, total: Any = None) -> None:
        completed = done if isinstance(done, (int, float)) else 0
        of_all = total if isinstance(total, (int, float)) else None
        self._progress.update(self._task, description=printable(label), completed=completed, total=of_all)
        self._refresh()
        now = time.monotonic()
        if self._live is None and now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            of = f", {completed:g} of {of_all:g} done" if of_all else ""
            print(f"{printable(label)}{of}, after {now - self._begun:.0f} s", file=sys.stderr, flush=True)

    def show_line(self, line: str) -> None:
        """Shows a program's line that is not an event: on standard error, without breaking the table."""
        if self._live is not None and sys.stderr.isatty():
            self._console.print(line, style="dim")
        else:
            print(line, file=sys.stderr, flush=True)

    def _body(self) -> RenderableType:
        if self._as_json or not self.results:
            return self._progress
        return Group(self._render(self.results), self._progress)

    def _refresh(self) -> None:
        if self._live is not None:
            self._live.update(self._body())
