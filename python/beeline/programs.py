# SPDX-License-Identifier: Apache-2.0
"""Finding the C++ programs, and the command lines that run them under the launcher."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

USAGE_ERROR = 2  # exit status for refused arguments, also of the programs

INSTALLED_PROGRAMS = Path(__file__).resolve().parent / "bin"
BUILD_PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"
DEMO_PROGRAMS = Path(__file__).resolve().parents[2] / "build-demo" / "bin"  # those of tools/demo


class CliError(Exception):
    """An error, described for the user; `main` prints it and exits with `status`."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class World:
    """The ranks that a program runs on."""

    ranks: int
    threads: bool = False
    device: str | None = None  # None: BEELINE_DEVICE, or auto
    deadline_s: float | None = None
    keep_going: bool = False
    split_nodes: int | None = None  # None: BEELINE_SPLIT_NODES, or 1
    hosts: str | None = None  # separated by commas; ranks are assigned in blocks
    ssh: str | None = None
    bind: str | None = None
    stdin: str | None = None  # ranks that get standard input; None: 0, or none with hosts
    grace_s: float | None = None  # between SIGTERM and the end of the world
    check: bool = False  # warns of signals that repeat a value
    secure: bool = False  # encrypted connections; False: as BEELINE_SECURE says
    trusted_network: bool = False  # several hosts without encryption
    mpirun: bool = False  # mpirun starts the ranks, instead of Beeline's launcher
    variables: tuple[str, ...] = ()  # of the environment, NAME=VALUE


def find_program(name: str) -> Path:
    """The program's path. Looks in BEELINE_BIN if that is set, otherwise in this package, in the checkout's build, in
    the demo's build, and on PATH."""
    configured = os.environ.get("BEELINE_BIN")
    if configured:
        program = Path(configured) / name
        if not os.access(program, os.X_OK):
            raise CliError(f"program {name} is not in {configured} (BEELINE_BIN): build it there, or unset BEELINE_BIN")
        return program
    for folder in (INSTALLED_PROGRAMS, BUILD_PROGRAMS, DEMO_PROGRAMS):
        if os.access(folder / name, os.X_OK):
            return folder / name
    if found := shutil.which(name):
        return Path(found)
    raise CliError(f"program {name} is neither in {BUILD_PROGRAMS} nor on PATH: run tools/build, or set BEELINE_BIN")


def resolve_program(name: str) -> str:
    """The program that a user names: a path, one of Beeline's programs, or a program that the launcher finds on
    PATH."""
    if os.sep not in name:
        with suppress(CliError):
            return str(find_program(name))
    return name


def given(name: str, value: Any) -> list[str]:
    """An option on a program's command line; empty for None, and for a flag that is not set."""
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [] if value is None else [f"--{name}", str(value)]


def launch_command(world: World, program: str | Path, arguments: list[str], as_json: bool = True) -> list[str]:
    """The command line that runs `program` on the ranks of `world`; prints only JSON lines of its output, or all."""
    if world.mpirun:
        return [*mpirun_command(world), str(program), *arguments]
    options = {
        "json": as_json,
        "threads": world.threads,
        "keep-going": world.keep_going,
        "device": world.device,
        "split-nodes": world.split_nodes,
        "hosts": world.hosts,
        "ssh": world.ssh,
        "bind": world.bind,
        "secure": world.secure,
        "trusted-network": world.trusted_network,
        "check": world.check,
        "deadline": None if world.deadline_s is None else f"{world.deadline_s:g}",
        "stdin": world.stdin,
        "grace": None if world.grace_s is None else f"{world.grace_s:g}",
    }
    variables = ["env", *world.variables] if world.variables else []
    launcher = [*variables, str(find_program("beeline-launch")), "-n", str(world.ranks)]
    return [*launcher, *(text for one in options.items() for text in given(*one)), "--", str(program), *arguments]


def mpirun_command(world: World, on_a_core: bool = False) -> list[str]:
    """Ranks are processes on this host, not bound to cores, because some have threads that copy.

    If there are more host ranks than cores, Open MPI's waits yield their core: otherwise each wait would last a time
    slice. If the machine counts as several nodes, Open MPI uses TCP only, as Beeline does between nodes.
      on_a_core  if no core is left over, host ranks on one node stay on one core each, as those of Beeline's
                 applications do (Open MPI only)
    """
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise CliError("mpirun is not on PATH: install Open MPI or MPICH, or let Beeline's launcher start the ranks")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    options = ["-bind-to", "none"]
    if "Open MPI" in version or "OpenRTE" in version:
        device = world.device or os.environ.get("BEELINE_DEVICE")
        cores = len(os.sched_getaffinity(0))
        nodes = world.split_nodes or 1
        binds = on_a_core and device == "cpu" and world.ranks >= cores and nodes == 1
        options = ["--map-by", "core"] if binds else []
        options += ["--bind-to", "core:overload-allowed,if-supported" if binds else "none", "--oversubscribe"]
        options += ["--mca", "mpi_yield_when_idle", "1"] if device == "cpu" and world.ranks > cores else []
        options += ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"] if nodes > 1 else []
        options += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    variables = list(world.variables)
    variables += [] if world.device is None else [f"BEELINE_DEVICE={world.device}"]
    variables += [] if world.split_nodes is None else [f"BEELINE_SPLIT_NODES={world.split_nodes}"]
    return ["env", *variables, mpirun, *options, "-n", str(world.ranks)]
