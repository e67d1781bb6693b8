# SPDX-License-Identifier: Apache-2.0
"""Faults between hosts, which are network namespaces of this machine: delay and loss, a link that is cut during a put,
a host that disappears silently, strangers at the ports, ranks of another version. The world continues, or every rank
ends by its deadline with an error that names the cause."""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import RANK, Hosts, ends, hosts_of

FOR_EVER = "1000000000"
LONG = str(8 << 20)  # words of a long put: 64 MB
DEADLINE_S = 5  # of Hosts.start
SLACK_S = 20  # time for ranks to report to each other, and to end


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    yield from hosts_of(2)


@pytest.fixture
def three_hosts() -> Iterator[Hosts]:
    yield from hosts_of(3)


def start_all(hosts: Hosts, *arguments: str, **changes: str) -> list[subprocess.Popen[str]]:
    """Ranks that have met."""
    ranks = [hosts.start(rank, *arguments, **changes) for rank in range(len(hosts.names))]
    for rank in ranks:
        assert rank.stdout is not None
        line = rank.stdout.readline()
        assert "has met" in line, ends(ranks)
    return ranks


def round_trip_seconds(hosts: Hosts) -> float:
    """The shortest round trip, of several, of a packet between the first two hosts."""
    echo = subprocess.Popen(
        hosts.on(1, sys.executable, "-c", ECHO, hosts.addresses[1]), stdout=subprocess.PIPE, text=True
    )
    assert echo.stdout is not None
    echo.stdout.readline()
    asked = subprocess.run(
        hosts.on(0, sys.executable, "-c", ASK, hosts.addresses[1]),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    echo.kill()
    echo.communicate()
    return float(asked.stdout)


ECHO = """
import socket, sys
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind((sys.argv[1], 29500))
print("ready", flush=True)
while True:
    here.sendto(*here.recvfrom(64))
"""
ASK = """
import socket, sys, time
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.settimeout(2)
times = []
for attempt in range(20):
    start = time.monotonic()
    here.sendto(bytes([attempt]), (sys.argv[1], 29500))
    try:
        answer = here.recv(64)
    except TimeoutError:
        continue
    if answer == bytes([attempt]):
        times.append(time.monotonic() - start)
    if len(times) == 3:
        break
print(min(times))
"""


def test_a_slow_network_that_loses_packets_only_takes_time(hosts: Hosts) -> None:
    hosts.change("delay 0.1")
    hosts.change("loss 0.05")
    round_trip = round_trip_seconds(hosts)
    assert round_trip >= 0.2
    start = time.monotonic()
    ranks = [hosts.start(rank, "3", "2000", BEELINE_DEADLINE_S="60") for rank in range(2)]
    for rank, (status, out, err) in enumerate(ends(ranks)):
        assert status == 0, err
        assert f"rank {rank} has played 3 rounds" in out
    assert time.monotonic() - start > 3 * 0.2


def test_a_link_that_is_cut_in_the_middle_of_a_put(hosts: Hosts) -> None:
    ranks = start_all(hosts, FOR_EVER, LONG, BEELINE_HEAP_BYTES="256M")
    time.sleep(1)
    start = time.monotonic()
    hosts.cut()
    for rank, (status, _, err) in enumerate(ends(ranks)):
        assert status not in (0, -9), err
        assert f"rank {1 - rank}" in err
    assert time.monotonic() - start < DEADLINE_S + SLACK_S


def test_a_host_that_is_gone_without_a_word(hosts: Hosts) -> None:
    """Its connections stay half open: the other side never sees their end."""
    ranks = start_all(hosts, FOR_EVER)
    hosts.cut(1)
    ranks[1].kill()
    start = time.monotonic()
    (status, _, err) = ends(ranks)[0]
    assert status not in (0, -9), err
    assert "rank 1" in err
    assert time.monotonic() - start < DEADLINE_S + SLACK_S


def test_three_hosts_one_of_which_is_cut_off(three_hosts: Hosts) -> None:
    ranks = start_all(three_hosts, FOR_EVER)
    time.sleep(0.2)
    start = time.monotonic()
    three_hosts.cut(2)
    found = ends(ranks)
    for rank in range(2):
        status, _, err = found[rank]
        assert status not in (0, -9), err
        assert "rank 2" in err
    assert found[2][0] != 0
    assert time.monotonic() - start < DEADLINE_S + SLACK_S


def test_three_hosts_play(three_hosts: Hosts) -> None:
    for rank, (status, out, err) in enumerate(ends([three_hosts.start(rank, "100") for rank in range(3)])):
        assert status == 0, err
        assert f"rank {rank} has played 100 rounds" in out


def open_ports(hosts: Hosts, host: int) -> list[str]:
    """TCP addresses at which a process of this host listens, as ADDRESS:PORT."""
    table = subprocess.run(
        hosts.on(host, "cat", "/proc/net/tcp"), capture_output=True, text=True, timeout=60, check=True
    ).stdout
    listening = "0A"
    rows = [line.split() for line in table.splitlines()[1:]]
    places = [row[1].split(":") for row in rows if row[3] == listening]
    return [f"{socket.inet_ntoa(bytes.fromhex(address)[::-1])}:{int(port, 16)}" for address, port in places]


STRANGER = """
import random, socket, sys
seed, *places = sys.argv[1:]
chance = random.Random(int(seed))
for place in places:
    address, port = place.split(":")
    for size in (1, 8, 64, 4096, 100_000):
        with socket.create_connection((address, int(port)), timeout=5) as stranger:
            stranger.settimeout(0.2)
            try:
                stranger.sendall(chance.randbytes(size))
                stranger.recv(1)
            except OSError:
                pass
    socket.create_connection((address, int(port)), timeout=5)  # and one that says nothing
"""


def test_random_bytes_on_every_open_port(hosts: Hosts) -> None:
    seed = int(os.environ.get("BEELINE_TEST_SEED", random.SystemRandom().randrange(2**32)))
    ranks = start_all(hosts, FOR_EVER, BEELINE_DEADLINE_S="3")
    for host in range(2):
        places = open_ports(hosts, host)
        assert places, "no rank listens"
        subprocess.run(hosts.on(host, sys.executable, "-c", STRANGER, str(seed), *places), check=True, timeout=60)
    time.sleep(3.5)  # longer than a wait in vain
    for rank, process in enumerate(ranks):
        assert process.poll() is None, f"seed {seed}: rank {rank} ended: {ends(ranks)}"
    for process in ranks:
        process.kill()
    ends(ranks)


def other_program(folder: Path, pattern: bytes, other: bytes) -> Path:
    """The program of the ranks, with `other` in place of each match of the pattern; both have the same length."""
    code, count = re.subn(pattern, other, RANK.read_bytes())
    assert count > 0
    assert len(code) == RANK.stat().st_size
    program = folder / "other-rank"
    program.write_bytes(code)
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("pattern", "other"),
    [(rb"beeline network \d", b"beeline network ?"), (rb", little-endian", b", mixed--endian")],
    ids=["version", "byte order"],
)
def test_ranks_that_speak_another_protocol_are_refused(
    hosts: Hosts, tmp_path: Path, pattern: bytes, other: bytes
) -> None:
    program = other_program(tmp_path, pattern, other)
    ranks = [hosts.start(0), hosts.start(1, program=program)]
    for status, _, err in ends(ranks):
        assert status not in (0, -9), err
        assert "speaks" in err
        assert other.decode() in err
