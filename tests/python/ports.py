# SPDX-License-Identifier: Apache-2.0
"""Ports for tests that must name a port before it is opened."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A free port followed by another free one. No other program gets one of them by chance: the system assigns ports
    from 32768 on to programs that name none (net.ipv4.ip_local_port_range)."""
    while True:
        port = random.SystemRandom().randrange(10_000, 29_000)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
        return port
