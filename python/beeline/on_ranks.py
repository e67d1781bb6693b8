# SPDX-License-Identifier: Apache-2.0
"""Measurements that are Python programs: on the ranks of a world, behind the record of what they run on."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from beeline import options
from beeline.display import ResultView
from beeline.jobs import running
from beeline.programs import CliError, World, find_program, launch_command


def measure_on_ranks(world: World, module: str, name: str, arguments: list[str], view: ResultView) -> None:
    """Runs `python -m module` on the ranks, and shows what it prints.

    name  of the command of `beeline bench`, for the record
    """
    check_library()
    # The launcher's default would load all of torch's kernels. Beeline's are loaded when a world is made; what else is
    # used is used once before anything waits in a kernel beside it.
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
    described = launch_command(world, find_program("beeline-bench"), ["environment", name, *arguments])
    pass_on(described, view, name)
    pass_on(launch_command(world, sys.executable, ["-m", module, *arguments]), view, name)


def check_library() -> None:
    try:
        import beeline.library  # noqa: F401
    except ImportError as problem:
        raise CliError(str(problem)) from problem


def pass_on(command: list[str], view: ResultView, label: str) -> None:
    with running(command, view.show_line) as events:
        for event in events:
            if event.get("event") == "progress":
                view.set_progress(f"{label} {event.get('method', '')}")
            view.add(event)


def names_among(text: str, known: Sequence[str], what: str) -> list[str]:
    """What a list of names, or `all`, chooses."""
    names = options.parse_names(text) or list(known)
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is no {what} here; valid: all, {', '.join(known)}")
    return names
