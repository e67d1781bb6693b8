# SPDX-License-Identifier: Apache-2.0
"""The C++ part of the torch back end: how it is compiled and chosen, and that nothing else depends on it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from conftest import REPOSITORY
from processes import eventually

torch = pytest.importorskip("torch", reason="torch is not installed")
from beeline import torch_native  # noqa: E402 it needs torch

LAUNCHER = str(REPOSITORY / "build" / "bin" / "beeline-launch")
RANK = str(Path(__file__).resolve().parent / "torch_native_rank.py")
RUN_PYTHON = {"PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}

Compiler = Callable[[str], None]


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """Makes a given script the compiler; $out in it is the file that it must write. The compilation cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", str(tmp_path / "compiler"))
    monkeypatch.delenv(torch_native.SWITCH, raising=False)
    monkeypatch.setattr(torch_native, "_loaded", {})

    def write(text: str) -> None:
        (tmp_path / "compiler").write_text(f'#!/bin/sh\nfor out; do :; done\necho once >>"{tmp_path}/runs"\n{text}\n')
        (tmp_path / "compiler").chmod(0o755)

    return write


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines()) if (folder / "runs").exists() else 0


def wait_for(file: Path) -> None:
    """The compiler has the lowest priority: on a busy machine it gets little of a core."""
    assert eventually(file.exists, 100), file


