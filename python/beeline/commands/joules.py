# SPDX-License-Identifier: Apache-2.0
"""`beeline bench energy`: joules per word of every method, in steps that a later run continues."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from beeline.applications import Study, list_methods, raise_failures, run_methods
from beeline.commands.budget import LEAST_S, Budget, is_out_of_budget
from beeline.commands.collectives import Launcher, lacking, nccl_library, start_command, with_launcher
from beeline.commands.himeno import PROGRAMS
from beeline.commands.joules_tables import groups_of, metered_of
from beeline.commands.steps import run_steps
from beeline.description import Call, call_of, commands
from beeline.display import ResultView
from beeline.jobs import Event
from beeline.programs import CliError, World

Waits = tuple[str, ...]  # environment variables that set how the host waits


@dataclass(frozen=True)
class Bench:
    """A step: a run of beeline-bench, a command at some sizes."""

    command: str
    operations: str
    sizes: str
    methods: str = ""  # names, or a prefix of names that ends with a slash; empty: all
    launcher: Launcher = "beeline"
    waits: Waits = ()
    peers: int = 0  # rows of bare loops and other peers, which come with the methods

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.command, self.operations, self.sizes, *self.waits)))

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Operation, method and size of what is measured."""
        described = commands()[self.command]["operations"]
        asked, names = self.operations.split(","), self.methods_here()
        return [
            (one["name"], method, size)
            for one in described
            if one["name"] in asked
            for method in one["methods"]
            if method in names
            for size in self.sizes.split(",")
        ]

    @property
    def row_count(self) -> int:
        return len(self.rows) + self.peers

    def run(self, view: ResultView, world: World, window_ms: int, budget: Budget, label: str) -> bool:
        if budget.metering_s == 0:
            for operation, method, _ in self.rows:
                view.add(lacking(operation, method, 0, world.ranks, budget.reason()))
            return False
        before = len(view.results)
        arguments = [*self.arguments(window_ms), "--energy-budget", str(budget.metering_s)]
        command = start_command(replace(world, variables=self.waits), call_of(*arguments).arguments, self.launcher)
        check = partial(check_meter, view)
        view.run(command, lambda one: f"{label}: {one.get('method', '')}, {budget.left(one)}", check)
        return not any(map(is_out_of_budget, view.results[before:]))

    def arguments(self, window_ms: int) -> list[str]:
        sizes = ["--sizes", self.sizes] if self.sizes else []
        methods = ["--methods", ",".join(self.methods_here())] if self.methods else []
        return [self.command, "--operations", self.operations, *sizes, *methods, "--energy", str(window_ms)]

    def methods_here(self) -> list[str]:
        """The methods that the program describes, so that later ones are metered without a line here; in the order of
        `methods`, since the last ones are not metered if time is short."""
        names = [one["name"] for one in commands()[self.command]["methods"]]
        asked = self.methods.split(",") if self.methods else names
        found = [name for one in asked for name in names if name == one or (one[-1:] == "/" and name.startswith(one))]
        return list(dict.fromkeys(found))


def check_meter(view: ResultView, event: Event) -> None:
    """Ends the command if the first result has no energy although it was asked for: no later one will have any."""
    metered = [one for one in view.results if one.get("unit") in ("nJ", "nJ/word")]
    if event in metered[:1] and event.get("median") is None and not is_out_of_budget(event):
        raise CliError(f"this machine cannot meter energy: {event.get('reason')}")


