# SPDX-License-Identifier: Apache-2.0
"""How the ranks that torch.distributed counts become a world, and how those of a world get a store of torch's.

Each rank says where it is. Rank 0 decides from that, for all: a world of the launcher, where `beeline run` has counted
all ranks as torch does; otherwise one that rank 0 serves, by an address that the others reach.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

import beeline
from beeline.library import _beeline
from beeline.torch_store import missing_keys, nothing_came

OPEN = "beeline/open"  # the key of the latest meeting's name
LAUNCHER, SERVER, FAILED = "launcher", "server", "failed"  # words of rank 0's answer
POLL_S = 0.02  # between two looks of the other ranks for a new meeting
FIRST_RANKS_LEAD = timedelta(seconds=5)  # rank 0, which knows who is missing, reports it; the others wait for its word
LOOPBACK = "127.0.0.1"
ELSEWHERE = "192.0.2.1"  # of no host (RFC 5737): the way there is the default route


@dataclass(frozen=True)
class Place:
    """Where a rank is."""

    loopback: str  # names host and network namespace: ranks that have it in common reach each other at 127.0.0.1
    address: str  # of its host's interface towards the others; empty: unknown
    launcher: str = ""  # names the `beeline run` that gave it the rank and size that torch gives it; empty: none
    mark: str = ""  # its random name in this meeting

    @classmethod
    def parse(cls, text: str | bytes) -> Place:
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def own_place(towards: str, launcher: str = "", mark: str = "") -> Place:
    """This process's; `towards` is a host that all ranks may reach."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Place(f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}", address_towards(towards), launcher, mark)


def address_towards(host: str) -> str:
    """The address of this host's interface on the way to another one; empty where there is no way. Sends nothing."""
    try:
        for family, kind, _, _, target in socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as probe:
                probe.connect(target)
                return str(probe.getsockname()[0])
    except OSError:  # an unknown name, or no route
        pass
    return ""


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def meeting_address(places: Sequence[Place]) -> str:
    """Where rank 0, whose place is the first, is reached by all. Raises UnreachableError."""
    own, *others = places
    away = [other for other in others if other.loopback != own.loopback]
    if not away:
        return LOOPBACK
    # A host name often stands for the loop-back interface: take the interface that faces another rank's address.
    candidates = [address_towards(other.address) for other in away if other.address] + [own.address]
    for address in candidates:
        if address and not is_loopback(address):
            return address
    raise beeline.UnreachableError(
        f"the ranks are on several hosts, and rank 0 finds no address of its own on the way to the others, which name "
        f"{sorted({other.address for other in away})}: set MASTER_ADDR to its address on all of them",
        0,
    )


def known_host(store: dist.Store | None = None) -> str:
    """A host that all ranks may reach: that of torch's store, the launcher's, or one that the environment names."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    host = getattr(store, "host", "") or os.environ.get("BEELINE_RENDEZVOUS", "").rpartition(":")[0].strip("[]")
    return host or os.environ.get("MASTER_ADDR", "") or ELSEWHERE


def launcher_of(rank: int, size: int) -> str:
    """Names the `beeline run` that has made this process that rank of so many, by its secret's digest; empty: none."""
    names = ("BEELINE_RENDEZVOUS", "BEELINE_TOKEN", "BEELINE_RANK", "BEELINE_SIZE")
    rendezvous, token, *place = (os.environ.get(name, "") for name in names)
    if not rendezvous or place != [str(rank), str(size)]:
        return ""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True)
class Answer:
    """Rank 0's word to the others: how they join."""

    word: str
    text: str
    members: list[str]  # the marks of those that it is for


