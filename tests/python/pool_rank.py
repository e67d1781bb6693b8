# SPDX-License-Identifier: Apache-2.0
"""One rank: calls the C functions by which torch takes memory from the symmetric heap, as torch calls them.

python pool_rank.py  under a launcher, on host ranks
"""

from __future__ import annotations

import ctypes

import beeline
import numpy as np
from beeline.library import _beeline

CPU, MEGABYTE = -1, 1 << 20
LIBRARY = ctypes.CDLL(_beeline.__file__)
ALLOCATE, FREE = LIBRARY.beeline_pool_allocate, LIBRARY.beeline_pool_free
ALLOCATE.restype, ALLOCATE.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
FREE.restype, FREE.argtypes = None, [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]

WORLD = beeline.World.create(device="cpu")
COLLECTIVES = beeline.Collectives(WORLD)


def take(bytes_: int) -> int | None:
    return ALLOCATE(bytes_, CPU, None)


def give_back(*segments: int) -> None:
    for segment in segments:
        FREE(segment, 2 * MEGABYTE, CPU, None)


def floats(segment: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(segment))


def everyone_has(value: object) -> bool:
    return len(set(WORLD.allgather(repr(value).encode()))) == 1


def place(segment: int) -> int:
    """The segment's offset in the rank's heap, relative to an allocation at the same offset on all ranks."""
    return segment - FIRST.address


assert take(MEGABYTE) is None  # no world serves the pool yet
FIRST = WORLD.allocate(1)
_beeline._serve_pool(WORLD)
_beeline._serve_pool(WORLD)

# Segments that all ranks request in the same way are symmetric: no copy is needed.
one, two = take(2 * MEGABYTE), take(20 * MEGABYTE)
assert everyone_has((place(one), place(two)))
for segment in (one, two):
    vector = floats(segment, 100_000)
    assert not vector.any()
    vector[:] = WORLD.rank
    WORLD.barrier()
    COLLECTIVES.allreduce(vector, algorithm="two_shot")
    assert (vector == sum(range(WORLD.size))).all()
    assert COLLECTIVES.last_transfer == "in_place"

# Memory that only some ranks have returned is not used again; memory that all have returned serves the next
# request.
if WORLD.rank == 0:
    give_back(one)
three = take(2 * MEGABYTE)
assert everyone_has(place(three))
assert three != one
if WORLD.rank != 0:
    give_back(one)
give_back(*(() if WORLD.rank == 1 else (three,)))
again = take(2 * MEGABYTE)
assert again == one
if WORLD.rank == 1:
    give_back(three)
last = take(MEGABYTE)
assert everyone_has(place(last))
assert last == three
assert not floats(last, MEGABYTE // 4).any()

# Requests that exceed the memory or differ between ranks fail on every rank, and the pool stays usable.
assert take(1 << 45) is None
assert take(MEGABYTE * (1 + WORLD.rank)) is None
assert everyone_has(place(take(2 * MEGABYTE)))
give_back(again, 12345)  # the second address belongs to no segment

# Segments outlive the world; afterwards no new ones are given.
WORLD.leave()
floats(last, 10)[:] = 1
give_back(last)
assert take(MEGABYTE) is None
print(f"rank {WORLD.rank}: pool")
