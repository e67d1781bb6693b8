# SPDX-License-Identifier: Apache-2.0
"""Another user of this machine, who knows UCX's protocol and the address of a rank's memory, tries to write to it."""

from __future__ import annotations

import importlib.util
import os
import pwd
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import skip_without_ucx
from processes import eventually

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "build" / "bin" / "beeline-launch"
PACKAGE = importlib.util.find_spec("libucx")
NEWER = "" if PACKAGE is None or PACKAGE.origin is None else str(Path(PACKAGE.origin).parent / "lib")
LISTEN, LOOPBACK = "0A", "0100007F"
# Rank 0 prints the address of its memory. For each line of a named pipe it then prints the memory's content.
RANK = """
import os, sys, time
import beeline, numpy as np
with beeline.World.create() as world:
    memory = world.allocate((1,), "int64")
    word = np.from_dlpack(memory)
    word[0] = 7
    world.barrier()
    if world.rank == 0:
        print("at", os.getpid(), word.ctypes.data, flush=True)
        for line in open(sys.argv[1]):
            print("holds", word[0], flush=True)
    world.barrier()
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user"),
    pytest.mark.timeout(100),
]


def ports_of(pid: int) -> list[int]:
    """Ports at which a process listens. None is open to other machines."""
    own = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # it has been closed
            own.add(str(each.readlink()))
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        (
            _,
            local,
            _,
            state,
            *_,
        ) = words = line.split()
        if state == LISTEN and f"socket:[{words[9]}]" in own:
            address, _, port = local.partition(":")
            assert address == LOOPBACK
            found.append(int(port, 16))
    return found


def put(port: int, address: int, value: int, user: int, limit_s: float) -> bool:
    """Sends UCX's put request as that user. Returns whether the connection stays open for that time."""
    child = os.fork()
    if child == 0:
        is_open = True
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            with socket.socket() as connection:  # from here on this user may not read the modules that its Python would
                # import
                connection.settimeout(limit_s)
                connection.connect(("127.0.0.1", port))
                put_request = 0x21
                header = struct.pack("<BI", put_request, 20) + struct.pack("<QQI", address, 8, 1)
                connection.sendall(struct.pack("<Q", 0xCAFEBABE12345678) + header + struct.pack("<q", value))
                is_open = connection.recv(1) != b""
        except TimeoutError:
            pass
        except OSError:
            is_open = False
        finally:
            os._exit(int(is_open))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.mark.parametrize(
    "libraries",
    [
        pytest.param("", id="debian"),
        pytest.param(NEWER, id="pypi", marks=pytest.mark.skipif(NEWER == "", reason="needs PyPI's libucx-cu13")),
    ],
)
def test_another_user_cannot_write_to_a_world_of_this_machine(libraries: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    variables = {"PYTHONPATH": str(ROOT / "python"), "BEELINE_DEVICE": "cpu", "BEELINE_UCX": libraries}
    command = [
        str(LAUNCHER),
        "-n",
        "2",
        "--no-prefix",
        "--split-nodes",
        "2",
        "--",
        sys.executable,
        "-c",
        RANK,
        str(pipe),
    ]
    with subprocess.Popen(
        command, env=os.environ | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as world:
        assert world.stdout is not None
        assert world.stderr is not None
        first = world.stdout.readline().split()
        if not first:
            skip_without_ucx(world.stderr.read())
        pid, address = int(first[1]), int(first[2])
        with pipe.open("wb", buffering=0) as ask:

            def word() -> str:
                with suppress(BrokenPipeError):  # the rank has ended
                    ask.write(b"\n")
                return world.stdout.readline()

            nobody = pwd.getpwnam("nobody").pw_uid
            ports = ports_of(pid)
            assert ports != []
            assert [put(port, address, 8, nobody, 20) for port in ports] == [False] * len(ports)
            assert word() == "holds 7\n"
            # The request is valid, so this test can fail: the same bytes from the user's own processes are accepted.
            for port in ports:
                put(port, address, 8, os.getuid(), 1)
            assert eventually(lambda: word() in ("holds 8\n", ""), 20)
        world.kill()
        assert f"it belongs to user {nobody} of this machine" in world.stderr.read()
