# SPDX-License-Identifier: Apache-2.0
"""Texts for people: what a terminal or a picture would take for a command, or cannot show, is replaced."""

from __future__ import annotations

import codecs
import io
from typing import TextIO

from rich.text import Text

STYLES = {"yes": "green", "NO": "bold red", "wrong data": "bold red"}  # whether data were right
IN_ASCII = {"µ": "u", "–": "-", "×": "x", "³": "^3", "…": "...", "│": "|", "─": "-", "━": "-", "╴": "-"}


def printable(text: str) -> str:
    """With control characters, and others that have no shape of their own, as Python writes them: \\x1b."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)


def plain(text: str, style: str = "") -> Text:
    """For rich, which takes nothing in it for markup."""
    return Text(printable(text), style=style)


def styled(cell: str) -> Text:
    """A cell of a table: its text as it is, with a colour where it begins with one of STYLES."""
    text = plain(cell)
    for word, style in STYLES.items():
        if cell == word or cell.startswith(f"{word} ("):
            text.stylize(style, 0, len(word))
    return text


def replace_in_ascii(problem: UnicodeError) -> tuple[str, int]:
    """The handler of errors of `encode_all`."""
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    return "".join(IN_ASCII.get(one, "?") for one in problem.object[problem.start : problem.end]), problem.end


codecs.register_error("beeline.ascii", replace_in_ascii)


def encode_all(stream: TextIO | None) -> None:
    """Has `stream` replace the characters that its encoding does not have, in place of an exception."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="beeline.ascii")
