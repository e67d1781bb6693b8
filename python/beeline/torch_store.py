# SPDX-License-Identifier: Apache-2.0
"""How the members of a group meet by torch's store: to make the group, and to find the missing members."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch.distributed as dist

import beeline

_turns: Counter[str] = Counter()  # how often a group of this name was made: hashed names come again


class MemberStore:
    """A group's part of torch's store. Its members make it, and call it, in the same order."""

    def __init__(self, options: Any, world: beeline.World) -> None:
        """`options`: what torch says of the group that is being made."""
        self._store = options.store
        self._name = str(options.group_id)
        self._rank = options.group_rank
        self._ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
        self._world = world
        self._turn = _turns[self._name]
        _turns[self._name] += 1
        self._steps = itertools.count()

    def allgather(self, mine: bytes) -> list[bytes]:
        """Collective. The bytes of all members, within the world's deadline."""
        keys = self._next_keys()
        self._store.set(keys[self._rank], mine.hex())
        missing = self._missing(keys, timedelta(seconds=self._world.deadline_s))
        if missing:
            raise beeline.DeadlineError(
                f"group {self._name} of ranks {self._ranks}: within {self._world.deadline_s:g} s nothing came from"
                f" ranks {[self._ranks[member] for member in missing]} to make it",
                self._world.rank,
            )
        return [bytes.fromhex(self._store.get(key).decode()) for key in keys]

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool) -> None:
        """Collective. Rank 0 of the group waits for each other rank, and tells them how it ended.

        Raises DeadlineError, in torch's words: at rank 0 with the first rank that is missing, or with all of them. The
        group stays usable, but for members that have left a barrier out.
        """
        keys = self._next_keys()
        took = f"in {timeout / timedelta(milliseconds=1):g} ms"
        if self._rank != 0:
            self._store.set(keys[self._rank], "here")
            if self._missing(keys[:1], timeout) or self._store.get(keys[0]) != b"all":
                raise beeline.DeadlineError(
                    f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for "
                    f"send/recv from rank 0: it did not find all ranks {took}",
                    self._world.rank,
                )
            return
        missing = self._missing(keys[1:], timeout)
        self._store.set(keys[0], "missing" if missing else "all")
        names = [str(1 + member) for member in missing]
        if missing and wait_all_ranks:
            raise beeline.DeadlineError(
                f"Ranks {', '.join(names)} failed to pass monitoredBarrier {took}", self._world.rank
            )
        if missing:
            raise beeline.DeadlineError(f"Rank {names[0]} failed to pass monitoredBarrier {took}", self._world.rank)

    def _next_keys(self) -> list[str]:
        step = next(self._steps)
        return [f"beeline/{self._turn}/{step}/{rank}" for rank in self._ranks]

    def _missing(self, keys: Sequence[str], timeout: timedelta) -> list[int]:
        """Which of the keys are not there after at most `timeout`."""
        limit = time.monotonic() + timeout.total_seconds()
        missing = []
        for index, key in enumerate(keys):
            left = limit - time.monotonic()
            try:
                if left > 0:
                    self._store.wait([key], timedelta(seconds=left))
                elif not self._store.check([key]):
                    missing.append(index)
            except dist.DistStoreError:
                missing.append(index)
        return missing
