# SPDX-License-Identifier: Apache-2.0
"""`beeline bench energy`: joules per word of every method, in steps that a later run continues."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial

from beeline.applications import Study, raise_failures, run_methods
from beeline.commands.collectives import Launcher, nccl_library, start_command
from beeline.commands.steps import run_steps
from beeline.description import Call, call_of, commands
from beeline.display import ResultView
from beeline.jobs import Event
from beeline.programs import CliError, World

Waits = tuple[str, ...]  # variables that say how the host waits


@dataclass(frozen=True)
class Bench:
    """A step: a run of beeline-bench, a command at one size."""

    command: str
    operations: str
    size: str
    methods: str = ""  # how their names begin; empty: all
    launcher: Launcher = "beeline"
    waits: Waits = ()

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.command, self.operations, self.size, self.methods, *self.waits)))

    def run(self, view: ResultView, world: World, window_ms: int, label: str) -> None:
        asked = call_of(*self.arguments(window_ms))
        command = start_command(replace(world, variables=self.waits), asked.arguments, self.launcher)
        check = partial(check_meter, view)
        view.run(command, lambda progress: f"{label} {progress.get('method', '')}", check)

    def arguments(self, window_ms: int) -> list[str]:
        size = ["--sizes", self.size] if self.size else []
        methods = ["--methods", ",".join(self.methods_here())] if self.methods else []
        return [self.command, "--operations", self.operations, *size, *methods, "--energy", str(window_ms)]

    def methods_here(self) -> list[str]:
        """Those that the program describes: one that is added later is metered without a line here."""
        names = [one["name"] for one in commands()[self.command]["methods"]]
        return [name for name in names if name.startswith(tuple(self.methods.split(",")))]


def check_meter(view: ResultView, event: Event) -> None:
    """Ends the command if the first result has no energy although it was asked for: no later one will have any."""
    metered = [one for one in view.results if one.get("unit") in ("nJ", "nJ/word")]
    if event in metered[:1] and event.get("median") is None:
        raise CliError(f"this machine cannot meter energy: {event.get('reason')}")


@dataclass(frozen=True)
class Himeno:
    """A step: the application, of which each method runs for about a second."""

    size: str
    methods: tuple[str, ...]
    waits: Waits = ()

    @property
    def name(self) -> str:
        return " ".join(("himeno", self.size, *self.waits))

    def run(self, view: ResultView, world: World, window_ms: int, label: str) -> None:
        arguments = ["--size", self.size, "--no-verify", "--energy", str(window_ms / 1000)]
        waiting = replace(world, variables=self.waits)
        study = Study({"himeno": None}, [world.ranks], list(self.methods), waiting, lambda _: arguments, f"{label} ")
        raise_failures(run_methods(study, world.ranks, view), view)


# Of the collectives those on streams and NCCL's: in graphs and kernels they move the same bytes.
ON_STREAMS = "stream/,nccl/stream"
COLLECTIVES = [
    Bench("collectives", operation, size, ON_STREAMS, "auto")
    for operation in ("allreduce", "allgather", "alltoall", "reduce_scatter", "broadcast")
    for size in ("8", "64K", "1M", "256M")
]
# How the host waits. Seed 000, section 5.8.3 and 5.8.5: an application that the CPU drives may poll every 1,000 us
# without loss, one that the GPU drives every 5,000.
WAITS: list[Waits] = [
    ("BEELINE_WAIT_POLICY=spin",),
    *(("BEELINE_WAIT_POLICY=sleep", f"BEELINE_WAIT_PERIOD_US={period}") for period in (10, 100, 500, 1000, 5000)),
    ("BEELINE_WAIT_POLICY=event",),
    ("BEELINE_WAIT_POLICY=yield",),
]
SETS: dict[str, list[Bench | Himeno]] = {
    "default": [
        Bench("latency", "message", "8"),
        Bench("latency", "barrier", ""),
        *(Bench("bandwidth", "put", size) for size in ("64K", "256M")),
        Bench("collectives", "allreduce", "256M", ON_STREAMS, "auto"),
    ],
    "full": [
        *(Bench("latency", "message", size) for size in ("8", "512", "4K", "32K", "256K", "1M")),
        Bench("latency", "barrier", ""),
        *(Bench("bandwidth", "put,get", size) for size in ("64K", "256K", "1M", "4M", "16M", "64M", "256M")),
        *COLLECTIVES,
    ],
    "collectives": [*COLLECTIVES],
    # Driven by the CPU: a message of 8 bytes, and Himeno's hybrid; driven by the GPU: one kernel for all iterations.
    "poll-period": [
        step
        for waits in WAITS
        for step in (
            Bench("latency", "message", "8", "host/copy_engine/signal", waits=waits),
            Himeno("M", ("host_copy_engine", "persistent"), waits),
        )
    ],
    # Seed 002, whose baseline is MPI's; beside it staging by the library, in chunks of the best size.
    "table-002": [
        Bench(command, operation, size, "device/peer/signal,mpi/staged,host/staged/", "auto")
        for command, operation, sizes in (
            ("bandwidth", "put", ("64K", "1M", "16M")),
            ("latency", "message", ("8", "512", "4K", "32K", "256K")),
            ("latency", "barrier", ("",)),
        )
        for size in sizes
    ],
}


def energy(call: Call, view: ResultView, world: World) -> None:
    if nccl := nccl_library():
        os.environ.setdefault("BEELINE_NCCL", nccl)
    steps = [step for step in SETS[call.values["set"]] if isinstance(step, Himeno) or step.methods_here()]
    window = call.values["window"]
    asked = {"window": window, "ranks": world.ranks, "threads": world.threads, "device": world.device}
    run_steps(view, {step.name: partial(step.run, view, world, window) for step in steps}, asked)
