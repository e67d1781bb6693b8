# SPDX-License-Identifier: Apache-2.0
"""A cable between network namespaces. Each packet goes through this process, which may delay it or lose it, and
discards it where the cable is cut. TCP takes loss for congestion: it sends again, and slows down.

    python cable.py ADDRESS...      makes a network device for each address, and prints their names

Then it carries IP packets among them until its input ends. Lines that it reads change it:
`delay SECONDS` (one way), `loss SHARE` (of the packets), `cut ADDRESS`, `mend ADDRESS`."""

from __future__ import annotations

import fcntl
import heapq
import ipaddress
import os
import random
import selectors
import struct
import sys
import time
from contextlib import suppress

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
LONGEST_PACKET = 65536


def make_device(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def bytes_of(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def ends_of(packet: bytes) -> tuple[bytes, bytes]:
    """The addresses of source and destination."""
    return (packet[12:16], packet[16:20]) if packet[0] >> 4 == 4 else (packet[8:24], packet[24:40])


class Cable:
    def __init__(self, addresses: list[str], seed: int) -> None:
        self.names = [f"bl{os.getpid() % 1000000}n{index}" for index in range(len(addresses))]
        devices = [make_device(name) for name in self.names]
        self.device_of = {bytes_of(address): fd for address, fd in zip(addresses, devices, strict=True)}
        self.delay, self.loss = 0.0, 0.0
        self.ends_cut: set[bytes] = set()
        self.random = random.Random(seed)
        self.under_way: list[tuple[float, int, bytes]] = []
        self.packets = 0
        self.input = b""

    def take(self, packet: bytes) -> None:
        source, destination = ends_of(packet)
        is_whole = destination in self.device_of and not self.ends_cut & {source, destination}
        if not is_whole or self.random.random() < self.loss:
            return
        self.packets += 1
        heapq.heappush(self.under_way, (time.monotonic() + self.delay, self.packets, packet))

    def deliver(self) -> float | None:
        """Delivers all packets that are due; returns the seconds until the next one is."""
        while self.under_way:
            left = self.under_way[0][0] - time.monotonic()
            if left > 0:
                return left
            packet = heapq.heappop(self.under_way)[2]
            with suppress(OSError):  # the device is down or full: the packet is lost, as on any network
                os.write(self.device_of[ends_of(packet)[1]], packet)
        return None

    def obey(self, line: str) -> None:
        word, value = line.split()
        if word == "delay":
            self.delay = float(value)
        elif word == "loss":
            self.loss = float(value)
        elif word == "cut":
            self.ends_cut.add(bytes_of(value))
        elif word == "mend":
            self.ends_cut.discard(bytes_of(value))
        else:
            raise SystemExit(f"no such command: {line}")

    def read_commands(self) -> bool:
        data = os.read(0, 4096)
        *lines, self.input = (self.input + data).split(b"\n")
        for line in lines:
            self.obey(line.decode())
            print(line.decode(), flush=True)
        return data != b""

    def run(self) -> None:
        ready = selectors.DefaultSelector()
        for device in [0, *self.device_of.values()]:
            ready.register(device, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select(self.deliver()):
                if key.fd == 0:
                    if not self.read_commands():
                        return
                    continue
                with suppress(BlockingIOError):
                    self.take(os.read(key.fd, LONGEST_PACKET))


if __name__ == "__main__":
    cable = Cable(sys.argv[1:], seed=int(os.environ.get("BEELINE_TEST_SEED", "1")))
    print(*cable.names, flush=True)
    cable.run()
