# SPDX-License-Identifier: Apache-2.0
"""Ranks that other launchers start join a world by the launcher's variables alone."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from ports import free_port
from processes import eventually

JOINING_RANK = str(Path(__file__).resolve().parents[2] / "build" / "bin" / "joining-rank")
FOREIGN = re.compile(r"(BEELINE|OMPI|PMIX?|MPI|SLURM|TORCHELASTIC)_|(LOCAL_|GROUP_|ROLE_)?(RANK|WORLD_SIZE)$|MASTER_")

Result = tuple[int, str, str]
Variables = dict[str, str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which rank 0 publishes its address; no variable of a launcher is set."""
    for name in list(os.environ):
        if FOREIGN.match(name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("BEELINE_DEVICE", "cpu")
    monkeypatch.setenv("BEELINE_DEADLINE_S", "20")
    return tmp_path / f"beeline-{os.geteuid()}"


def torchrun_variables(rank: int, size: int, job: str = "none", port: int = 29500) -> Variables:
    """All variables that torchrun documents for a rank, on one host."""
    return {
        "LOCAL_RANK": str(rank), "RANK": str(rank), "GROUP_RANK": "0", "ROLE_RANK": str(rank), "ROLE_NAME": "default",
        "LOCAL_WORLD_SIZE": str(size), "WORLD_SIZE": str(size), "GROUP_WORLD_SIZE": "1", "ROLE_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RUN_ID": job,
    }  # fmt: skip


def srun_variables(rank: int, size: int, job: str = "1234") -> Variables:
    return {
        "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NTASKS": str(size), "SLURM_NNODES": "1",
        "SLURM_NODEID": "0", "SLURM_JOB_ID": job, "SLURM_JOBID": job, "SLURM_STEP_ID": "0", "SLURM_STEPID": "0",
        "SLURM_STEP_NUM_TASKS": str(size), "SLURM_STEP_NUM_NODES": "1", "SLURM_CLUSTER_NAME": "cluster",
    }  # fmt: skip


def hydra_variables(rank: int, size: int) -> Variables:
    return {
        "PMI_RANK": str(rank), "PMI_SIZE": str(size), "PMI_FD": "9",
        "MPI_LOCALRANKID": str(rank), "MPI_LOCALNRANKS": str(size),
    }  # fmt: skip


def start(variables: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [JOINING_RANK, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **variables},
    )  # fmt: skip


def results(processes: Sequence[subprocess.Popen[str]]) -> list[Result]:
    ended = []
    for process in processes:
        output, errors = process.communicate(timeout=60)
        ended.append((process.returncode, output, errors))
    return ended


def run_ranks(every: Sequence[Mapping[str, str]], *arguments: str) -> list[Result]:
    return results([start(variables, *arguments) for variables in every])


def expect_a_world(ended: Sequence[Result], size: int) -> str:
    """Checks that ranks 0 to size - 1 met the same processes; returns their numbers."""
    met = set()
    for rank, (code, output, errors) in enumerate(ended):
        assert code == 0, errors
        match = re.fullmatch(rf"world 0 rank {rank} of {size} met ([\d ]+)\n", output)
        assert match, output
        met.add(match[1])
    assert len(met) == 1
    return met.pop()


@pytest.mark.parametrize("variables", [torchrun_variables, srun_variables, hydra_variables])
def test_ranks_join_by_the_launchers_variables(variables, folder: Path) -> None:
    expect_a_world(run_ranks([variables(rank, 3) for rank in range(3)]), 3)
    assert list(folder.iterdir()) == []


def test_of_several_launchers_the_innermost_counts() -> None:
    """`env` stands for a launcher: it adds its variables to those of an outer launcher."""
    own = {"BEELINE_RANK": "1", "BEELINE_SIZE": "3", "BEELINE_RENDEZVOUS": "127.0.0.1:9"}
    sets = {"torchrun": torchrun_variables(0, 2), "mpirun": hydra_variables(3, 4), "beeline": own}
    info = str(Path(JOINING_RANK).parent / "beeline-info")
    for outer in sets:
        for inner in set(sets) - {outer}:
            outers, inners = ([f"{name}={text}" for name, text in sets[each].items()] for each in (outer, inner))
            command = ["env", "-i", *outers, "sh", "-c", '"$@"; exit $?', "sh", "env", *inners, info]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["launcher"]["name"] == inner, f"{inner} in {outer}"


def test_two_jobs_at_once_do_not_meet() -> None:
    jobs = [[start(torchrun_variables(rank, 2, "none", port)) for rank in range(2)] for port in (29500, 29501)]
    worlds = {expect_a_world(results(processes), 2) for processes in jobs}
    assert len(worlds) == 2


def test_worlds_after_each_other_and_at_once() -> None:
    for code, output, errors in run_ranks([srun_variables(rank, 2) for rank in range(2)], "worlds"):
        assert code == 0, errors
        assert output.count(" of 2 met ") == 6


def wait_for_file(folder: Path) -> Path:
    """Rank 0's file. One that has not its name yet, which has no suffix, does not count."""
    assert eventually(lambda: any(not file.suffix for file in folder.glob("*"))), "rank 0 left no file"
    return next(file for file in folder.glob("*") if not file.suffix)


def test_the_file_of_a_killed_job_is_not_believed(folder: Path) -> None:
    with start(srun_variables(0, 2)) as killed:
        stale = wait_for_file(folder)
        killed.kill()
    assert stale.exists()
    ((code, _, errors),) = run_ranks([{**srun_variables(1, 2), "BEELINE_DEADLINE_S": "0.2"}])
    assert code == 1
    assert f"{stale} was left by a process that has ended" in errors
    expect_a_world(run_ranks([srun_variables(rank, 2) for rank in range(2)]), 2)


def test_missing_ranks_are_named(folder: Path) -> None:
    ended = run_ranks([{**srun_variables(rank, 4), "BEELINE_DEADLINE_S": "3"} for rank in (0, 2)])
    for code, _, errors in ended:
        assert code == 1
        assert "ranks 1, 3 never joined the world" in errors
    assert list(folder.iterdir()) == []


def test_a_missing_rank_zero_is_named() -> None:
    ((code, _, errors),) = run_ranks([{**srun_variables(1, 2), "BEELINE_DEADLINE_S": "0.2"}])
    assert code == 1
    assert "rank 0 was not found within 0.2 s by rank 1 of 2 (srun): it has not published an address in" in errors


def test_a_wrong_token_is_refused() -> None:
    tokens = [{"BEELINE_TOKEN": "one"}, {"BEELINE_TOKEN": "two"}, {}]
    ended = run_ranks([{**srun_variables(rank, 3), **tokens[rank], "BEELINE_DEADLINE_S": "2"} for rank in range(3)])
    assert "wrong token" in ended[1][2]
    assert "rank 0 was given a BEELINE_TOKEN, rank 2 was not" in ended[2][2]
    assert "ranks 1, 2 never joined" in ended[0][2]
    assert "two" not in ended[0][2]


def test_a_token_that_all_ranks_have_is_not_written_down(folder: Path) -> None:
    with start({**srun_variables(0, 2), "BEELINE_TOKEN": "very secret"}) as first:
        assert "very secret" not in wait_for_file(folder).read_text()
        with start({**srun_variables(1, 2), "BEELINE_TOKEN": "very secret"}) as second:
            expect_a_world(results([first, second]), 2)


def test_a_rank_count_that_contradicts_is_refused() -> None:
    first, second = (
        {**srun_variables(0, 2), "BEELINE_DEADLINE_S": "2"},
        {**srun_variables(1, 2), "SLURM_STEP_NUM_TASKS": "3"},
    )
    ended = run_ranks([first, second])
    assert "size 3, but the world has 2 ranks" in ended[1][2]
    assert "rank 1 never joined" in ended[0][2]


@pytest.mark.parametrize(
    ("twice", "reason"), [(0, "is rank 0 of this job already"), (1, "rank 1 has already joined, from another process")]
)
def test_two_ranks_with_the_same_number(twice: int, reason: str) -> None:
    # Of the two ranks with this number, the later one is refused at once.
    processes = [start(srun_variables(rank, 3)) for rank in (0, 1, twice)]
    late = wait_for_one_to_end(processes)
    ((code, _, errors),) = results([late])
    assert code == 1
    assert reason in errors
    by_rank = [processes[0], processes[2], processes[1]] if twice == 0 else processes
    rest = [process for process in by_rank if process is not late]
    expect_a_world(results([*rest, start(srun_variables(2, 3))]), 3)


def wait_for_one_to_end(processes: Sequence[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    assert eventually(lambda: any(process.poll() is not None for process in processes)), "no rank was refused"
    return next(process for process in processes if process.returncode is not None)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_dead_rank_is_noticed_without_beelines_launcher(victim: int) -> None:
    begin = time.monotonic()
    ended = run_ranks([torchrun_variables(rank, 3) for rank in range(3)], "kill", str(victim))
    assert time.monotonic() - begin < 20, f"by the connection's end, not by a deadline of 20 s: {ended}"
    for rank, (code, _, errors) in enumerate(ended):
        assert code == (-signal.SIGKILL if rank == victim else 1)
        assert rank == victim or f"rank {victim} ended without leaving the world" in errors


class TestSeveralHosts:
    """The parts that one host can test: the variables say that each rank is on a host of its own."""

    def variables(self, **more: str) -> list[Variables]:
        port = str(free_port())
        master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "SLURM_STEP_NUM_NODES": "2"}
        return [{**srun_variables(rank, 2), **master, **more} for rank in range(2)]

    def test_without_a_token_they_meet_in_their_home(self, folder: Path) -> None:
        """Also if files of a killed job remain there."""
        for code, output, errors in run_ranks(self.variables(), "worlds"):
            assert code == 0, errors
            assert output.count(" of 2 met ") == 6
        home = folder.parent / "home" / ".beeline"
        assert list(home.iterdir()) == []
        with start(self.variables()[0]) as killed:
            stale = wait_for_file(home)
            killed.kill()
        assert stale.stat().st_mode & 0o777 == 0o600
        expect_a_world(run_ranks(self.variables()), 2)
        ((code, _, errors),) = run_ranks([self.variables(HOME="/proc", BEELINE_DEADLINE_S="0.2")[1]])
        assert code == 1
        assert "/proc/.beeline cannot be made" in errors

    def leave_a_stale_file(self, home: Path) -> subprocess.Popen[str]:
        """Leaves rank 0's file of a killed job, and starts rank 0 of another job, which gets the port."""
        earlier = self.variables()[0]
        with start(earlier) as killed:
            stale = wait_for_file(home)
            killed.kill()
        other = start({**earlier, "SLURM_JOB_ID": "4321"})
        assert eventually(lambda: any(file != stale and not file.suffix for file in home.iterdir()))
        return other

    def test_a_rank_waits_for_the_file_that_replaces_a_stale_one(self, folder: Path) -> None:
        with self.leave_a_stale_file(folder.parent / "home" / ".beeline") as other:
            first, second = self.variables()
            with start(second) as waiting:
                assert waiting.stderr is not None
                warning = waiting.stderr.readline()
                assert "waits for another file of rank 0" in warning
                expect_a_world(results([start(first), waiting]), 2)
            other.kill()

    @pytest.mark.parametrize("token", ["", "another"])
    def test_a_file_that_stays_stale_is_named(self, folder: Path, token: str) -> None:
        with self.leave_a_stale_file(folder.parent / "home" / ".beeline") as other:
            alone = self.variables(BEELINE_DEADLINE_S="0.5")[1]
            alone |= {"BEELINE_TOKEN": token, "MASTER_PORT": "", "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1"}
            ((code, _, errors),) = run_ranks([alone])
            other.kill()
        warning, error = errors.splitlines()
        assert code == 1
        assert "waits for another file of rank 0" in warning
        assert "rank 0 was not found within 0.5 s by rank 1 of 2 (srun): the server at 127.0.0.1:" in error
        assert 'says "wrong token". ' in error
        assert ".beeline/world-" in error
        assert "is of an earlier job, whose port this server has got" in error
        assert ("or the BEELINE_TOKEN of rank 1 is not that of rank 0" in error) == bool(token)

    def test_a_home_that_is_not_shared_is_named(self, tmp_path: Path) -> None:
        every = self.variables(BEELINE_DEADLINE_S="1")
        (tmp_path / "another").mkdir()
        every[1]["HOME"] = str(tmp_path / "another")
        (_, _, first), (code, _, second) = run_ranks(every)
        assert code == 1
        assert "another/.beeline/world-" in second
        assert "a folder that all hosts must share; without one set BEELINE_TOKEN, MASTER_ADDR" in second
        assert "rank 1 never joined the world" in first

    def test_an_address_is_demanded(self) -> None:
        every = self.variables(BEELINE_TOKEN="secret")
        for each in every:
            del each["MASTER_ADDR"]
        for code, _, errors in run_ranks(every):
            assert code == 1
            assert "set MASTER_ADDR and MASTER_PORT" in errors
        for each in every:
            each["SLURM_LAUNCH_NODE_IPADDR"] = "127.0.0.1"
        ((code, _, errors),) = run_ranks(every[:1])
        assert code == 1
        assert "srun says that it runs at 127.0.0.1, which is no address that other hosts reach" in errors

    def test_a_secure_world_needs_a_token(self) -> None:
        ((code, _, errors),) = run_ranks(self.variables(BEELINE_SECURE="1")[:1])
        assert code == 1
        assert "for BEELINE_SECURE=1 set BEELINE_TOKEN to a secret, the same on all of them" in errors

    def test_a_name_that_is_never_known_is_named(self) -> None:
        late = {"MASTER_ADDR": "host.invalid", "BEELINE_TOKEN": "secret", "BEELINE_DEADLINE_S": "0.3"}
        (_, _, first), (_, _, second) = run_ranks(self.variables(**late))
        assert 'the name of "host.invalid:' in first
        assert "was not found within 0.3 s" in first
        assert "rank 0 was not found within 0.3 s by rank 1 of 2 (srun): unreachable: the name of" in second

    def test_with_both_ranks_join_often(self, folder: Path) -> None:
        for code, output, errors in run_ranks(self.variables(BEELINE_TOKEN="secret"), "worlds"):
            assert code == 0, errors
            assert output.count(" of 2 met ") == 6
        assert not folder.exists()

    def test_a_missing_rank_zero_is_named(self) -> None:
        ((code, _, errors),) = run_ranks(self.variables(BEELINE_TOKEN="secret", BEELINE_DEADLINE_S="0.2")[1:])
        assert code == 1
        assert "rank 0 was not found within 0.2 s" in errors
        assert "cannot connect to the rendezvous server at 127.0.0.1:" in errors

    def test_a_port_in_use_is_named(self) -> None:
        every = self.variables(BEELINE_TOKEN="secret")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", int(every[0]["MASTER_PORT"]) + 1))
            taken.listen()
            ((code, _, errors),) = run_ranks(every[:1])
        assert code == 1
        assert "cannot listen on 127.0.0.1:" in errors


@pytest.fixture
def mpirun() -> list[str]:
    program = shutil.which("mpirun")
    if program is None:
        pytest.skip("mpirun is not installed")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return [program, *(["--allow-run-as-root", "--oversubscribe"] if "Open MPI" in version else [])]


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_mpirun(mpirun: list[str], folder: Path) -> None:
    ended = run([*mpirun, "-n", "3", JOINING_RANK, "worlds"])
    assert ended.returncode == 0, ended.stderr
    assert len(set(re.findall(r"world 5 rank \d of 3 met ([\d ]+)$", ended.stdout, re.MULTILINE))) == 1
    assert ended.stdout.count(" of 3 met ") == 18
    assert list(folder.iterdir()) == []


def test_two_mpiruns_at_once(mpirun: list[str], tmp_path: Path) -> None:
    command = [*mpirun, "-n", "2", JOINING_RANK]
    jobs = []
    for name in ("first", "second"):  # if two create their session's folder at once in one place, Open MPI ends one
        (tmp_path / name).mkdir()
        own = {**os.environ, "TMPDIR": str(tmp_path / name)}
        jobs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own))
    worlds = set()
    for code, output, errors in results(jobs):
        assert code == 0, errors
        met = set(re.findall(r" of 2 met ([\d ]+)$", output, re.MULTILINE))
        assert len(met) == 1
        worlds |= met
    assert len(worlds) == 2


def test_torchrun() -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    ended = run([
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python",
        JOINING_RANK,
    ])  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert len(set(re.findall(r" of 2 met ([\d ]+)$", ended.stdout, re.MULTILINE))) == 1
