# SPDX-License-Identifier: Apache-2.0
"""Worlds of more ranks than one node can have (tests/fault/many_ranks.cpp): on parts of this machine, and on two hosts
whose ranks are not consecutive in the world."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from conftest import skip_without_ucx
from hosts import PROGRAMS, Hosts, ends, hosts_of

pytestmark = pytest.mark.timeout(300)

PROGRAM = PROGRAMS / "many-ranks"
RANKS = 66
PATIENT = {"BEELINE_DEADLINE_S": "90"}  # a rank gets little time on a core
SMALL = {"BEELINE_HEAP_BYTES": "64M", "BEELINE_PINNED_HEAP_BYTES": "1M"}


def launch(nodes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return start("--split-nodes", str(nodes), str(PROGRAM), *arguments)


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAMS / "beeline-launch"), "-n", str(RANKS), "--device", "cpu", *arguments]
    environment = PATIENT | os.environ | SMALL
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    skip_without_ucx(done.stderr)
    return done


def fail_after(seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more ranks than cores, so those that wait in vain must poll rarely."""
    monkeypatch.setenv("BEELINE_DEADLINE_S", str(seconds))
    monkeypatch.setenv("BEELINE_WAIT_POLICY", "sleep")
    monkeypatch.setenv("BEELINE_WAIT_PERIOD_US", "500")


@pytest.mark.parametrize("nodes", [2, 6])
def test_all_that_they_do(nodes: int) -> None:
    done = launch(nodes)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("has tried it") == RANKS


def test_who_does_not_come_is_named_on_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They must arrive within a second of each other, which a busy machine may prevent: up to three attempts."""
    fail_after(8, monkeypatch)
    unnamed = []
    for _ in range(3):
        done = launch(3, "50")
        assert done.returncode != 0  # the world has failed
        errors = [line for line in done.stderr.splitlines() if "error: " in line]
        assert errors
        assert all("barrier on rank" in error for error in errors), done.stderr
        unnamed = [error for error in errors if "barrier on rank 50" not in error]
        if not unnamed:
            return
    pytest.fail("\n".join(unnamed))


def test_an_error_while_others_send_ends_all_orderly() -> None:
    done = launch(3, "9", "throws")
    assert done.returncode == 1, done.stderr
    assert "killed by" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    assert errors
    assert all("thrown on purpose" in error for error in errors), done.stderr


@pytest.mark.parametrize(("victim", "how"), [(40, "kill"), (0, "kill"), (33, "hang")])
def test_the_others_go_on(victim: int, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without the first rank of the world, or of a node."""
    fail_after(8 if how == "hang" else 90, monkeypatch)  # the end of a process is noticed at once
    done = start("--split-nodes", "2", "--keep-going", str(PROGRAMS / "surviving-rank"), str(victim), how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"of {RANKS - 1}; rank {victim} has ") == RANKS - 1


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    yield from hosts_of(2)


def test_ranks_of_a_node_need_not_be_neighbours(hosts: Hosts) -> None:
    def start(rank: int) -> subprocess.Popen[str]:
        place = {
            "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(RANKS), "PMIX_NAMESPACE": "many",
            "OMPI_COMM_WORLD_LOCAL_SIZE": str(RANKS // 2), "BEELINE_DEADLINE_S": "90",
        }  # fmt: skip
        return hosts.execute(rank % 2, [str(PROGRAM)], place | SMALL)

    for status, out, err in ends([start(rank) for rank in range(RANKS)], 200):
        assert status == 0, err
        assert "has tried it" in out