@dataclass(frozen=True)
class Application:
    """A step: an application, of which each method is metered three times."""

    program: str
    arguments: tuple[str, ...]
    methods: tuple[str, ...] = ()  # empty: all
    ranks: int = 0  # 0: the number given to the command
    launcher: Launcher = "beeline"
    waits: Waits = ()

    WINDOWS, LEAST_WINDOW_S, REST_S = 3, 1.0, 7.0  # of a method; the rest: times, verification, settling, idle power

    @property
    def name(self) -> str:
        values = [one for one in self.arguments if not one.startswith("--")]
        ranks = [f"{self.ranks} ranks"] if self.ranks else []
        return " ".join((self.program, *values, *ranks, *self.waits))

    @property
    def rows(self) -> list[str]:
        return list(self.methods) or [""] * 6  # a guess: the program has not been queried yet

    @property
    def row_count(self) -> int:
        """As many rows of a benchmark as take as long."""
        return ceil(len(self.rows) * (self.WINDOWS * self.LEAST_WINDOW_S + self.REST_S) / LEAST_S)

    def run(self, view: ResultView, world: World, window_ms: int, budget: Budget, label: str) -> bool:
        ranks = self.ranks or world.ranks
        here = with_launcher(replace(world, variables=self.waits), self.launcher)
        study = Study({self.program: PROGRAMS.get(self.program)}, [ranks], [], here, lambda _: [], f"{label}: ")
        names = self.methods_here(study, ranks, view)
        fitting = int(budget.metering_s / (self.WINDOWS * self.LEAST_WINDOW_S + self.REST_S))
        for name in names[fitting:]:
            view.add(lacking(self.program, name, 0, ranks, budget.reason()))
        chosen = names[:fitting]
        if chosen:
            window_s = (budget.metering_s / len(chosen) - self.REST_S) / self.WINDOWS
            seconds = max(min(window_ms / 1000, window_s), min(window_ms / 1000, self.LEAST_WINDOW_S))
            arguments = [*self.arguments, "--energy", f"{seconds:.3f}"]
            told = f"{label}, {budget.left({})}: "
            timed = replace(study, methods=chosen, arguments=lambda _: arguments, label=told)
            raise_failures(run_methods(timed, ranks, view), view)
        return len(chosen) == len(names)

    def methods_here(self, study: Study, ranks: int, view: ResultView) -> list[str]:
        """The available methods; reports the others with the reason."""
        listed = list_methods(study, ranks, view)
        known = {name: listed.get(name, {"reason": "the program does not list it"}) for name in self.methods or listed}
        for name, event in known.items():
            if not event.get("available"):
                view.add(lacking(self.program, name, 0, ranks, str(event.get("reason"))))
        return [name for name, event in known.items() if event.get("available")]


