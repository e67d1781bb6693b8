# SPDX-License-Identifier: Apache-2.0
"""Measurements that are Python programs: on the ranks of a world, behind the record of what they run on."""

from __future__ import annotations

import json
import os
import sys

from beeline.description import PROGRAM, Call
from beeline.display import ResultView
from beeline.programs import CliError, World, find_program, launch_command


def measure_on_ranks(world: World, module: str, call: Call, view: ResultView) -> None:
    """As `run_on_ranks`, where the whole measurement is in Python."""
    check_library()
    view.run(launch_command(world, find_program(PROGRAM), call.arguments), lambda event: call.command)
    run_on_ranks(world, module, call, view)


def run_on_ranks(world: World, module: str, call: Call, view: ResultView) -> None:
    """Runs `python -m module` with the call's values, as JSON, on the ranks, and shows what it prints."""
    # The launcher's default would load all of torch's kernels. Beeline's are loaded when a world is made; what else is
    # used is used once before anything waits in a kernel beside it.
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")
    command = launch_command(world, sys.executable, ["-m", module, json.dumps(call.values)])
    view.run(command, lambda event: f"{call.command} {event.get('method', '')}")


def check_library() -> None:
    try:
        import beeline.library  # noqa: F401
    except ImportError as problem:
        raise CliError(str(problem)) from problem
