# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from beeline.cli import main
from beeline.description import commands

REPOSITORY = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).resolve().parent / "fakes"

# A shell's background jobs ignore SIGINT, those of nohup SIGHUP, and so would all that the tests start and interrupt.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

# The back end's C++ part only where a test asks for it: no test compiles it beside others.
os.environ.setdefault("BEELINE_TORCH_NATIVE", "0")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


SETTINGS = {"BEELINE_BIN": str(FAKES), "NO_COLOR": "1", "COLUMNS": "200"}


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `beeline ARGUMENTS` in this process, over the fake programs; keywords set environment variables."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        for name, value in {**SETTINGS, **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["beeline", *arguments])
        commands.cache_clear()  # another program may describe others
        with pytest.raises(SystemExit) as end:
            main()
        output = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, end.value.code or 0, output.out, output.err)

    return run


@pytest.fixture
def cli_process() -> Run:
    """As `cli`, in a process of its own."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        merged = {**os.environ, **SETTINGS, **environment}
        command = [sys.executable, "-m", "beeline", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=merged, timeout=60, check=False)

    return run


@pytest.fixture
def tool() -> Run:
    """Runs `tools/NAME ARGUMENTS`."""

    def run(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(REPOSITORY / "tools" / name), *(str(argument) for argument in arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="session")
def native_part() -> None:
    """The C++ part of the torch back end, for the torch of this Python: compiled if it is not there."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++")):
        pytest.skip("there is no C++ compiler")
    build_torch_part()


def build_torch_part(**environment: str) -> None:
    command = [sys.executable, "-m", "beeline", "build-torch", "--deadline", "200"]
    paths = {"PYTHONPATH": str(REPOSITORY / "python")}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **paths, **environment}, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