class Meeting:
    """The ranks that torch counts, before they are a world.

    torch's store may hold what processes have left there that were ranks before these, as after torchrun has started
    all anew. So rank 0 opens each meeting under a new name, the others look for the name until the answer has their own
    mark, and what is stored has the meeting's name.
    """

    def __init__(self, options: Any, deadline_s: float) -> None:
        self.rank, self.size = options.group_rank, options.group_size
        self.store = options.store
        self.deadline_s = deadline_s
        self._deadline = timedelta(seconds=deadline_s)
        self._mark = secrets.token_hex(8)

    def join(self) -> beeline.World:
        """Collective. The world of these ranks, whose waits end after the deadline."""
        if self.rank == 0:
            return self._open()
        answer = self._await_answer()
        if answer.word == LAUNCHER:
            return beeline.World.create(deadline_s=self.deadline_s)
        if answer.word == FAILED:
            raise beeline.UnreachableError(f"rank {self.rank}: rank 0 did not open the world: {answer.text}", self.rank)
        return self._join_world("", lambda _: answer.text)

    def _place(self) -> Place:
        return own_place(known_host(self.store), launcher_of(self.rank, self.size), self._mark)

    def _join_world(self, host: str, share: Callable[[str], str]) -> beeline.World:
        return _beeline._join_world(self.rank, self.size, host, share, self.deadline_s)

    def _open(self) -> beeline.World:
        """Rank 0's part. The others get its failure, too."""
        self.store.set(OPEN, self._mark)
        keys = [f"beeline/{self._mark}/{rank}" for rank in range(1, self.size)]
        missing = missing_keys(self.store, keys, self._deadline)
        places = [Place.parse(self.store.get(key)) for index, key in enumerate(keys) if index not in missing]
        has_answered = False

        def answer(word: str, text: str) -> str:
            nonlocal has_answered
            has_answered = True
            told = Answer(word, text, [place.mark for place in places])
            self.store.set(f"beeline/{self._mark}/answer", json.dumps(asdict(told)))
            return text

        try:
            if missing:
                others = [1 + index for index in missing]
                raise nothing_came(f"a world of {self.size} ranks", others, self._deadline, self.rank)
            all_places = [self._place(), *places]
            launchers = {place.launcher for place in all_places}
            if len(launchers) == 1 and "" not in launchers:
                answer(LAUNCHER, "")
                return beeline.World.create(deadline_s=self.deadline_s)
            return self._join_world(meeting_address(all_places), lambda text: answer(SERVER, text))
        except BaseException as problem:
            if not has_answered:
                answer(FAILED, str(problem))
            raise

    def _await_answer(self) -> Answer:
        limit = self._deadline + FIRST_RANKS_LEAD
        end = time.monotonic() + limit.total_seconds()
        told, place = "", str(self._place())
        while time.monotonic() < end:
            # `check`, since a `wait` that ends without the key makes torch print two warnings.
            if self.store.check([OPEN]):
                name = self.store.get(OPEN).decode()
                if name != told:
                    self.store.set(f"beeline/{name}/{self.rank}", place)
                    told = name
                if self.store.check([key := f"beeline/{name}/answer"]):
                    answer = Answer(**json.loads(self.store.get(key)))
                    if self._mark in answer.members:  # otherwise it is an earlier meeting's
                        return answer
            time.sleep(POLL_S)
        raise nothing_came(f"a world of {self.size} ranks", [0], limit, self.rank)


def session_of(world: beeline.World) -> str:
    """Collective over the world. A name that no other world has."""
    return world.allgather(secrets.token_hex(8).encode() if world.rank == 0 else b"")[0].decode()


def serve_store(world: beeline.World) -> dist.Store:
    """Collective over the world. A store that rank 0 serves at an address which all ranks reach."""
    places = [Place.parse(text) for text in world.allgather(str(own_place(known_host())).encode())]
    if world.rank == 0:
        host = meeting_address(places)
        served = dist.TCPStore(host, 0, world.size, is_master=True, wait_for_workers=False)
        world.allgather(f"{host} {served.port}".encode())
        return served
    host, port = world.allgather(b"")[0].decode().split()
    return dist.TCPStore(host, int(port), world.size, is_master=False)


def asked_deadline_s(options: Any) -> float | None:
    """The program's `timeout`; None where it has set none: torch passes its default then."""
    if options.timeout == dist.default_pg_timeout:
        return None
    if options.timeout <= timedelta(0):
        raise ValueError(f"timeout of {options.timeout.total_seconds():g} s: expected more than 0")
    return float(f"{options.timeout.total_seconds():.6g}")  # torch keeps it with a rounding error of about 1e-7


def default_deadline_s() -> float:
    """Of a world that this module makes: BEELINE_DEADLINE_S, else torch's default."""
    named = os.environ.get("BEELINE_DEADLINE_S")
    try:
        return float(named) if named else dist.default_pg_timeout.total_seconds()
    except ValueError:
        raise ValueError(f"BEELINE_DEADLINE_S={named}: expected seconds") from None
