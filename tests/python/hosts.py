# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests: network namespaces of this machine; every packet between them goes through cable.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import command_of

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"
RANK = PROGRAMS / "hosts-rank"
CABLE = Path(__file__).resolve().parent / "cable.py"


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)


def lacking() -> str:
    """Why this machine can have no such hosts; empty if it may."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "no ip (iproute2)"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "no /dev/net/tun"
    return ""


class Hosts:
    """Namespaces that one cable connects. Raises CalledProcessError if the machine cannot create them."""

    def __init__(self, count: int = 2, network: str = "10.77.19.{}/24") -> None:
        self.addresses = [network.partition("/")[0].format(host + 1) for host in range(count)]
        self.names = [f"beeline{os.getpid()}{'abc'[host]}" for host in range(count)]
        self.cable = subprocess.Popen(
            [sys.executable, str(CABLE), *self.addresses], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.made: list[str] = []
        try:
            self.devices = self._answer().split()
            for name, device, address in zip(self.names, self.devices, self.addresses, strict=True):
                (Path("/etc/netns") / name).mkdir(parents=True)
                shutil.copy("/etc/hosts", Path("/etc/netns") / name / "hosts")
                run("ip", "netns", "add", name)
                self.made.append(name)
                run("ip", "link", "set", device, "netns", name)
                prefix = network.partition("/")[2]
                run("ip", "-n", name, "addr", "add", f"{address}/{prefix}", "dev", device)
                run("ip", "-n", name, "link", "set", device, "up")
                run("ip", "-n", name, "link", "set", "lo", "up")
        except (subprocess.CalledProcessError, ValueError):
            self.remove()
            raise

    def _answer(self) -> str:
        assert self.cable.stdout is not None
        return self.cable.stdout.readline()

    def remove(self) -> None:
        self.cable.kill()
        self.cable.communicate()
        for name in self.made:
            run("ip", "netns", "del", name)
            shutil.rmtree(Path("/etc/netns") / name)

    def change(self, command: str) -> None:
        """Sends a command to cable.py; returns once it is in effect."""
        assert self.cable.stdin is not None
        self.cable.stdin.write(command + "\n")
        self.cable.stdin.flush()
        assert self._answer() == command + "\n"

    def add_network(self, host: int, device: str, address: str) -> None:
        """Adds a network that ends on this host."""
        name = self.names[host]
        run("ip", "-n", name, "link", "add", device, "type", "veth", "peer", "name", f"{device}-end")
        run("ip", "-n", name, "addr", "add", address, "dev", device)
        for each in device, f"{device}-end":
            run("ip", "-n", name, "link", "set", each, "up")

    def cut(self, host: int = 0) -> None:
        self.change(f"cut {self.addresses[host]}")

    def on(self, host: int, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.names[host], *command]

    def start(self, rank: int, *arguments: str, program: Path = RANK, **changes: str) -> subprocess.Popen[str]:
        """Starts one rank on a host, as torchrun does on each of several."""
        torchrun = {
            "TORCHELASTIC_RUN_ID": "hosts", "RANK": str(rank), "WORLD_SIZE": str(len(self.names)),
            "LOCAL_WORLD_SIZE": "1",
        }  # fmt: skip
        return self.execute(rank, [str(program), *arguments], torchrun | changes)

    def meeting(self) -> dict[str, str]:
        """Settings that every rank needs, whatever starts it."""
        return {
            "MASTER_ADDR": self.addresses[0], "MASTER_PORT": "29400", "BEELINE_TOKEN": "one secret",
            "BEELINE_DEVICE": "cpu", "BEELINE_DEADLINE_S": "5", "BEELINE_HEAP_BYTES": "4M",
        }  # fmt: skip

    def name_host(self, host: int, name: str) -> None:
        """Makes the name known to all hosts. `ip netns exec` shows a host this file as /etc/hosts."""
        for each in self.names:
            with (Path("/etc/netns") / each / "hosts").open("a") as known:
                known.write(f"{self.addresses[host]} {name}\n")

    def execute(self, host: int, command: list[str], variables: dict[str, str]) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
        return subprocess.Popen(
            self.on(host, *command), env=environment | self.meeting() | variables,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def write_ssh(self, folder: Path) -> Path:
        """Writes a script that acts as ssh between the namespaces: a shell there runs the command."""
        names = "\n".join(f"{address}) name={name};;" for address, name in zip(self.addresses, self.names, strict=True))
        script = folder / "ssh"
        execution = 'exec ip netns exec "$name" sh -c "$*"'
        script.write_text(f'#!/bin/sh\n[ "$1" = -x ] && shift\ncase $1 in\n{names}\nesac\nshift\n{execution}\n')
        script.chmod(0o755)
        return script

    def launch(
        self, ssh: Path, *arguments: str, program: Path = RANK, security: str = "--trusted-network"
    ) -> subprocess.Popen[str]:
        """Runs the launcher on the first host, with one rank on each host."""
        command = [
            "-m", "beeline", "run", "-n", str(len(self.names)), "--device", "cpu", "--deadline", "5",
            "--hosts", ",".join(f"[{each}]" if ":" in each else each for each in self.addresses), security,
            "--ssh", str(ssh), str(program), *arguments,
        ]  # fmt: skip
        return subprocess.Popen(
            self.on(0, sys.executable, *command),
            env=os.environ | {"BEELINE_HEAP_BYTES": "4M"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def processes(self) -> list[str]:
        """Command lines of the processes in all namespaces."""
        found = []
        for name in self.names:
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
            found += [command for pid in pids.split() if (command := command_of(int(pid)).decode())]
        return found


def hosts_of(count: int, network: str = "10.77.19.{}/24") -> Iterator[Hosts]:
    """For fixtures: yields that many hosts, or skips the test."""
    if reason := lacking():
        pytest.skip(reason)
    try:
        made = Hosts(count, network)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
    yield made
    made.remove()


def skip_without_tls() -> None:
    done = subprocess.run(
        [str(PROGRAMS / "beeline-launch"), "-n", "1", "--secure", "true"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())


def ends(ranks: list[subprocess.Popen[str]], seconds: float = 100) -> list[tuple[int, str, str]]:
    """Exit status, output and errors of each rank."""
    found = []
    for rank in ranks:
        try:
            out, err = rank.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            rank.kill()
            out, err = rank.communicate()
        found.append((rank.returncode, out, err))
    return found