# Collectives on streams and NCCL's are metered: in graphs and kernels they move the same bytes. Small messages use the
# algorithm that the library chooses; large ones also copy engines, and each kernel algorithm that may be the fastest.
FIVE = "allreduce,allgather,alltoall,reduce_scatter,broadcast"
CHOSEN, BY_NAME = "stream/automatic,nccl/stream", "stream/copy_engine,stream/two_shot,stream/peer,stream/bulk"
COLLECTIVES = [
    Bench("collectives", FIVE, "256M", f"{CHOSEN},{BY_NAME}", "auto"),
    Bench("collectives", FIVE, "64K", f"{CHOSEN},stream/copy_engine", "auto"),
]
PUTS = "host/copy_engine/,host/staged/,stream/copy_engine/,device/bulk/signal,device/peer/signal,device/peer/ll"
MESSAGES = "device/peer/signal,device/peer/ll,stream/copy_engine/,host/copy_engine/,host/staged/"
DIRECT_AND_STAGED = "device/peer/signal,mpi/staged,host/staged/sequential"
BATCHES = "device/peer/batch,proxy/copy_engine/batch"  # single puts with a signal each are their peers
HIMENO = ("host_copy_engine", "stream_kernels", "in_kernel", "persistent", "host_staged")
LARGE = ("--size", "512x512x512", "--no-verify")
# How the host waits. Seed 000, sections 5.8.3 and 5.8.5: an application that the CPU drives may poll every 1,000 us
# without loss; one that the GPU drives, every 5,000 us. The other periods come last, for which time may not suffice.
SLEEPS: dict[int, Waits] = {
    period: ("BEELINE_WAIT_POLICY=sleep", f"BEELINE_WAIT_PERIOD_US={period}") for period in (10, 100, 500, 1000, 5000)
}
WAITS: list[Waits] = [
    ("BEELINE_WAIT_POLICY=spin",), ("BEELINE_WAIT_POLICY=event",), SLEEPS[1000], SLEEPS[5000], SLEEPS[100],
    ("BEELINE_WAIT_POLICY=yield",), SLEEPS[10], SLEEPS[500],
]  # fmt: skip
SETS: dict[str, list[Bench | Application]] = {
    "default": [
        Bench("bandwidth", "put", "256M", PUTS, peers=3),
        Bench("rate", "puts", "8", BATCHES, peers=3),
        Bench("latency", "message", "8", MESSAGES, peers=2),
        Bench("latency", "barrier", ""),
        Bench("collectives", "allreduce", "256M", f"{CHOSEN},{BY_NAME}", "auto"),
    ],
    "full": [
        Bench("latency", "message", "8,512,4K,32K,256K,1M"),
        Bench("latency", "barrier", ""),
        Bench("bandwidth", "put,get", "64K,256K,1M,4M,16M,64M,256M"),
        *(Bench("collectives", FIVE, size, "stream/,nccl/stream", "auto") for size in ("8", "64K", "1M", "256M")),
    ],
    "collectives": [*COLLECTIVES],
    "applications": [
        Application("ring-reduction", ("--size", "64M")),
        Application("jacobi", ("--size", "1024", "--no-verify")),
        Bench("rate", "random_update,random_store", ""),
        Application("global-reduction", ("--values", "1048576"), launcher="auto"),
    ],
    # Sizes of seed 000: of table 5.6 on two GPUs, on one (strong), and half of it on one (weak); of figure 6.24.
    "himeno": [
        Application("himeno", LARGE, HIMENO),
        Application("himeno-device-launched", LARGE, ("device_launched",)),
        Application("himeno", LARGE, HIMENO, ranks=1),
        Application("himeno", ("--size", "512x512x256", "--no-verify"), HIMENO, ranks=1),
        Application("himeno", ("--size", "128x192x64", "--weak", "--no-verify"), HIMENO),
    ],
    # Driven by the CPU: a message of 8 bytes, and Himeno's hybrid; driven by the GPU: one kernel for all iterations.
    "poll-period": [
        step
        for waits in WAITS
        for step in (
            Bench("latency", "message", "8", "host/copy_engine/signal", waits=waits),
            Application("himeno", ("--size", "M", "--no-verify"), ("host_copy_engine", "persistent"), waits=waits),
        )
    ],
    # Seed 002, whose baseline is MPI; compared with staging by the library, in chunks of the best size.
    "table-002": [
        Bench("latency", "barrier", "", DIRECT_AND_STAGED, "auto"),
        Bench("latency", "message", "8,4K,256K", DIRECT_AND_STAGED, "auto", peers=1),
        Bench("bandwidth", "put", "64K,1M,16M", f"{DIRECT_AND_STAGED},host/staged/pipelined", "auto", peers=3),
    ],
}
BUDGETS_S = {
    "default": 300, "full": 1800, "collectives": 420, "applications": 330, "himeno": 300, "poll-period": 300,
    "table-002": 270,
}  # fmt: skip


def energy(call: Call, view: ResultView, world: World) -> None:
    if nccl := nccl_library():
        os.environ.setdefault("BEELINE_NCCL", nccl)
    steps = {step.name: step for step in SETS[call.values["set"]] if step.rows}
    window = call.values["window"]
    budget = Budget(
        call.values["budget"] or BUDGETS_S[call.values["set"]], {name: step.row_count for name, step in steps.items()}
    )
    asked = {
        "set": call.values["set"],
        "window": window,
        "ranks": world.ranks,
        "threads": world.threads,
        "device": world.device,
    }
    runs = {name: partial(step.run, view, world, window, budget) for name, step in steps.items()}
    run_steps(view, runs, asked, budget.begin)
    for (operation, size), groups in groups_of(metered_of(view.results)).items():
        methods = [[one["method"] for one in group] for group in groups]
        view.add({"event": "ranking", "operation": operation, "bytes": size, "methods": methods})
