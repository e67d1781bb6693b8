# SPDX-License-Identifier: Apache-2.0
"""Strangers at the ports of a world with --secure, on three hosts that are network namespaces of this machine: another
user of a rank's host, and another user of another host."""

from __future__ import annotations

import json
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import Hosts, ends, hosts_of, skip_without_tls
from test_hosts_faults import open_ports


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    yield from hosts_of(3)


# A rank of a world that enters a barrier each second until its launcher is ended.
RANK = """#!/bin/sh
exec {python} -c '
import time
import beeline
with beeline.World.create() as world:
    print("has met", flush=True)
    for _ in range(1000):
        time.sleep(1)
        world.barrier()
'
"""
# Prints for each connection the bytes received, and the seconds after which it was closed; null: it was not closed.
STRANGER = """
import json, os, selectors, socket, ssl, sys, time
user, *places = sys.argv[1:]
hello = ssl.MemoryBIO()
try:
    ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="a").do_handshake()
except ssl.SSLWantReadError:
    hello = hello.read()
os.setgroups([]), os.setgid(int(user)), os.setuid(int(user))  # from here on it may import no module
contents = {"nothing": b"", "a byte": b"\\x16", "half a hello": hello[: len(hello) // 2], "a hello": hello,
            "text": b"GET / HTTP/1.1\\r\\n\\r\\n", "noise": os.urandom(3000)}
waiting, found, start = selectors.DefaultSelector(), {}, time.monotonic()
for place in places:
    address, port = place.split(":")
    for name, content in contents.items():
        connection = socket.create_connection((address, int(port)), timeout=5)
        connection.sendall(content)
        waiting.register(connection, selectors.EVENT_READ, f"{name} at {place}")
        found[f"{name} at {place}"] = ["", None]
while waiting.get_map() and time.monotonic() < start + 30:
    for key, _ in waiting.select(1):
        try:
            got = key.fileobj.recv(4096)
        except ConnectionResetError:
            got = b""
        found[key.data][0] += got.hex()
        if not got:
            found[key.data][1] = time.monotonic() - start
            waiting.unregister(key.fileobj)
print(json.dumps(found))
"""


def test_strangers_read_nothing_and_are_closed(hosts: Hosts, tmp_path: Path) -> None:
    skip_without_tls()
    program = tmp_path / "rank"
    program.write_text(RANK.format(python=sys.executable))
    program.chmod(0o755)
    launcher = hosts.launch(hosts.write_ssh(tmp_path), program=program, security="--secure")
    assert launcher.stdout is not None
    for _ in hosts.names:
        line = launcher.stdout.readline()
        assert "has met" in line, ends([launcher])
    places = [place for host in range(2) for place in open_ports(hosts, host)]
    # Ports are open only on the network that the hosts share: the launcher's, and those of ranks 0 and 1.
    assert sorted(place.split(":")[0] for place in places) == [hosts.addresses[0]] * 2 + [hosts.addresses[1]]
    nobody = str(pwd.getpwnam("nobody").pw_uid)
    strangers = [
        subprocess.Popen(
            hosts.on(host, sys.executable, "-c", STRANGER, nobody, *places), stdout=subprocess.PIPE, text=True
        )
        for host in (0, 2)
    ]
    for status, out, _ in ends(strangers, 60):
        assert status == 0
        for content, (answer, closed_after_s) in json.loads(out).items():
            assert answer == "", content
            assert closed_after_s is not None, content
    assert launcher.poll() is None, ends([launcher])  # despite the strangers no barrier reached its deadline of 5 s
    launcher.terminate()
    ends([launcher])
