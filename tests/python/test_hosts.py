# SPDX-License-Identifier: Apache-2.0
"""Ranks on two hosts, which are network namespaces of this machine: a world over UCX, and what becomes of it when the
link goes down or the ranks do not belong together."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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

    def write_ssh(self, folder: Path) -> Path:
        """What ssh does, between the namespaces: a shell there runs the command."""
        names = "\n".join(f"{address}) name={name};;" for address, name in zip(ADDRESSES, self.names, strict=True))
        script = folder / "ssh"
        script.write_text(f'#!/bin/sh\ncase $1 in\n{names}\nesac\nshift\nexec ip netns exec "$name" sh -c "$*"\n')
        script.chmod(0o755)
        return script

    def launch(self, ssh: Path, *arguments: str, program: Path = RANK) -> subprocess.Popen[str]:
        """On the first host, ranks 0 and 1 on hosts of their own."""
        command = [
            "-m", "beeline", "run", "-n", "2", "--device", "cpu", "--deadline", "5", "--hosts", ",".join(ADDRESSES),
            "--ssh", str(ssh), str(program), *arguments,
        ]  # fmt: skip
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names[0], sys.executable, *command],
            env=os.environ | {"BEELINE_HEAP_BYTES": "4M"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def processes(self) -> list[str]:
        """Command lines in both namespaces."""
        found = []
        for name in self.names:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
            found += [Path(f"/proc/{pid}/cmdline").read_text() for pid in pids.split() if Path(f"/proc/{pid}").exists()]
        return found


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


def wait_until(happens: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_run_starts_ranks_over_ssh(hosts: Hosts, tmp_path: Path) -> None:
    [(status, out, err)] = ends([hosts.launch(hosts.write_ssh(tmp_path), "50")])
    assert status == 0, err
    for rank in range(2):
        assert f"[{rank}] rank {rank} has played 50 rounds" in out


def test_a_rank_over_ssh_hears_its_arguments_and_variables(hosts: Hosts, tmp_path: Path) -> None:
    script = tmp_path / "a program"
    script.write_text('#!/bin/sh\necho "$BEELINE_RANK of $BEELINE_SIZE: $1|$2|$BEELINE_TOKEN"\nexit 3\n')
    script.chmod(0o755)
    [(status, out, err)] = ends([hosts.launch(hosts.write_ssh(tmp_path), "it's", "two words", program=script)])
    assert status == 3
    assert "of 2: it's|two words|" in out
    token = out.split("|")[2].splitlines()[0]
    assert len(token) >= 32
    assert "exited with code 3" in err


def test_ranks_over_ssh_end_with_their_launcher(hosts: Hosts, tmp_path: Path) -> None:
    launcher = hosts.launch(hosts.write_ssh(tmp_path), "1000000000")
    assert launcher.stdout is not None
    assert "has met" in launcher.stdout.readline()
    commands = hosts.processes()
    assert sum(str(RANK) in line for line in commands) >= 2
    secrets = [word for line in commands for word in line.split("\0") if "TOKEN=" in word]
    assert secrets == []
    launcher.kill()
    ends([launcher])
    assert wait_until(lambda: not hosts.processes()), hosts.processes()


def test_the_end_of_the_launchers_host_ends_ranks_elsewhere(hosts: Hosts, tmp_path: Path) -> None:
    launcher = hosts.launch(hosts.write_ssh(tmp_path), "1000000000")
    assert launcher.stdout is not None
    assert "has met" in launcher.stdout.readline()
    hosts.cut()
    (status, _, err) = ends([launcher])[0]
    assert status != 0
    assert "rank 1" in err
    assert wait_until(lambda: not hosts.processes(), 40), hosts.processes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-n", "1", "--hosts", "a,b"], "2 hosts for 1 ranks"),
        (["-n", "2", "--hosts", "a,-oProxyCommand=x"], "is no host"),
        (["-n", "2", "--hosts", "host.invalid"], "host.invalid"),
        (["-n", "2", "--hosts", "a", "--threads"], "--threads"),
        (["-n", "2", "--ssh", "rsh"], "--hosts"),
    ],
)
def test_bad_hosts_are_refused(options: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "beeline", "run", *options, "true"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


def test_an_application_on_two_nodes_of_this_machine() -> None:
    options = ["--method", "device", "--size", "16", "--ranks", "2", "--device", "cpu", "--split-nodes", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "beeline", "app", "jacobi", *options, "--json"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "need UCX" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    environment, result = (json.loads(line) for line in done.stdout.splitlines())
    assert environment["variables"]["BEELINE_SPLIT_NODES"] == "2"
    assert result["verified"]
