# SPDX-License-Identifier: Apache-2.0
"""Texts for display: characters that a terminal or a picture would interpret, or cannot show, are replaced."""

from __future__ import annotations

import codecs
import io
from typing import TextIO

from rich.text import Text

STYLES = {"yes": "green", "NO": "bold red", "wrong data": "bold red"}  # whether data were right
IN_ASCII = {"µ": "u", "–": "-", "×": "x", "³": "^3", "…": "...", "│": "|", "─": "-", "━": "-", "╴": "-"}


def printable(text: str) -> str:
    """The text with control characters, and others without a visible shape, written as Python escapes: \\x1b."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)


def plain(text: str, style: str = "") -> Text:
    """A text for rich that contains no markup."""
    return Text(printable(text), style=style)


def styled(cell: str) -> Text:
    """A cell of a table: its text unchanged, with a colour if it begins with a key of STYLES."""
    text = plain(cell)
    for word, style in STYLES.items():
        if cell == word or cell.startswith(f"{word} ("):
            text.stylize(style, 0, len(word))
    return text


def replace_in_ascii(problem: UnicodeError) -> tuple[str, int]:
    """The error handler of `encode_all`."""
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    return "".join(IN_ASCII.get(one, "?") for one in problem.object[problem.start : problem.end]), problem.end


codecs.register_error("beeline.ascii", replace_in_ascii)


def encode_all(stream: TextIO | None) -> None:
    """Makes `stream` replace characters that its encoding lacks, instead of raising an exception."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="beeline.ascii")
