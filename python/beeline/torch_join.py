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
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch.distributed as dist

import beeline
from beeline.library import _beeline
from beeline.torch_store import MemberStore

LAUNCHER, SERVER, FAILED = "launcher", "server", "failed"  # what rank 0 says first to the others
LOOPBACK = "127.0.0.1"
ELSEWHERE = "192.0.2.1"  # of no host (RFC 5737): the way there is the default route


@dataclass(frozen=True)
class Place:
    """Where a rank is."""

    loopback: str  # which loop-back interface it has: that of its host, and of its network namespace there
    address: str  # its host's on the way to the others; empty: unknown
    launcher: str = ""  # which `beeline run` has counted it as torch does; empty: none

    @classmethod
    def parse(cls, text: str | bytes) -> Place:
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def own_place(towards: str, launcher: str = "") -> Place:
    """This process's; `towards` is a host that all ranks may reach."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Place(f"{boot}/{Path('/proc/self/ns/net').stat().st_ino}", address_towards(towards), launcher)


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
    # The host names of a machine are often names of its loop-back interface: what others see of themselves is not.
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
    """Which `beeline run` has made this process that rank of so many: its secret's digest; empty: none."""
    names = ("BEELINE_RENDEZVOUS", "BEELINE_TOKEN", "BEELINE_RANK", "BEELINE_SIZE")
    rendezvous, token, *place = (os.environ.get(name, "") for name in names)
    if not rendezvous or place != [str(rank), str(size)]:
        return ""
    return hashlib.sha256(token.encode()).hexdigest()


def join(members: MemberStore, store: dist.Store, size: int, deadline_s: float) -> beeline.World:
    """Collective over the ranks that torch counts. Their world, whose waits end after `deadline_s`."""
    rank = members.rank
    if rank == 0:
        return _open(members, store, size, deadline_s)
    members.gather(str(own_place(known_host(store), launcher_of(rank, size))))
    word, _, rest = members.share(None).partition(" ")
    if word == LAUNCHER:
        return beeline.World.create(deadline_s=deadline_s)
    if word == FAILED:
        raise beeline.UnreachableError(f"rank {rank}: rank 0 did not open the world: {rest}", rank)
    return _beeline._join_world(rank, size, "", lambda _: rest, deadline_s)


def _open(members: MemberStore, store: dist.Store, size: int, deadline_s: float) -> beeline.World:
    """Rank 0's part."""
    shared = False

    def share(word: str, rest: str) -> str:
        nonlocal shared
        shared = True
        return members.share(f"{word} {rest}")

    try:
        mine = own_place(known_host(store), launcher_of(0, size))
        places = [Place.parse(text) for text in members.gather(str(mine))]
        launchers = {place.launcher for place in places}
        if len(launchers) == 1 and "" not in launchers:
            share(LAUNCHER, "")
            return beeline.World.create(deadline_s=deadline_s)
        return _beeline._join_world(0, size, meeting_address(places), lambda text: share(SERVER, text), deadline_s)
    except BaseException as problem:
        if not shared:
            share(FAILED, str(problem))
        raise


def make_store(world: beeline.World) -> dist.Store:
    """Collective over the world: a store for `init_process_group`, served by rank 0."""
    places = [Place.parse(text) for text in world.allgather(str(own_place(known_host())).encode())]
    if world.rank == 0:
        host = meeting_address(places)
        served = dist.TCPStore(host, 0, world.size, is_master=True, wait_for_workers=False)
        world.allgather(f"{host} {served.port}".encode())
        return served
    host, port = world.allgather(b"")[0].decode().split()
    return dist.TCPStore(host, int(port), world.size, is_master=False)
