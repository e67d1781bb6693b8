# SPDX-License-Identifier: Apache-2.0
"""Tables that fit the screen: no name and no number is broken; columns that do not fit form further parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from beeline.texts import plain, styled

INDENT = 1
GAP = 2  # columns of the screen between two columns of a table
READABLE = 20  # text is not broken into lines of fewer characters


@dataclass
class Column:
    name: str
    is_number: bool
    cells: list[Text] = field(default_factory=list)

    @property
    def natural(self) -> int:
        return max(cell_len(line) for text in self.texts() for line in text.split("\n"))

    @property
    def least(self) -> int:
        """The least width: text may be broken between words."""
        if self.is_number:
            return self.natural
        longest_word = max((cell_len(word) for text in self.texts() for word in text.split()), default=0)
        return min(self.natural, max(longest_word, READABLE))

    def texts(self) -> list[str]:
        return [self.name, *(cell.plain for cell in self.cells)]


class FittedTable:
    """A table of any width, in several parts if it is too wide; each part begins with the first `keys` columns, which
    name a row."""

    def __init__(self, title: str, columns: Sequence[str], keys: int = 1) -> None:
        """A column whose name starts with `>` holds numbers."""
        self.title = title
        self.notes: list[str] = []
        """Lines below the table."""
        self.columns = [Column(name.removeprefix(">"), name.startswith(">")) for name in columns]
        self._keys = keys

    def add_row(self, *cells: str) -> None:
        for column, cell in zip(self.columns, cells, strict=True):
            column.cells.append(styled(cell))

    @property
    def row_count(self) -> int:
        return len(self.columns[0].cells)

    @property
    def rows(self) -> list[list[str]]:
        """The rows with the texts that are shown."""
        return [[cell.plain for cell in row] for row in zip(*(column.cells for column in self.columns), strict=True)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = self._parts(options.max_width)
        if self.title:
            yield plain(self.title, "bold")
        for part in parts:
            yield Text()
            # Wider than the screen is better than broken names: a terminal breaks lines by itself.
            width = max(width_of([column.least for column in part]), options.max_width)
            table = drawn(part, self._rows_of(part), width)
            yield from console.render(Padding(table, (0, 0, 0, INDENT), expand=False), options.update(width=width))
        if len(parts) > 1:
            needed = width_of([column.least for column in self.columns])
            yield line(f"in {len(parts)} parts: one would be {needed} columns wide, here are {options.max_width}")
        for note in self.notes:
            yield line(note)
        yield Text()

    def _rows_of(self, part: list[Column]) -> list[int]:
        """Numbers of the rows with text in this part."""
        others = part[self._keys :]
        return [row for row in range(self.row_count) if not others or any(one.cells[row].plain for one in others)]

    def _parts(self, width: int) -> list[list[Column]]:
        """Divides the columns: each part has as many as fit next to the keys, but at least one."""
        keys, others = self.columns[: self._keys], self.columns[self._keys :]
        parts = [list(keys)]
        for column in others:
            if len(parts[-1]) > len(keys) and width_of([one.least for one in [*parts[-1], column]]) > width:
                parts.append(list(keys))
            parts[-1].append(column)
        return parts


def line(text: str) -> Padding:
    return Padding(plain(text), (0, 0, 0, INDENT), expand=False)


def width_of(columns: list[int]) -> int:
    """The width of a table with columns of these widths."""
    return INDENT + sum(columns) + GAP * (len(columns) - 1)


def drawn(columns: list[Column], rows: list[int], width: int) -> Table:
    """Rows of the columns as one table. Text columns get the remaining width, the first ones first."""
    widths = [column.least for column in columns]
    rest = width - width_of(widths)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for index, column in enumerate(columns):
        more = min(column.natural - widths[index], rest)
        rest -= more
        justify = "right" if column.is_number else "left"
        table.add_column(column.name, justify=justify, no_wrap=column.is_number, width=widths[index] + more)
    for row in rows:
        table.add_row(*(column.cells[row] for column in columns))
    return table
