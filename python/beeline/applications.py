# SPDX-License-Identifier: Apache-2.0
"""Runs an application's methods under the launcher: the common part of the applications' commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from beeline import options
from beeline.description import describe
from beeline.display import Render, ResultView
from beeline.jobs import Event, running
from beeline.programs import USAGE_ERROR, CliError, World, find_program, given, launch_command

MAX_DEVICES = 64  # host devices of a process


@dataclass(frozen=True)
class Study:
    """The work of a command: an application's methods, on several numbers of ranks."""

    programs: Mapping[str, Event | None]
    """Those that have methods; beside one that only some builds have, the event that says so where it is missing."""
    ranks: list[int]
    methods: list[str]
    """By name; empty: all that are available."""
    world: World
    """Of any number of ranks."""
    arguments: Callable[[int], list[str]]
    """Of the program on so many ranks, without the methods."""
    label: str = ""
    """What tells it from other studies of the same command."""
    unit: str = "ranks"

    def command(self, program: str, ranks: int, arguments: list[str]) -> list[str]:
        return launch_command(replace(self.world, ranks=ranks), find_program(program), arguments)


@dataclass(frozen=True)
class Asked:
    """The options on the command line of an application."""

    program: str
    options: Mapping[str, Any]
    """Of the program, as they are given, by name; those that have their default are left out."""
    world: World
    as_json: bool
    output: Path | None

    def study(
        self, ranks: str, label: str = "", programs: Mapping[str, Event | None] | None = None, **changed: Any
    ) -> Study:
        """A study with these options, some of them `changed`. Raises CliError if the program refuses them for any of
        the numbers of ranks."""
        values = {**self.options, **changed}
        names = options.parse_names(values.pop("method", "all"))
        arguments = [text for name, value in values.items() for text in given(name, value)]
        counts = options.parse_ranks(ranks)
        self.check(arguments, counts)
        return Study(programs or {self.program: None}, counts, names, self.world, lambda _: arguments, label)

    def study_on_devices(self, devices: str) -> Study:
        """The same, of a program whose process drives its devices without ranks."""
        names = options.parse_names(self.options.get("method", "all"))
        arguments = [text for name, value in self.options.items() if name != "method" for text in given(name, value)]
        counts = options.parse_ranks(devices, "devices", MAX_DEVICES)
        self.check(arguments, counts)
        world = replace(self.world, threads=True)
        return Study({self.program: None}, counts, names, world, lambda _: arguments, unit="devices")

    def check(self, arguments: list[str], counts: list[int]) -> None:
        for count in counts:
            describe(self.program, *arguments, "--describe", str(count))


def run_studies(
    asked: Asked,
    studies: Sequence[Study],
    render: Render,
    beside: Callable[[ResultView, int], None] = lambda _view, _ranks: None,
) -> None:
    """Runs all studies, shows the results, and raises the failures at the end.

    `beside` is called after the methods on each number of ranks, if none of them failed, to add results of others.
    """
    failures: list[CliError] = []
    with ResultView(asked.as_json, asked.output, render) as view:
        for study in studies:
            for ranks in study.ranks:
                view.set_progress(f"{study.label}{ranks} {study.unit}")
                failures += run_methods(study, ranks, view)
                if not failures:
                    beside(view, ranks)
    raise_failures(failures, view)


def run_methods(study: Study, ranks: int, view: ResultView) -> list[CliError]:
    """Runs each program's methods on `ranks` ranks; returns the failures."""
    chosen = choose_methods(study, ranks, view)
    if not chosen:
        return [CliError(f"no method is available on {ranks} {study.unit}")]
    failures: list[CliError] = []
    for program, names in chosen.items():
        failed, refused = run_jobs(study, ranks, program, names, view)
        failures += failed
        if refused:
            break
    return failures


def run_jobs(
    study: Study, ranks: int, program: str, waiting: list[str], view: ResultView
) -> tuple[list[CliError], bool]:
    """Runs the methods in one job, so that they share the serial reference.

    A method that ends the job is left out, and the methods after it run in another job. A job that fails before it
    prints anything would fail with every method: then the second value is True.
    """
    failures: list[CliError] = []
    while waiting:
        command = study.command(program, ranks, [*study.arguments(ranks), "--method", ",".join(waiting)])
        problem: CliError | None = None
        try:
            view.run(command, lambda event: f"{study.label}{event.get('method', '')}, {ranks} {study.unit}")
        except CliError as error:
            problem = error
        done = [event.get("method") for event in view.taken if event.get("event") == "result"]
        waiting = [name for name in waiting if name not in done]
        if problem is None:
            return failures + [
                CliError(f"no result of {name}, though this ended well: {' '.join(command)}") for name in waiting
            ], False
        if not view.taken:
            return [*failures, problem], True
        failures.append(CliError(f"{waiting.pop(0)}: {problem}") if waiting else problem)
    return failures, False


def list_methods(study: Study, ranks: int, view: ResultView) -> dict[str, Event]:
    """The methods by name, each with the event by which its program lists it."""
    known: dict[str, Event] = {}
    for program, lacking in study.programs.items():
        try:
            command = study.command(program, ranks, ["--list"])
        except CliError:
            if lacking is None:
                raise
            known[lacking["name"]] = lacking
            continue
        if tuple(command) not in view.listed:
            with running(command, view.show_line) as events:
                view.listed[tuple(command)] = [event for event in events if "name" in event]
        known |= {str(event["name"]): event | {"program": program} for event in view.listed[tuple(command)]}
    if not known:
        raise CliError(f"{next(iter(study.programs))} --list printed no method")
    return known


def choose_methods(study: Study, ranks: int, view: ResultView) -> dict[str, list[str]]:
    """The names to run on `ranks` ranks, by program; refuses unknown names, and reports which methods are left out."""
    known = list_methods(study, ranks, view)
    if study.methods:
        unknown = [name for name in study.methods if name not in known]
        if unknown:
            raise CliError(
                f"--method: unknown method {', '.join(unknown)}; valid: {', '.join(known)}", status=USAGE_ERROR
            )
        refused = [f"{name}: {known[name].get('reason')}" for name in study.methods if not known[name].get("available")]
        if refused:
            raise CliError(f"not available on {ranks} {study.unit} here: {'; '.join(refused)}")
        names = list(dict.fromkeys(study.methods))
    else:
        lacking: dict[str, list[str]] = {}
        for name, event in known.items():
            if not event.get("available"):
                lacking.setdefault(str(event.get("reason")), []).append(name)
        for reason, left_out in lacking.items():
            view.show_line(f"left out on {ranks} {study.unit}: {', '.join(left_out)}: {reason}")
        names = [name for name, event in known.items() if event.get("available")]
    chosen: dict[str, list[str]] = {}
    for name in names:
        chosen.setdefault(known[name]["program"], []).append(name)
    return chosen


def raise_failures(failures: list[CliError], view: ResultView) -> None:
    """If anything failed, ends the command with the failures."""
    if failures:
        status = USAGE_ERROR if all(failure.status == USAGE_ERROR for failure in failures) else 1
        raise CliError("\nbeeline: ".join(str(failure) for failure in failures), status)
    wrong = [str(result.get("method")) for result in view.results if result.get("verified") is False]
    if wrong:
        raise CliError(f"wrong result: {', '.join(dict.fromkeys(wrong))}")
