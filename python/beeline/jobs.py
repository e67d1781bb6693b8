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
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from beeline.programs import CliError
from beeline.records import Event, parse_event

Show = Callable[[str], None]

PR_SET_PDEATHSIG = 1  # linux/prctl.h
# Loaded here, because a forked child must not load libraries.
prctl = ctypes.CDLL(None).prctl
SETTLE_S = 1.0  # processes that outlive a program that was ended, and keep its output open, are given this time
POLL_S = 0.02  # between two looks whether such a program has ended


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
        stop, stop_writer = os.pipe()
        lines = read_lines(process.stderr.fileno(), stop)
        forwarder = threading.Thread(target=forward, args=(lines, show_unless_stopping), daemon=True)
        try:
            forwarder.start()  # inside `try`: from now on the program shows that it runs, and a signal has to end it
            yield read_events(read_lines(process.stdout.fileno(), wake), show)
            forwarder.join()
            process.wait()  # last, because a program that was waited for no longer has its number
        except BaseException as error:
            stopping.set()
            end(process, error, wake, forwarder)
            raise
        finally:
            os.close(stop_writer)
            if forwarder.ident is not None:  # it was started
                forwarder.join()  # before the pipes that it reads are closed
            os.close(stop)
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

    The program has its own session, so that Ctrl-C does not reach it: this process passes each signal on once. So it
    leads a process group of its own, too.
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


def end(process: subprocess.Popen[bytes], error: BaseException, wake: int, forwarder: threading.Thread) -> None:
    """Ends a program: passes the signal of `error`, and those that arrive meanwhile, on to its process group, as a
    terminal does. Once the program has ended, kills what is left of the group."""
    while True:
        signal_group(process, ending_signal(error))
        try:
            drain(process, wake, forwarder)
            signal_group(process, signal.SIGKILL)
            process.wait()
            return
        except Interrupted as again:
            error = again


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    if process.returncode is None:  # it has not been waited for, so its number still belongs to its group
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def drain(process: subprocess.Popen[bytes], wake: int, forwarder: threading.Thread) -> None:
    """Reads a program's output until the program has ended, because a full pipe would keep it from ending. Then reads
    on to the end of the output and of what `forwarder` reads, but for SETTLE_S at most: a process that the program
    has started may keep them open."""
    assert process.stdout is not None
    output = process.stdout.fileno()
    sources, limit = [output, wake], None
    while limit is None or (time.monotonic() < limit and (output in sources or forwarder.is_alive())):
        ready, _, _ = select.select(sources, [], [], POLL_S)
        if wake in ready:
            os.read(wake, 64)
        if output in ready and not os.read(output, 1 << 16):
            sources.remove(output)
        if limit is None and has_ended(process):
            limit = time.monotonic() + SETTLE_S


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a program has ended; does not wait for it, so that its number stays its own."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def read_lines(descriptor: int, wake: int) -> Iterator[str]:
    """The lines of a pipe as they arrive, until the pipe or `wake` ends. Signal handlers run between reads, at once."""
    parts: list[bytes] = []  # of a line that has not ended
    while True:
        ready, _, _ = select.select([descriptor, wake], [], [])
        if wake in ready and not os.read(wake, 64):
            return
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


def forward(lines: Iterable[str], show: Show) -> None:
    for line in lines:
        with suppress(BrokenPipeError):  # the output has no reader, but the program must not wait for a full pipe
            show(line)


def read_events(lines: Iterable[str], show: Show) -> Iterator[Event]:
    for line in lines:
        event = parse_event(line)
        if event is not None:
            yield event
        elif line.strip():
            show(line)


def describe_end(returncode: int) -> str:
    return f"ended by signal {-returncode}" if returncode < 0 else f"exit status {returncode}"
