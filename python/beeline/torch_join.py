# SPDX-License-Identifier: Apache-2.0
"""Makes a world of the ranks that torch.distributed counts, and a torch store for the ranks of a world.

Each rank sends its place. From these, rank 0 decides for all ranks: they join the launcher's world if `beeline run` has
numbered all ranks as torch does; otherwise a world that rank 0 serves, at an address that the other ranks reach.
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

OPEN = "beeline/open"  # key of the latest meeting's name
LAUNCHER, SERVER, FAILED = "launcher", "server", "failed"  # kinds of rank 0's answer
POLL_S = 0.02  # interval at which the other ranks check for a new meeting
FIRST_RANKS_LEAD = timedelta(seconds=5)  # rank 0 knows and reports the missing ranks; the others wait longer
LOOPBACK = "127.0.0.1"
ELSEWHERE = "192.0.2.1"  # belongs to no host (RFC 5737): the way there is the default route


@dataclass(frozen=True)
class Place:
    """The host and the launcher of a rank."""

    loopback: str  # names host and network namespace: ranks with equal names reach each other at 127.0.0.1
    address: str  # of the host's interface towards the other ranks; empty: unknown
    launcher: str = ""  # names the `beeline run` whose rank and size equal torch's; empty: none
    mark: str = ""  # the rank's random name in this meeting

    @classmethod
    def parse(cls, text: str | bytes) -> Place:
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def own_place(towards: str, launcher: str = "", mark: str = "") -> Place:
    """The place of this process; `towards` is a host that all ranks may reach."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Place(f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}", address_towards(towards), launcher, mark)


def address_towards(host: str) -> str:
    """The address of this host's interface on the route to `host`; empty if there is no route. Sends nothing."""
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
    """The address at which all ranks reach rank 0, whose place is the first. Raises UnreachableError."""
    own, *others = places
    away = [other for other in others if other.loopback != own.loopback]
    if not away:
        return LOOPBACK
    # A host name often stands for the loopback interface: take the interface that faces another rank's address.
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
    """A host that all ranks may reach: the host of torch's store, of the launcher, or one from the environment."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    host = getattr(store, "host", "") or os.environ.get("BEELINE_RENDEZVOUS", "").rpartition(":")[0].strip("[]")
    return host or os.environ.get("MASTER_ADDR", "") or ELSEWHERE


def launcher_of(rank: int, size: int) -> str:
    """Names the `beeline run` that started this process with this rank and size, by a digest of its secret; empty:
    none."""
    names = ("BEELINE_RENDEZVOUS", "BEELINE_TOKEN", "BEELINE_RANK", "BEELINE_SIZE")
    rendezvous, token, *place = (os.environ.get(name, "") for name in names)
    if not rendezvous or place != [str(rank), str(size)]:
        return ""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True)
class Answer:
    """Rank 0's answer to the other ranks: how they join."""

    word: str
    text: str
    members: list[str]  # marks of the ranks to which the answer is addressed


class Meeting:
    """The ranks that torch counts, before they form a world.

    torch's store may hold data of processes that were ranks earlier, as after torchrun has restarted all ranks.
    Therefore rank 0 opens each meeting under a new name, the keys of all data contain the name, and the other ranks
    look for a name until the answer contains their own mark.
    """

    def __init__(self, options: Any, deadline_s: float) -> None:
        self.rank, self.size = options.group_rank, options.group_size
        self.store = options.store
        self.deadline_s = deadline_s
        self._deadline = timedelta(seconds=deadline_s)
        self._mark = secrets.token_hex(8)

    def join(self) -> beeline.World:
        """Collective. Makes the world of these ranks, whose waits end after the deadline."""
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
        """Rank 0's part. The other ranks get its failure, too."""
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
            # `check`, because a `wait` that ends without the key makes torch print two warnings.
            if self.store.check([OPEN]):
                name = self.store.get(OPEN).decode()
                if name != told:
                    self.store.set(f"beeline/{name}/{self.rank}", place)
                    told = name
                if self.store.check([key := f"beeline/{name}/answer"]):
                    answer = Answer(**json.loads(self.store.get(key)))
                    if self._mark in answer.members:  # otherwise the answer belongs to an earlier meeting
                        return answer
            time.sleep(POLL_S)
        raise nothing_came(f"a world of {self.size} ranks", [0], limit, self.rank)


def session_of(world: beeline.World) -> str:
    """Collective over the world. Returns a name that no other world has."""
    return world.allgather(secrets.token_hex(8).encode() if world.rank == 0 else b"")[0].decode()


def serve_store(world: beeline.World) -> dist.Store:
    """Collective over the world. Returns a store that rank 0 serves at an address which all ranks reach."""
    places = [Place.parse(text) for text in world.allgather(str(own_place(known_host())).encode())]
    if world.rank == 0:
        host = meeting_address(places)
        served = dist.TCPStore(host, 0, world.size, is_master=True, wait_for_workers=False)
        world.allgather(f"{host} {served.port}".encode())
        return served
    host, port = world.allgather(b"")[0].decode().split()
    return dist.TCPStore(host, int(port), world.size, is_master=False)


def asked_deadline_s(options: Any) -> float | None:
    """The program's `timeout`; None if the program has set none, for which torch passes its default."""
    if options.timeout == dist.default_pg_timeout:
        return None
    if options.timeout <= timedelta(0):
        raise ValueError(f"timeout of {options.timeout.total_seconds():g} s: expected more than 0")
    return float(f"{options.timeout.total_seconds():.6g}")  # torch keeps it with a rounding error of about 1e-7


def default_deadline_s() -> float:
    """The deadline of worlds that this module makes: BEELINE_DEADLINE_S, otherwise torch's default."""
    named = os.environ.get("BEELINE_DEADLINE_S")
    try:
        return float(named) if named else dist.default_pg_timeout.total_seconds()
    except ValueError:
        raise ValueError(f"BEELINE_DEADLINE_S={named}: expected seconds") from None
