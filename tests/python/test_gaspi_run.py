# SPDX-License-Identifier: Apache-2.0
"""Starting programs for GASPI: gaspi_run and the hosts file, and the other launchers."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from launching import PROGRAMS

EXAMPLE = PROGRAMS / "gaspi_c"
RIGHT = "all values were right"


def run(command: Sequence[str | Path], **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    environment = kept | {"BEELINE_DEVICE": "cpu", "BEELINE_BIN": str(PROGRAMS)} | variables
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


def gaspi_run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "beeline.gaspi_run", *arguments])


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    file = tmp_path / "hosts"
    file.write_text(f"localhost\n\n{socket.gethostname()}  # this machine, too\nlocalhost\n")
    return file


@pytest.mark.parametrize(("options", "ranks"), [(["-n", "2"], 2), ([], 3)])
def test_a_line_is_a_rank(hosts: Path, options: list[str], ranks: int) -> None:
    done = gaspi_run("-m", hosts, *options, EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] rank {rank} of {ranks}: {RIGHT}" for rank in range(ranks)]


def test_a_ranks_failure_leaves_the_others_alive(hosts: Path) -> None:
    script = "if [ $BEELINE_RANK = 1 ]; then kill -9 $$; fi; sleep 1; echo rank $BEELINE_RANK lives with $1"
    done = gaspi_run("-m", hosts, "sh", "-c", script, "sh", "-n")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] rank {rank} lives with -n" for rank in (0, 2)]
    assert f"was killed by signal {signal.SIGKILL:d} (SIGKILL); the others may go on" in done.stderr


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("localhost\n", ["-n", "2"], "-n 2: the file has 1 lines, one per rank"),
        ("# none\n\n", [], "names no host"),
        ("localhost\na b\n", [], ":2: 'a b' is no host"),
        ("a,b\n", [], ":1: 'a,b' is no host"),
        ("-oProxyCommand=x\n", [], "is no host"),
        ("localhost\n", ["-n", "0"], "'-n'"),
    ],
)
def test_bad_hosts_are_refused(tmp_path: Path, text: str, options: list[str], words: str) -> None:
    file = tmp_path / "hosts"
    file.write_text(text)
    done = gaspi_run("-m", file, *options, "true")
    assert done.returncode == 2
    assert words in done.stderr


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    done = gaspi_run("-m", tmp_path / "nothing", "true")
    assert done.returncode == 2
    assert "No such file" in done.stderr
    assert "-m" in gaspi_run("true").stderr
    help_text = gaspi_run("--help").stdout
    assert all(words in help_text for words in ("--machines", "--ranks", "PROGRAM", "one line per rank"))


def test_hosts_elsewhere_are_reached_by_ssh(tmp_path: Path) -> None:
    """The command in place of ssh shows what it was given; it starts no rank."""
    file = tmp_path / "hosts"
    file.write_text("localhost\nother.invalid\n")
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho reached $1 >&2\nexit 255\n")
    ssh.chmod(0o755)
    done = run([sys.executable, "-m", "beeline.gaspi_run", "-m", file, "--trusted-network", "--ssh", ssh, "true"])
    assert done.returncode != 0
    assert "other.invalid" in done.stderr


def test_a_program_built_against_another_version_does_not_start(tmp_path: Path) -> None:
    """The library's functions have a version, which the program names; here it names another one."""
    code = EXAMPLE.read_bytes()
    (version,) = set(re.findall(rb"BEELINE_GASPI_\d+(?=\0)", code))
    other = tmp_path / "other"
    other.write_bytes(code.replace(version + b"\0", version[:-1] + b"x\0"))
    other.chmod(0o755)
    done = run([other])
    assert done.returncode != 0
    assert f"version `{version[:-1].decode()}x' not found (required by {other})" in done.stderr


def test_each_function_has_a_profiling_name(repository: Path) -> None:
    """A tool defines gaspi_X itself and calls pgaspi_X: the first is a weak name, and the headers have both."""
    nm = subprocess.run(
        ["nm", "-D", "--defined-only", PROGRAMS.parent / "src" / "libbeeline_gaspi.so"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    exported = {name: kind for kind, name in re.findall(r" ([TW]) (p?gaspi_\w+)", nm.stdout)}
    functions = {name for name in exported if name.startswith("gaspi_")}
    assert len(functions) > 100
    assert {exported[name] for name in functions} == {"W"}
    assert {f"p{name}" for name in functions} == {name for name, kind in exported.items() if kind == "T"}
    headers = {path.name: path.read_text() for path in (repository / "include/gaspi").glob("*.h")}
    profiled = headers.pop("PGASPI.h")
    declared = "".join(headers.values())
    for name in functions:
        assert f" {name}(" in declared, name
        assert f"GASPI_PROFILED({name.removeprefix('gaspi_')})" in profiled or f"p{name}(" in profiled, name


def expect_right(done: subprocess.CompletedProcess[str], ranks: int) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(RIGHT) == ranks


def test_mpirun_starts_ranks(tmp_path: Path) -> None:
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        pytest.skip("no mpirun")
    options = ["--allow-run-as-root", "--oversubscribe"] if os.geteuid() == 0 else ["--oversubscribe"]
    expect_right(run([mpirun, *options, "-n", "2", EXAMPLE], HOME=str(tmp_path)), 2)


def test_torchrun_starts_ranks(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    expect_right(run([*torchrun, EXAMPLE], HOME=str(tmp_path)), 2)


def test_slurms_variables_start_ranks(tmp_path: Path) -> None:
    """As srun sets them, for two tasks of one node."""

    def variables(rank: int) -> dict[str, str]:
        return {
            "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NODEID": "0", "SLURM_NTASKS": "2",
            "SLURM_NNODES": "1", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_NUM_NODES": "1", "SLURM_CLUSTER_NAME": "cluster", "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1",
            "HOME": str(tmp_path), "BEELINE_DEVICE": "cpu",
        }  # fmt: skip

    kept = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    ranks = [
        subprocess.Popen(
            [EXAMPLE], env=kept | variables(rank), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    for rank in ranks:
        out, err = rank.communicate(timeout=60)
        assert rank.returncode == 0, err
        assert RIGHT in out
