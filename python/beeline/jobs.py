# SPDX-License-Identifier: Apache-2.0
"""Runs a program: yields its JSON lines as they arrive, and ends it when this process is asked to end."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from beeline.programs import CliError
from beeline.records import Event, parse_event

Show = Callable[[str], None]

PR_SET_PDEATHSIG = 1  # linux/prctl.h
# Loaded here, because a forked child must not load libraries.
prctl = ctypes.CDLL(None).prctl


class Interrupted(BaseException):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def reset_signals() -> None:
    """Resets the inherited signal state: with SIGCHLD ignored, the exit status of a process would be lost."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, signals that request the end raise Interrupted, unless they are ignored (nohup).

    Each Ctrl-C does so; each of the other signals does so only once.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)
        raise Interrupted(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    heard = [number for number in numbers if before[number] is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])


def print_error_line(line: str) -> None:
    print(line, file=sys.stderr)


@contextmanager
def running(command: list[str], show: Show = print_error_line) -> Iterator[Iterator[Event]]:
    """Runs `command` and yields its JSON lines as they arrive; `show` gets all other lines, also those of standard
    error.

    If an exception leaves it, it ends the program first, without showing the lines that the program prints then. Raises
    CliError after the last line if the program failed.
    """
    stopping = threading.Event()

    def show_unless_stopping(line: str) -> None:
        if not stopping.is_set():
            show(line)

    with wake_up() as wake, start(command) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        output = process.stdout.fileno()
        forwarder = threading.Thread(target=forward, args=(process.stderr, show_unless_stopping), daemon=True)
        try:
            forwarder.start()  # inside `try`: from now on the program shows that it runs, and a signal has to end it
            yield read_events(read_lines(output, wake), show)
            process.wait()
        except BaseException as error:
            stopping.set()
            process.send_signal(ending_signal(error))
            await_end(process, wake)
            raise
        finally:
            if forwarder.ident is not None:  # it was started
                forwarder.join()  # before the pipe that it reads is closed
    if process.returncode != 0:
        message = f"{describe_end(process.returncode)}: {' '.join(command)}"
        raise CliError(message, status=process.returncode if process.returncode > 0 else 1)


@contextmanager
def wake_up() -> Iterator[int]:
    """A descriptor that becomes readable when a signal arrives.

    A thread that blocks in a read may miss a signal that arrives just before the read, or at another thread.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """Starts `command`, which gets SIGTERM when this process dies without having ended it.

    The program has its own session, so that Ctrl-C does not reach it: this process passes each signal on once.
    """
    parent = os.getpid()
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=lambda: end_with(parent),
        )  # fmt: skip
    except OSError as problem:
        raise CliError(f"{command[0]} cannot be started: {problem.strerror}") from problem


def end_with(parent: int) -> None:
    """In a new process: SIGTERM ends it when `parent`, which started it, dies."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # the parent died before the line above could take effect
        os._exit(1)


def ending_signal(error: BaseException) -> int:
    """The signal that ends a program. Not SIGHUP: a launcher passes it to its ranks, which may ignore it."""
    is_to_end = isinstance(error, Interrupted) and error.number != signal.SIGHUP
    return error.number if is_to_end else signal.SIGTERM


def await_end(process: subprocess.Popen[bytes], wake: int) -> None:
    """Waits until a program that got a signal to end has ended; passes on the signals that arrive meanwhile."""
    assert process.stdout is not None
    while True:
        try:
            for _ in read_lines(process.stdout.fileno(), wake):  # a full pipe would keep the program from ending
                pass
            process.wait()
            return
        except Interrupted as again:
            process.send_signal(ending_signal(again))


def read_lines(descriptor: int, wake: int) -> Iterator[str]:
    """The lines of a pipe as they arrive. Signal handlers run between reads, at once."""
    parts: list[bytes] = []  # of a line that has not ended
    while True:
        ready, _, _ = select.select([descriptor, wake], [], [])
        if wake in ready:
            os.read(wake, 64)
        if descriptor not in ready:
            continue
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            break
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            yield text_of(b"".join([*parts, line]))
            parts.clear()
        parts.append(rest)
    if last := b"".join(parts):
        yield text_of(last)


def text_of(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\n")


def forward(lines: Iterable[bytes], show: Show) -> None:
    for line in lines:
        with suppress(BrokenPipeError):  # the output has no reader, but the program must not wait for a full pipe
            show(text_of(line))


def read_events(lines: Iterable[str], show: Show) -> Iterator[Event]:
    for line in lines:
        event = parse_event(line)
        if event is not None:
            yield event
        elif line.strip():
            show(line)


def describe_end(returncode: int) -> str:
    return f"ended by signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
