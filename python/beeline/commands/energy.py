# SPDX-License-Identifier: Apache-2.0
"""`beeline energy`: meters a program."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.live import Live

from beeline import options
from beeline.display import format_number, make_console, new_table
from beeline.energy_record import Record, add
from beeline.fitted_table import FittedTable
from beeline.jobs import Event, describe_end, end_with
from beeline.outlet import Outlet
from beeline.picture import check_picture
from beeline.power_picture import draw_power
from beeline.programs import CliError
from beeline.ranks import records

NOT_FOUND = 127  # as in shells
LOOK_S = 0.25  # interval at which the display and the record get new samples
PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
GROUP_S = 0.01  # time for a signal to reach every process of a group
READER_S = 2  # for a reader to take more output, once a signal has requested the end
NOT_METERED = ["network", "switches between GPUs", "power supplies, fans, disks"]


def check_record(path: Path) -> Path:
    """Refuses a file that cannot be written before anything runs; an older record is replaced."""
    try:
        path.open("w", encoding="utf-8").close()
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}") from error
    return path


def energy(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write the record, as JSON lines, to FILE; an older FILE is replaced.",
            callback=check_record,
        ),
    ] = Path("energy.jsonl"),
    picture: Annotated[
        Path,
        typer.Option(
            "--picture", metavar="FILE", help="Draw power over time to FILE, .png or .svg.", callback=check_picture
        ),
    ] = Path("energy.png"),
    period: Annotated[
        float, typer.Option("--period", min=0.005, max=3600, metavar="SECONDS", help="Time between samples.")
    ] = 0.05,
    as_json: options.Json = False,
) -> None:
    """Meter COMMAND: joules and watts of GPUs (NVML), CPUs and DRAM (RAPL), and CPU time.

    Power while COMMAND runs, and the table at the end, go to standard error; standard output is COMMAND's. With --json,
    standard output holds the record, and COMMAND's output goes to standard error. Metering ends when COMMAND ends, even
    if processes that it started still run. The exit status is COMMAND's (128 + the number of a signal that ended it);
    signals are passed on to COMMAND. If this machine cannot meter a device, the table gives the reason.
    """
    try:
        from beeline.energy import Meter
    except ImportError as problem:
        raise CliError(str(problem)) from problem
    program = shutil.which(command[0])
    if program is None:
        raise CliError(
            f"{command[0]} is no program that can be run: name one on PATH, or the path of an executable file",
            NOT_FOUND,
        )
    with blocked_signals() as before, witness() as is_of_group:
        meter = Meter()
        run = Run(meter, command, period, output, as_json)
        status = run.meter_program(program, before, is_of_group)
    try:
        if not draw_power(run.record, picture):
            run.say("no picture: no component here shows its power")
    except CliError as problem:  # the program's exit status has priority
        run.say(f"no picture: {problem}")
    run.finish_output()
    raise typer.Exit(status if status >= 0 else 128 - status)


@contextmanager
def blocked_signals() -> Iterator[set[signal.Signals]]:
    """Inside, signals that are for the program wait until they are asked for."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def witness() -> Iterator[Callable[[int], bool]]:
    """Inside, a function tells whether a signal that has just come was sent to the whole process group, as by a
    terminal or a shell: then it has reached the program, too.

    It is pending in another process of the group, which nobody else knows of. Signals must be blocked.
    """
    takes, taken = os.pipe()
    try:
        process = os.fork()
    except OSError as problem:
        raise CliError(f"no process to tell whom signals are for: {problem.strerror}") from problem
    if process == 0:
        os.close(taken)
        while number := os.read(takes, 1):  # until the other end is closed, possibly by the death of its process
            signal.sigtimedwait(set(number), 0)
        os._exit(0)
    os.close(takes)

    def is_of_group(number: int) -> bool:
        time.sleep(GROUP_S)
        status = Path(f"/proc/{process}/status").read_text()
        pending = next(line for line in status.splitlines() if line.startswith("ShdPnd:"))
        is_pending = bool(int(pending.split()[1], 16) >> (number - 1) & 1)
        if is_pending:
            os.write(taken, bytes([number]))
        return is_pending

    try:
        yield is_of_group
    finally:
        os.close(taken)
        os.waitpid(process, 0)


