# SPDX-License-Identifier: Apache-2.0
"""The command line when it is terminated or killed, with the real launcher: no process stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import FAKES, REPOSITORY
from processes import eventually, processes_with

LAUNCHER = REPOSITORY / "build" / "bin" / "beeline-launch"
BENCH, HIMENO = ("bench", "latency"), ("app", "himeno")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the real launcher and fake programs."""
    for program in (LAUNCHER, FAKES / "beeline-bench", FAKES / "himeno"):
        (tmp_path / program.name).symlink_to(program)
    return tmp_path


@contextmanager
def staying(programs: Path, command: tuple[str, ...], mark: str) -> Iterator[subprocess.Popen[str]]:
    """The command line while its two ranks, which carry a mark, run; they would not end by themselves."""
    environment = {**os.environ, "BEELINE_BIN": str(programs), "FAKE_STAYS": "1", "MARK": mark}
    with subprocess.Popen(
        [sys.executable, "-m", "beeline", *command, "--ranks", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        try:
            up = set()
            while len(up) < 2:
                line = process.stderr.readline()
                assert line
                if line.endswith("staying\n"):
                    up.add(line)
            yield process
        finally:
            for left in processes_with(mark):
                os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize(
    ("command", "number"),
    [(HIMENO, signal.SIGINT), (BENCH, signal.SIGINT), (HIMENO, signal.SIGTERM), (BENCH, signal.SIGHUP)],
    ids=str,
)
def test_a_signal_ends_the_job_first_and_takes_one_line(
    programs: Path, command: tuple[str, ...], number: signal.Signals
) -> None:
    mark = f"MARK_{uuid.uuid4().hex}"
    with staying(programs, command, mark) as process:
        os.killpg(process.pid, number)  # as a terminal does
        _, errors = process.communicate(timeout=60)
        assert processes_with(mark) == []
    assert process.returncode == 128 + number
    assert errors == f"beeline: ended by {number.name}\n"


@pytest.mark.parametrize("command", [BENCH, HIMENO], ids=" ".join)
def test_kill_9_leaves_nothing(programs: Path, command: tuple[str, ...]) -> None:
    mark = f"MARK_{uuid.uuid4().hex}"
    with staying(programs, command, mark) as process:
        process.kill()
        process.wait()
        assert eventually(lambda: processes_with(mark) == [])


def test_ctrl_c_while_the_command_line_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(300)\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-m", "beeline", "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (-signal.SIGINT, "")


LEADER = """
import sys
from beeline import jobs

with jobs.interruptible():
    try:
        with jobs.running(["sh", "-c", sys.argv[1]]) as events:
            for event in events:
                print(event["event"], flush=True)
    except jobs.Interrupted as interrupted:
        sys.exit(128 + interrupted.number)
"""


SLEEPS = "echo $STARTED; exec sleep 600"
CHILDREN = {
    "same group": f"sh -c '{SLEEPS}'",
    "standard error": f"sh -c '{SLEEPS} >/dev/null'",
    "ignores SIGTERM": f"sh -c 'trap \"\" TERM; {SLEEPS}'",
    "own session": f"setsid sh -c '{SLEEPS}'",
}


@pytest.mark.parametrize("child", CHILDREN)
@pytest.mark.parametrize("end", ["wait", "exit"])
def test_a_process_that_keeps_the_output_open_keeps_no_one_waiting(child: str, end: str) -> None:
    """The program starts a child, which inherits its output, and runs or has ended when the signal comes."""
    mark = f"MARK_{uuid.uuid4().hex}"
    with subprocess.Popen(
        [sys.executable, "-c", LEADER, f"{CHILDREN[child]} & {end}"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "MARK": mark, "STARTED": '{"event": "started"}'},
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            process.terminate()
            process.communicate(timeout=60)
            assert process.returncode == 128 + signal.SIGTERM
            assert eventually(lambda: len(processes_with(mark)) == (child == "own session"))
        finally:
            for left in processes_with(mark):
                os.kill(left, signal.SIGKILL)
