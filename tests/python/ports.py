# SPDX-License-Identifier: Apache-2.0
"""Ports for tests that must name one before it is opened."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A port that is followed by a free one too. No other program gets one of them by chance: the system takes ports
    that nobody names from 32768 on (net.ipv4.ip_local_port_range)."""
    while True:
        port = random.SystemRandom().randrange(10_000, 29_000)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
        return port