def descendants_of(process: int) -> dict[int, str]:
    """The processes that a process has started, themselves or through others, as {number: start time}.

    The start time distinguishes a process from a later one with the same number.
    """
    if Path("/proc/self").resolve().name != str(os.getpid()):  # of another namespace: its process numbers are different
        return {}
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append((int(entry.parent.name), fields[19]))
    found, todo = {}, [process]
    while todo:
        of_one = children.get(todo.pop(), [])
        found.update(of_one)
        todo += [number for number, _ in of_one]
    return found


class Run:
    """One metered run of a program: its record grows as the samples come."""

    def __init__(self, meter: Any, command: list[str], period: float, output: Path, as_json: bool) -> None:
        self._meter = meter
        self._components = meter.components
        self._command = command
        self._period = period
        self._standard_output = Outlet(sys.stdout.fileno()) if as_json else None
        self._standard_error = Outlet(sys.stderr.fileno())
        self._is_interrupted = False  # a signal has requested the program's end
        self._started: dict[int, str] = {}  # the program's descendants when that signal arrived
        self._file: IO[str] | None = output.open("w", encoding="utf-8")
        self._output = output
        self._reasons: dict[str, str] = {}  # last reason for missing joules, by component
        self._latest: dict[str, Event] = {}
        environment = describe_environment(command, period, self._components)
        self.record = Record(environment)
        self._write(environment)

    def meter_program(self, program: str, mask: set[signal.Signals], is_of_group: Callable[[int], bool]) -> int:
        """Runs the program; returns its exit status, negative for a signal."""
        window = self._meter.start()
        self._meter.sample_every(self._period)
        cpu_before = cpu_seconds_of_children()
        meter = os.getpid()

        def prepare() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            end_with(meter)

        try:
            process = subprocess.Popen(
                self._command, executable=program, preexec_fn=prepare,
                stdout=sys.stderr.fileno() if self._standard_output is not None else None,
            )  # fmt: skip
        except OSError as problem:
            raise CliError(f"{program} cannot be run: {problem.strerror}", NOT_FOUND - 1) from problem
        with self._live():
            while process.poll() is None:
                came = signal.sigtimedwait(PASSED_ON | {signal.SIGCHLD}, LOOK_S)
                if came is not None and came.si_signo in PASSED_ON:
                    self._is_interrupted |= came.si_signo in ENDING
                    if not is_of_group(came.si_signo):
                        self._pass_on(process, came.si_signo)
                self._take_samples()
        self._end_what_is_left(process)
        measured = self._meter.stop(window, widen=True)
        self._take_samples()
        self._finish(process.returncode, measured, cpu_seconds_of_children() - cpu_before)
        return process.returncode

    def _pass_on(self, process: subprocess.Popen[bytes], number: int) -> None:
        if number in ENDING:
            self._started = descendants_of(process.pid)
        process.send_signal(number)

    def _end_what_is_left(self, process: subprocess.Popen[bytes]) -> None:
        """Sends the signal to descendants: a shell that a signal ends leaves its foreground command running."""
        for left, since in self._started.items() if process.returncode < 0 else ():
            with suppress(OSError):
                if Path(f"/proc/{left}/stat").read_text(errors="replace").rpartition(")")[2].split()[19] == since:
                    os.kill(left, -process.returncode)

    def say(self, text: str) -> None:
        self._standard_error.write(f"beeline: {text}\n")

    def finish_output(self) -> None:
        """Waits until readers have taken the output; after a signal, only while they go on reading."""
        seconds = READER_S if self._is_interrupted else None
        if self._standard_output is not None:
            self._standard_output.finish(seconds)
            if problem := self._standard_output.problem:
                self.say(f"standard output is cut short: {problem}")
        self._standard_error.finish(seconds)

    def _take_samples(self) -> None:
        for sample in self._meter.take_samples():
            name = self._components[sample.component].name
            event: Event = {"event": "sample", "time_s": sample.time_s, "component": name, "joules": sample.joules}
            event["watts"] = sample.watts
            if sample.reason:
                event["reason"] = sample.reason
            if sample.joules is None and not sample.reason:  # power without joules
                event["joules"] = self._latest.get(name, event)["joules"]
            self._latest[name] = event
            if sample.watts is not None or sample.joules is not None or self._reasons.get(name) != sample.reason:
                self._write(event | {"joules": sample.joules})
            self._reasons[name] = sample.reason

    def _finish(self, returncode: int, measured: Any, cpu_seconds: float) -> None:
        keys = ("joules", "watts", "error", "seconds", "reason", "notice")
        parts = [
            {"name": part.component.name, "kind": part.component.kind} | {key: getattr(part, key) for key in keys}
            for part in measured.components
        ]
        self._write({
            "event": "result", "schema_version": 1, "operation": "energy",
            "exit_status": returncode if returncode >= 0 else None, "signal": -returncode if returncode < 0 else None,
            "seconds": measured.seconds, "joules": measured.joules(), "components": parts,
            "cpu_seconds": cpu_seconds, "machine_cpu_seconds": measured.machine_cpu_seconds,
            "sleep_seconds": measured.sleep_seconds, "cpu_reason": measured.cpu_reason or None,
            "sampling_seconds": self._meter.sampling_seconds, "dropped_samples": self._meter.dropped_samples,
            "not_metered": NOT_METERED,
        })  # fmt: skip
        if self._file is not None:
            self._file.close()
        console = make_console(stderr=True)
        with console.capture() as text:
            console.print(self._result_table(returncode))
        self._standard_error.write(text.get())

    def _write(self, event: Event) -> None:
        """Writes an event. If the record cannot be written any more, it ends there, and the program goes on."""
        line = json.dumps(event)
        if self._file is not None:
            try:
                print(line, file=self._file, flush=True)
            except OSError as problem:
                self.say(f"{self._output} is cut short: {problem.strerror}")
                with suppress(OSError):
                    self._file.close()
                self._file = None
        if self._standard_output is not None:
            self._standard_output.write(line + "\n")
        if event["event"] != "environment":
            add(self.record, event)

    @contextmanager
    def _live(self) -> Iterator[None]:
        """Inside, a thread shows what was sampled last, if there is a terminal. The terminal may stop it."""
        console, over = make_console(stderr=True), threading.Event()
        if not console.is_terminal:
            yield
            return

        def show() -> None:
            with Live(console=console, transient=True, auto_refresh=False) as live:
                while not over.wait(LOOK_S):
                    live.update(self._live_table(), refresh=True)

        thread = threading.Thread(target=show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(READER_S)

    def _live_table(self) -> FittedTable:
        table = new_table("", "component", ">W", ">J")
        for name, event in list(self._latest.items()):
            if event["joules"] is not None:
                table.add_row(name, format_number(event["watts"]), format_number(event["joules"]))
        return table

    def _result_table(self, returncode: int) -> FittedTable:
        result = self.record.result
        assert result is not None
        title = f"{' '.join(self._command)}: {format_number(result['seconds'])} s"
        if returncode != 0:
            title += f", {describe_end(returncode)}"
        table = new_table(title, "component", ">J", ">average W", ">error, %", "remark")
        for part in result["components"]:
            error = None if part["error"] is None else 100 * part["error"]
            numbers = (format_number(value) for value in (part["joules"], part["watts"], error))
            table.add_row(part["name"], *numbers, part["reason"] or part["notice"] or "")
        table.notes.append(
            f"CPU time: {format_number(result['cpu_seconds'])} s of the program,"
            f" {format_number(result['machine_cpu_seconds'])} s of the machine; not metered: {', '.join(NOT_METERED)}"
        )
        return table


def cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def describe_environment(command: list[str], period: float, components: list[Any]) -> Event:
    """The record's first line."""
    return {
        **records.environment(command), "period_s": period,
        "components": [describe_component(one) for one in components],
    }  # fmt: skip


def describe_component(one: Any) -> Event:
    from beeline.library import _beeline

    return {
        "kind": one.kind, "name": one.name, "device": one.device, "tick_s": one.tick_s,
        "range_joules": one.range_joules,
        "state": (_beeline._gpu_state(one.device) or None) if one.kind == "gpu" else None,
    }  # fmt: skip
