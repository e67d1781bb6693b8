# SPDX-License-Identifier: Apache-2.0
"""Ranks on two hosts, which are network namespaces of this machine: a world over UCX, and what becomes of it when the
link goes down or the ranks do not belong together."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

RANK = Path(__file__).resolve().parents[2] / "build" / "bin" / "hosts-rank"
ADDRESSES = ("10.77.19.1", "10.77.19.2")


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)


def lacking() -> str:
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "no ip (iproute2)"
    return ""


class Hosts:
    """Two namespaces that a cable connects."""

    def __init__(self) -> None:
        self.names = [f"beeline{os.getpid()}{host}" for host in "ab"]
        self.cables = [f"bl{os.getpid() % 100000}{host}" for host in "ab"]
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", self.cables[0], "type", "veth", "peer", "name", self.cables[1])
        for name, cable, address in zip(self.names, self.cables, ADDRESSES, strict=True):
            run("ip", "link", "set", cable, "netns", name)
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", cable)
            run("ip", "-n", name, "link", "set", cable, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")

    def remove(self) -> None:
        for name in self.names:
            run("ip", "netns", "del", name)

    def cut(self) -> None:
        run("ip", "-n", self.names[0], "link", "set", self.cables[0], "down")

    def start(self, rank: int, *arguments: str, **changes: str) -> subprocess.Popen[str]:
        """As torchrun does on each of several hosts."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
        environment |= {
            "TORCHELASTIC_RUN_ID": "hosts", "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29400", "BEELINE_TOKEN": "one secret",
            "BEELINE_DEVICE": "cpu", "BEELINE_DEADLINE_S": "5", "BEELINE_HEAP_BYTES": "4M",
        }  # fmt: skip
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names[rank], str(RANK), *arguments],
            env=environment | changes, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if reason := lacking():
        pytest.skip(reason)
    try:
        made = Hosts()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
    yield made
    made.remove()


def ends(ranks: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """Of each rank: exit status, output, errors."""
    found = []
    for rank in ranks:
        try:
            out, err = rank.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            rank.kill()
            out, err = rank.communicate()
        found.append((rank.returncode, out, err))
    return found


def test_a_world_on_two_hosts(hosts: Hosts) -> None:
    for rank, (status, out, err) in enumerate(ends([hosts.start(rank, "200") for rank in range(2)])):
        assert status == 0, err
        assert f"rank {rank} has played 200 rounds" in out


def test_a_cut_link_ends_both_with_the_others_name(hosts: Hosts) -> None:
    ranks = [hosts.start(rank, "1000000000") for rank in range(2)]
    for rank in ranks:
        assert rank.stdout is not None
        assert "has met" in rank.stdout.readline()
    time.sleep(0.2)
    start = time.monotonic()
    hosts.cut()
    for rank, (status, _, err) in enumerate(ends(ranks)):
        assert status not in (0, -9), err
        assert f"rank {1 - rank}" in err
    assert time.monotonic() - start < 30


def test_a_wrong_token_is_refused(hosts: Hosts) -> None:
    ranks = [hosts.start(0, BEELINE_DEADLINE_S="2"), hosts.start(1, BEELINE_TOKEN="another")]
    (_, _, first), (status, _, second) = ends(ranks)
    assert status != 0
    assert "token" in second
    assert "rank 1" in first
