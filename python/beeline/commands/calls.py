# SPDX-License-Identifier: Apache-2.0
"""`beeline bench calls`: calls that block, from C++ by the program and then from Python, beside MPI."""

from __future__ import annotations

import json
import sys

from beeline.commands.collectives import Launcher, label_of, start_command, with_launcher
from beeline.description import Call
from beeline.display import ResultView
from beeline.on_ranks import check_library
from beeline.programs import CliError, World, launch_command

RANKS = "beeline.ranks.python_calls"
IN_PYTHON = ("python/", "mpi4py/")


def calls(call: Call, view: ResultView, world: World, launcher: Launcher = "auto") -> None:
    view.run(start_command(world, call.arguments, launcher), label_of)
    if not any(name.startswith(IN_PYTHON) for name in call.values["methods"]):
        return
    try:
        check_library()
        if world.threads:
            raise CliError("ranks are threads, and Python runs one thread at a time")
    except CliError as reason:
        view.show_line(f"no calls from Python: {reason}")
        return
    program = ["-m", RANKS, json.dumps(call.values)]
    view.run(launch_command(with_launcher(world, launcher), sys.executable, program), label_of)
