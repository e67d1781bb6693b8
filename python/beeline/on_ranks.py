# SPDX-License-Identifier: Apache-2.0
"""Measurements that are Python programs: runs them on the ranks of a world, after the environment record."""

from __future__ import annotations

import json
import os
import sys

from beeline.description import PROGRAM, Call
from beeline.display import ResultView
from beeline.programs import CliError, World, find_program, launch_command


def measure_on_ranks(world: World, module: str, call: Call, view: ResultView) -> None:
    """As `run_on_ranks`, for measurements that are entirely in Python."""
    check_library()
    view.run(launch_command(world, find_program(PROGRAM), call.arguments), lambda event: call.command)
    run_on_ranks(world, module, call, view)


def run_on_ranks(world: World, module: str, call: Call, view: ResultView) -> None:
    """Runs `python -m module` on the ranks, with the call's values as JSON, and shows its output."""
    # The launcher's default would load all of torch's kernels. Beeline's kernels are loaded when a world is made; each
    # other kernel runs once before anything waits in a kernel at the same time.
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
    command = launch_command(world, sys.executable, ["-m", module, json.dumps(call.values)])
    view.run(command, lambda event: f"{call.command} {event.get('method', '')}")


def check_library() -> None:
    try:
        import beeline.library  # noqa: F401
    except ImportError as problem:
        raise CliError(str(problem)) from problem
