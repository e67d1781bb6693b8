# SPDX-License-Identifier: Apache-2.0
"""Fixtures and functions that the tests of the command line share."""

from __future__ import annotations

import ctypes.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from beeline.cli import main
from beeline.description import description_of

REPOSITORY = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).resolve().parent / "fakes"

# Background jobs of a shell ignore SIGINT, those of nohup SIGHUP; processes that tests interrupt would inherit this.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

# The back end's C++ part is used only by tests that ask for it: no other test compiles it.
os.environ.setdefault("BEELINE_TORCH_NATIVE", "0")
# For torch.compile: otherwise each rank starts processes that import torch, some to compile beside it, and a dozen to
# ask which vector instructions the compiler can use.
os.environ |= {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "0"}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


SETTINGS = {"BEELINE_BIN": str(FAKES), "NO_COLOR": "1", "COLUMNS": "200"}


def settings() -> dict[str, str]:
    """The tests' Python must run the fake programs: another on PATH may be a script that searches for one first."""
    return SETTINGS | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `beeline ARGUMENTS` in this process with the fake programs; keywords set environment variables."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        for name, value in {**settings(), **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["beeline", *arguments])
        description_of.cache_clear()  # another program may describe other options
        with pytest.raises(SystemExit) as end:
            main()
        output = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, end.value.code or 0, output.out, output.err)

    return run


@pytest.fixture
def cli_process() -> Run:
    """As `cli`, in a process of its own."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        merged = {**os.environ, **settings(), **environment}
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
    """The C++ part of the torch back end for this Python's torch, compiled if it is missing."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++")):
        pytest.skip("there is no C++ compiler")
    build_torch_part()


def build_torch_part(**environment: str) -> None:
    command = [sys.executable, "-m", "beeline", "build-torch", "--deadline", "400"]
    paths = {"PYTHONPATH": str(REPOSITORY / "python")}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **paths, **environment}, timeout=440, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def skip_without_ucx(said: str) -> None:
    """Skips the test if its ranks reported that they need UCX; fails it if the system has the library."""
    if "need UCX" in said:
        assert ctypes.util.find_library("ucp") is None, said
        pytest.skip("ranks on several nodes need UCX")


# The modules that programs of ranks import, and most modules that torch imports for them later.
IMPORTED = (
    "numpy", "pytest", "typer", "beeline.library", "beeline.ranks.records", "beeline.torch_backend", "torch_compiled",
    "torch_training", "torch._dynamo", "torch._inductor.compile_fx",
)  # fmt: skip


@contextmanager
def forking_python(*modules: str, **environment: str) -> Iterator[list[str]]:
    """A command that replaces `python` for ranks on CPUs: it forks a process that has imported torch and these modules
    (forked_python.py). Each import of torch takes two seconds of a core."""
    command = [sys.executable, str(Path(__file__).with_name("forked_python.py"))]
    own = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    own |= {"PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/socket"
        with subprocess.Popen(
            [*command, "serve", place, *IMPORTED, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=own | environment,
        ) as process:
            assert process.stdout.readline() == b"ready\n"
            yield [sys.executable, "-S", command[1], "run", place]
            process.stdin.close()


@pytest.fixture(scope="session")
def torch_python() -> Iterator[list[str]]:
    with forking_python() as command:
        yield command