def test_it_is_compiled_in_the_background_and_used_by_later_programs(
    compiler: Compiler, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go = tmp_path / "go"
    compiler(f'while [ ! -e "{go}" ]; do sleep 0.02; done; echo part >"$out"')
    for _ in range(3):
        with pytest.raises(torch_native.Unavailable, match=r"is being compiled .*; programs that start later have it"):
            torch_native.native_part()
    go.touch()
    wait_for(torch_native.part())
    assert runs(tmp_path) == 1
    assert [record.message for record in caplog.records if "in the background; this run" in record.message] != []
    assert len(caplog.records) == 1
    with pytest.raises(torch_native.Unavailable, match=r"cannot be loaded: .*Remove it, and it is compiled again"):
        torch_native.native_part()


def test_a_compiler_that_fails_is_said_with_its_reason_and_not_called_again(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiler("echo; echo 'part.cpp:1: fatal error: Python.h: No such file'; exit 1")
    with pytest.raises(torch_native.Unavailable, match="being compiled"):
        torch_native.native_part()
    wait_for(torch_native.part().with_suffix(".so.failed"))
    for _ in range(2):
        with pytest.raises(torch_native.Unavailable) as caught:
            torch_native.native_part()
        assert str(caught.value).startswith("the compiler failed (part.cpp:1: fatal error: Python.h: No such file; all")
        torch_native.report(caught.value)
    assert runs(tmp_path) == 1
    assert [record.message.count("through Python: the compiler failed") for record in caplog.records] == [0, 1]
    monkeypatch.setenv(torch_native.SWITCH, "1")
    with pytest.raises(ImportError, match="BEELINE_TORCH_NATIVE=1: the compiler failed"):
        torch_native.native_part()
    assert runs(tmp_path) == 2
    compiler('echo part >"$out"')
    assert torch_native.build() == torch_native.part()
    assert torch_native.failure() is None


def test_the_command_says_what_it_has_done(compiler: Compiler, tmp_path: Path, cli) -> None:
    compiler("echo 'error: no headers'; exit 1")
    done = cli("build-torch")
    assert (done.returncode, "beeline: the compiler failed (error: no headers" in done.stderr) == (1, True)
    compiler("sleep 60")
    done = cli("build-torch", "--deadline", "3")
    assert (done.returncode, "beeline: the compiler took longer than 3 s" in done.stderr) == (1, True)
    compiler('echo part >"$out"')
    assert "cannot be loaded" in cli("build-torch").stderr
    assert runs(tmp_path) == 3


def test_switches_are_obeyed(compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler('echo part >"$out"')
    monkeypatch.setenv(torch_native.SWITCH, "0")
    with pytest.raises(torch_native.Unavailable, match=r"^BEELINE_TORCH_NATIVE=0$"):
        torch_native.native_part()
    assert runs(tmp_path) == 0
    monkeypatch.setenv(torch_native.SWITCH, "perhaps")
    with pytest.raises(ValueError, match=r"BEELINE_TORCH_NATIVE=perhaps: valid are 0 "):
        torch_native.native_part()


def test_without_a_compiler_or_a_folder_calls_go_through_python(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(torch_native.Unavailable, match=r"there is no C\+\+ compiler \(no-such-compiler\)"):
        torch_native.native_part()
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(torch_native.Unavailable, match=r"there is no C\+\+ compiler \(c\+\+, g\+\+, clang\+\+\)"):
        torch_native.native_part()
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setenv("CXX", "true -m64")
    with pytest.raises(torch_native.Broken, match=r"^/dev/null/beeline/.*Not a directory.*Set XDG_CACHE_HOME"):
        torch_native.build()


def test_users_without_a_home_or_a_way_into_it_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    def no_way(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which is ignored
    monkeypatch.delenv(torch_native.SWITCH, raising=False)
    with monkeypatch.context() as homeless:
        homeless.setattr(Path, "expanduser", no_home)
        with pytest.raises(torch_native.Broken, match=r"^this user has no home directory. Set XDG_CACHE_HOME"):
            torch_native.native_part()
    monkeypatch.setattr(os, "stat", no_way)
    monkeypatch.setattr(Path, "mkdir", no_way)
    monkeypatch.setattr(torch_native, "command", list)
    monkeypatch.setattr(torch_native, "failure", lambda: None)
    with pytest.raises(torch_native.Broken, match="Permission denied"):
        torch_native.native_part()


def test_a_part_that_others_may_have_written_is_not_loaded(compiler: Compiler) -> None:
    compiler('echo part >"$out"')
    place = torch_native.build()
    place.chmod(0o666)
    with pytest.raises(
        torch_native.Broken, match=r"_beeline_torch.so belongs to user \d+, mode 666. Set XDG_CACHE_HOME"
    ):
        torch_native.loaded(place)


def test_a_compiler_that_somebody_ends_is_called_again(compiler: Compiler, tmp_path: Path) -> None:
    compiler("kill -9 $$")
    with pytest.raises(torch_native.Broken, match="the compiler ended with status 137"):
        torch_native.build()
    compiler("echo 'c++: fatal error: Killed signal terminated program cc1plus'; exit 1")
    with pytest.raises(torch_native.Broken, match=r"the compiler ended with status 1$"):
        torch_native.build()
    assert torch_native.failure() is None
    assert runs(tmp_path) == 2


def is_free(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(lock, fcntl.LOCK_UN)
    return True


def test_a_lock_that_stays_is_named_at_the_deadline_and_ends_with_its_holder(
    compiler: Compiler, tmp_path: Path
) -> None:
    compiler('echo part >"$out"')
    folder = torch_native.part().parent
    folder.mkdir(parents=True)
    holder = subprocess.Popen(["flock", folder / "lock", "sleep", "60"], start_new_session=True)
    with (folder / "lock").open("w") as lock:
        while is_free(lock):
            time.sleep(0.02)
    with pytest.raises(torch_native.Unavailable) as caught:
        torch_native.build(deadline_s=0.5)
    assert str(caught.value).startswith(f"another process has held {folder / 'lock'} for 0.5 s: it compiles, or hangs")
    os.killpg(holder.pid, signal.SIGKILL)
    holder.wait()
    assert torch_native.build(deadline_s=20) == torch_native.part()
    assert runs(tmp_path) == 1


def test_processes_that_need_it_at_once_compile_it_once(
    torch_python: list[str], compiler: Compiler, tmp_path: Path
) -> None:
    compiler('sleep 1; echo part >"$out"')
    program = "from beeline import torch_native; print(torch_native.build())"
    command = [*torch_python, "-c", program]
    started = [subprocess.Popen(command, env={**os.environ, **RUN_PYTHON}, stdout=subprocess.PIPE) for _ in range(3)]
    outputs = {process.communicate(timeout=60)[0].decode().strip() for process in started}
    assert outputs == {str(torch_native.part())}
    assert runs(tmp_path) == 1


def run_ranks(
    python: list[str], device: str, ranks: int, native: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    settings = {**RUN_PYTHON, "BEELINE_TORCH_NATIVE": native} | ({"BEELINE_DEVICE": "cpu"} if device == "cpu" else {})
    interpreter = python if device == "cpu" else [sys.executable]
    command = [LAUNCHER, "-n", str(ranks), "--", *interpreter, RANK, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **settings}, timeout=100, check=False
    )


def ranks_on(device: str) -> int:
    pytest.importorskip("beeline.library", exc_type=ImportError)
    if device == "gpu" and torch.cuda.device_count() < 2:
        pytest.skip(f"{torch.cuda.device_count()} GPUs: two are needed")
    return 3 if device == "cpu" else min(3, torch.cuda.device_count())


@pytest.mark.usefixtures("native_part")
@pytest.mark.timeout(250)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_results_are_the_same_both_ways(torch_python: list[str], device: str) -> None:
    ranks = ranks_on(device)
    found = []
    for native in ("0", "1"):
        done = run_ranks(torch_python, device, ranks, native)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if "{" in line]
        found.append({line["rank"]: line["results"] for line in lines})
    assert len(found[0]) == ranks
    assert found[0] == found[1]


@pytest.mark.usefixtures("native_part")
@pytest.mark.timeout(250)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_rank_that_dies_is_named(torch_python: list[str], device: str) -> None:
    ranks = ranks_on(device)
    done = run_ranks(torch_python, device, ranks, "1", "dies")
    assert done.stdout.count("hears it") == ranks - 1, done.stdout + done.stderr
