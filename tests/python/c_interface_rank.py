# SPDX-License-Identifier: Apache-2.0
"""A rank that loads the C library by ctypes, as Numba and preloaded libraries do, and stores into the next rank's
memory using only the offsets of the context: c_interface_rank.py LIBRARY VERSION [--by-name]. With --by-name it passes
the settings from `beeline run` by beeline_config_set, not in the environment. Started by test_c_interface.py."""

from __future__ import annotations

import ctypes
import os
import sys
import time

library = ctypes.CDLL(sys.argv[1])
library.beeline_last_error.restype = ctypes.c_char_p
library.beeline_world_team.restype = ctypes.c_void_p
library.beeline_world_team.argtypes = [ctypes.c_void_p]
BYTES = 416  # of a context: docs/c.md


def require(status: int) -> None:
    if status != 0:
        sys.exit(library.beeline_last_error().decode())


def word(context: bytes, offset: int, size: int, *, signed: bool = False) -> int:
    return int.from_bytes(context[offset : offset + size], sys.byteorder, signed=signed)


def config_by_name() -> ctypes.c_void_p:
    """The configuration of the world that the environment describes; removes these variables from the environment."""
    names = [
        "BEELINE_SIZE",
        *sorted(name for name in os.environ if name.startswith("BEELINE_") and name != "BEELINE_SIZE"),
    ]
    given = {name: os.environ.pop(name) for name in names}
    config = ctypes.c_void_p()
    require(library.beeline_config_create(ctypes.byref(config)))
    for name in ("SIZE", "RANK", "RENDEZVOUS", "TOKEN", "DEVICE"):
        require(library.beeline_config_set(config, name.encode(), given[f"BEELINE_{name}"].encode()))
    return config


def main() -> None:
    world, memory, signal = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    config = config_by_name() if "--by-name" in sys.argv else None
    require(library.beeline_world_create_as(int(sys.argv[2]), config, ctypes.byref(world)))
    team = ctypes.c_void_p(library.beeline_world_team(world))
    require(library.beeline_allocate(team, ctypes.c_size_t(1024), 1, ctypes.byref(memory)))
    require(library.beeline_allocate_signals(team, ctypes.c_size_t(1), 1, ctypes.byref(signal)))
    buffer = ctypes.create_string_buffer(BYTES)
    require(library.beeline_team_host_context(team, ctypes.c_size_t(BYTES), buffer))
    context = buffer.raw
    rank, size = word(context, 72, 4), word(context, 76, 4)
    assert word(context, 128, 4) == 0, "loads and stores reach all members"
    following = (rank + 1) % size
    distance = word(context, 132 + 4 * following, 4, signed=True) << 32

    # Acts as a kernel of another compiler: stores the data, then the signal. x86 keeps the order of these stores.
    ctypes.c_double.from_address(memory.value + distance).value = 100.0 + rank
    ctypes.c_uint64.from_address(signal.value + distance).value = 1
    abort_word = ctypes.c_uint64.from_address(word(context, 8, 8) + 8 * word(context, 68, 4))
    end = time.monotonic_ns() + word(context, 48, 8)
    while ctypes.c_uint64.from_address(signal.value).value == 0:
        assert abort_word.value == 0
        assert time.monotonic_ns() < end
        time.sleep(0.001)
    got = ctypes.c_double.from_address(memory.value).value
    assert got == 100.0 + (rank + size - 1) % size, got

    # The library's own operations reach the same words.
    require(library.beeline_signal_add(team, signal, ctypes.c_uint64(4), following, 0))
    require(library.beeline_wait(team, signal, 0, ctypes.c_uint64(5), -1, ctypes.c_uint64(2**64 - 1)))
    require(library.beeline_world_close(world))
    print(f"rank {rank} of {size}: verified")


main()
