# SPDX-License-Identifier: Apache-2.0
"""What people see: tables on standard output while results arrive, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from beeline.errors import InvalidArgumentError
from beeline.jobs import running
from beeline.programs import CliError
from beeline.records import Event, check, events_of, read
from beeline.texts import plain, printable, styled

# Rich assumes 80 columns where there is no terminal, which would cut identifiers short.
COLUMNS_WITHOUT_TERMINAL = 160
MISSING = "–"
BELOW_NOISE = "< noise"


class PlainConsole(Console):
    """Shows texts as they are, also where they look like rich's markup, or like a terminal's commands."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def make_console(stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else COLUMNS_WITHOUT_TERMINAL
    return PlainConsole(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def format_bytes(count: int) -> str:
    for shift, suffix in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << shift and count % (1 << shift) == 0:
            return f"{count >> shift} {suffix}"
    return f"{count} B"


def format_number(value: Any, digits: int = 4) -> str:
    """A number with `digits` significant ones; a dash for what is missing; text as it is."""
    if value is None:
        return MISSING
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def format_percent(value: Any) -> str:
    return f"{100 * value:.1f}" if isinstance(value, (int, float)) else MISSING


def format_share(share: Any) -> str:
    """In percent. The time of communication is a difference of two runs, which noise can turn negative."""
    return BELOW_NOISE if isinstance(share, (int, float)) and share < 0 else format_percent(share)


def format_verified(value: Any) -> str:
    return MISSING if value is None else "yes" if value else "NO"


def describe_build(environment: Event) -> str:
    """The commit that was measured, and whether its files had been changed."""
    commit = environment.get("commit") or "unknown"
    state = {True: "dirty", False: "clean"}.get(environment.get("dirty"), "dirty or clean unknown")
    return f"commit {commit}, {state}"


class PlainTable(Table):
    """Shows the texts of cells as they are."""

    def add_row(self, *cells: str, **options: Any) -> None:
        super().add_row(*map(styled, cells), **options)


def new_table(title: str, *columns: str) -> Table:
    """An empty table; a column whose name starts with `>` holds numbers. Names and numbers are not wrapped."""
    table = PlainTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for index, name in enumerate(columns):
        number = name.startswith(">")
        justify = "right" if number else "left"
        table.add_column(name.removeprefix(">"), justify=justify, no_wrap=index == 0 or number, overflow="fold")
    return table


Cell = Callable[[Event], str]


def field(key: str, show: Callable[[Any], str] = format_number, factor: float = 1) -> Cell:
    """A cell that shows the field of a result, numbers in other units; a dash where it is missing."""

    def cell(result: Event) -> str:
        value = result.get(key)
        return show(value * factor if factor != 1 and isinstance(value, (int, float)) else value)

    return cell


def per_joule(results: list[Event], unit: str, key: str) -> dict[str, Cell]:
    """The column of what a joule does, where results were metered."""
    return {f">{unit}\na joule": field(key)} if any(one.get("energy") for one in results) else {}


def result_table(title: str, columns: dict[str, Cell], results: list[Event]) -> Table:
    """A row for each result, of the columns' cells."""
    table = new_table(title, *columns)
    for result in results:
        table.add_row(*(cell(result) for cell in columns.values()))
    return table


def against(result: Event, results: list[Event], baseline: str, key: str, same: Sequence[str]) -> str:
    """How many times faster than the last result of method `baseline` that is the same in `same`.

    key  a time, in seconds, or a rate
    """
    like_it = {name: result.get(name) for name in same} | {"method": baseline}
    others = [one for one in results if all(one.get(name) == value for name, value in like_it.items())]
    if not others or not others[-1].get(key) or not result.get(key):
        return MISSING
    ratio = result[key] / others[-1][key]
    return f"{1 / ratio if key == 'seconds' else ratio:.2f}"


def devices_of(results: list[Event]) -> str:
    return ", ".join(dict.fromkeys(str(result.get("device")) for result in results))


def measured_of(results: list[Event]) -> list[Event]:
    return [one for one in results if one.get("median") is not None]


def not_measured(results: list[Event]) -> list[str]:
    """A line for each method of results without a median, and its reason."""
    without = [one for one in results if one.get("median") is None]
    lacking = dict.fromkeys((str(one.get("method")), str(one.get("reason"))) for one in without)
    return [f"not measured: {method}: {reason}" for method, reason in lacking]


Render = Callable[[list[Event]], RenderableType]


class ResultView:
    """Takes the events of one command, and shows them: as JSON lines, or as a table that grows, with a progress bar.

    Use it as a context manager; `render` makes the table from the results so far.
    """

    def __init__(self, as_json: bool, output: Path | None, render: Render) -> None:
        self.results: list[Event] = []
        self.taken: list[Event] = []
        """By the last `run`, also of a program that failed."""
        self._builds: list[str] = []
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
            for build in dict.fromkeys(self._builds):
                self._console.print(plain(build, "dim"))

    def run(self, command: list[str], label: Callable[[Event], str]) -> list[Event]:
        """Runs a program and takes its events, progress by the name that `label` gives it; returns them all."""
        self.taken = []
        with running(command, self.show_line) as events:
            for event in events:
                self._check(event, command)
                self.taken.append(event)
                if event.get("event") == "progress":
                    self.set_progress(label(event), event.get("done"), event.get("total"))
                else:
                    self.add(event)
        return self.taken

    def earlier(self) -> list[Event]:
        """What runs before this one have left in the output file, if it is one; their builds are shown, too."""
        if self._output is None or not self._output.is_file():  # a pipe or a device holds nothing, or has no end
            return []
        try:
            events = list(events_of(read(self._output)))
        except OSError as error:
            raise CliError(f"{self._output} cannot be read: {error.strerror}") from error
        self._builds += [describe_build(event) for event in events if event.get("event") == "environment"]
        return events

    def _check(self, event: Event, command: list[str]) -> None:
        try:
            check(event, f"output of {' '.join(command)}")
        except InvalidArgumentError as problem:
            raise CliError(str(problem)) from problem

    def show_earlier(self, results: list[Event]) -> None:
        """Shows results that the output file has already."""
        self.results += results
        if self._as_json:
            for one in results:
                print(json.dumps(one), flush=True)

    def add(self, event: Event) -> None:
        """Takes an event that is no progress: results get into the table, and all is passed on as JSON."""
        if event.get("event") == "result":
            self.results.append(event)
        elif event.get("event") == "environment":
            self._builds.append(describe_build(event))
        if event.get("event") == "result" and self._kept_back is not None:
            self._kept_back.append(event)
        else:
            self._write(event)
        self._refresh()

    @contextmanager
    def results_kept_back(self) -> Iterator[None]:
        """Inside, results are shown, but written at the end only, so that later ones may complete them."""
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

    def show_line(self, line: str) -> None:
        """A program's line that is no event: on standard error, without tearing the table."""
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
