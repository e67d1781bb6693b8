# SPDX-License-Identifier: Apache-2.0
"""The exchange of a group's members through torch's store: to make the group, and to find missing members."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch.distributed as dist

import beeline

_turns: Counter[str] = Counter()  # number of groups with this name so far: hashed names may repeat


class MemberStore:
    """A group's part of torch's store. Its members make it, and call its functions, in the same order."""

    def __init__(self, options: Any, session: str, deadline_s: float) -> None:
        """Waits end after `deadline_s`, except those with their own time-out.

        options  torch's options of the group that is being made
        session  name of the world: the store may hold data that the ranks of an earlier world have left
        """
        self._store = options.store
        self._session = session
        self._name = str(options.group_id)
        self._member = options.group_rank
        self._ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
        self._deadline = timedelta(seconds=deadline_s)
        self._turn = _turns[self._name]
        _turns[self._name] += 1
        self._steps = itertools.count()

    @property
    def rank(self) -> int:
        """This rank's number in the world."""
        return self._ranks[self._member]

    def allgather(self, mine: bytes) -> list[bytes]:
        """Collective. The bytes of all members."""
        keys = self._next_keys()
        self._store.set(keys[self._member], mine.hex())
        return [bytes.fromhex(text) for text in self._await(keys, self._deadline)]

    def monitored_barrier(self, timeout: timedelta, wait_all_ranks: bool) -> None:
        """Collective. Rank 0 of the group waits for each other rank, and sends the result to all.

        Raises DeadlineError with torch's text: at rank 0 it names the first missing rank, or all missing ranks. The
        group stays usable, except for members that have skipped a barrier.
        """
        keys = self._next_keys()
        took = f"in {timeout / timedelta(milliseconds=1):g} ms"
        if self._member != 0:
            self._store.set(keys[self._member], "here")
            if self._missing(keys[:1], timeout) or self._store.get(keys[0]) != b"all":
                raise beeline.DeadlineError(
                    f"Rank {self._member} successfully reached monitoredBarrier, but received errors while waiting for "
                    f"send/recv from rank 0: it did not find all ranks {took}",
                    self.rank,
                )
            return
        missing = self._missing(keys[1:], timeout)
        self._store.set(keys[0], "missing" if missing else "all")
        names = [str(1 + member) for member in missing]
        if missing and wait_all_ranks:
            raise beeline.DeadlineError(f"Ranks {', '.join(names)} failed to pass monitoredBarrier {took}", self.rank)
        if missing:
            raise beeline.DeadlineError(f"Rank {names[0]} failed to pass monitoredBarrier {took}", self.rank)

    def _next_keys(self) -> list[str]:
        step = next(self._steps)
        return [f"beeline/{self._session}/{self._turn}/{step}/{rank}" for rank in self._ranks]

    def _await(self, keys: Sequence[str], timeout: timedelta) -> list[str]:
        """Waits for the members' data under the keys."""
        missing = self._missing(keys, timeout)
        if missing:
            ranks = [self._ranks[member] for member in missing]
            raise nothing_came(f"group {self._name} of ranks {self._ranks}", ranks, timeout, self.rank)
        return [self._store.get(key).decode() for key in keys]

    def _missing(self, keys: Sequence[str], timeout: timedelta) -> list[int]:
        return missing_keys(self._store, keys, timeout)


def nothing_came(what: str, ranks: Sequence[int], timeout: timedelta, rank: int) -> beeline.DeadlineError:
    """The error of `rank` that waited in vain for `ranks`."""
    return beeline.DeadlineError(
        f"{what}: within {timeout.total_seconds():g} s (`timeout` of init_process_group or new_group) nothing came "
        f"from ranks {list(ranks)} to make it",
        rank,
    )


def missing_keys(store: dist.Store, keys: Sequence[str], timeout: timedelta) -> list[int]:
    """The indices of the keys that do not exist after `timeout`."""
    limit = time.monotonic() + timeout.total_seconds()
    missing = []
    for index, key in enumerate(keys):
        left = limit - time.monotonic()
        try:
            if left > 0:
                store.wait([key], timedelta(seconds=left))
                continue
        except RuntimeError:  # classes differ; the check below distinguishes a time-out from a failed store
            pass
        if not store.check([key]):
            missing.append(index)
    return missing
