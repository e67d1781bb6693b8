# SPDX-License-Identifier: Apache-2.0
"""Teams of some ranks, their collectives, and the transfers that calls report; on host ranks that are threads."""

from __future__ import annotations

import time

import beeline
import pytest

np = pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)


def parity_team(world: beeline.World) -> beeline.Team:
    team = world.make_team(list(range(world.rank % 2, world.size, 2)))
    assert team is not None
    return team


def test_a_team_knows_its_members() -> None:
    def body(world: beeline.World) -> None:
        team = world.make_team([1, 3] if world.rank in (1, 3) else [])
        assert (team is None) == (world.rank not in (1, 3))
        if team is None:
            return
        assert (team.rank, team.size, team.ranks, team.failed) == (world.rank // 2, 2, [1, 3], False)
        assert repr(team) == "<beeline.Team of ranks 1, 3>"
        assert team.allgather(bytes([world.rank]) * (team.rank + 1)) == [b"\1", b"\3\3"]
        team.barrier()
        with pytest.raises(ValueError, match="121 bytes to gather in a team: at most 120"):
            team.allgather(bytes(121))

    beeline.run(4, body)


def test_collectives_of_teams_count_by_their_ranks() -> None:
    def body(world: beeline.World) -> None:
        team = parity_team(world)
        collectives = beeline.Collectives(team)
        assert (collectives.rank, collectives.size) == (team.rank, team.size)
        total = np.full(1000, world.rank, "int64")
        collectives.allreduce(total)
        assert (total == sum(team.ranks)).all()
        for root in range(team.size):
            vector = np.full(7, float(world.rank))
            collectives.broadcast(vector, root=root)
            assert (vector == team.ranks[root]).all()
            gathered = np.empty((team.size, 3), "int16") if team.rank == root else None
            collectives.gather(gathered, np.full(3, world.rank, "int16"), root=root)
            assert gathered is None or gathered[:, 1].tolist() == team.ranks
        everyone = np.empty((team.size, 5))
        collectives.allgather(everyone, np.full(5, float(world.rank)))
        assert everyone[:, 4].tolist() == team.ranks
        counts = [1 + (team.rank + peer) % 2 for peer in range(team.size)]
        received = np.empty(sum(counts), "int32")
        collectives.alltoallv(received, np.full(sum(counts), world.rank, "int32"), counts, counts)
        assert received.tolist() == [rank for rank, count in zip(team.ranks, counts, strict=True) for _ in range(count)]
        with pytest.raises(ValueError, match=f"{team.size} counts must be given"):
            collectives.alltoallv(received, received, [1], [1])
        collectives.barrier()

    beeline.run(5, body)


def test_members_make_teams_alone() -> None:
    """Others make other calls meanwhile; freed memory is available again, and the world's memory remains symmetric."""

    def body(world: beeline.World) -> None:
        met = parity_team(world)
        for round_ in range(3 if world.rank % 2 else 1):
            team = world.make_team(met.ranks, met.allgather)
            collectives = beeline.Collectives(team, sessions=1)
            vector = np.full(round_ + 1, 1.0)
            collectives.allreduce(vector)
            assert (vector == met.size).all()
            collectives.free()
            with pytest.raises(beeline.InvalidArgumentError, match="these collectives were freed"):
                collectives.allreduce(vector)
        assert world.allocate(100).bytes == 100

    beeline.run(5, body)


def test_bad_allgathers_are_refused() -> None:
    def body(world: beeline.World) -> None:
        everyone = list(range(world.size))
        with pytest.raises(beeline.InvalidArgumentError, match="its all-gather gave the bytes of 1"):
            world.make_team(everyone, lambda mine: [mine])
        with pytest.raises(TypeError, match="expected a list of bytes"):
            world.make_team(everyone, lambda mine: ["x"] * world.size)
        with pytest.raises(KeyError, match="lost"):
            world.make_team(everyone, lambda mine: {}["lost"])
        with pytest.raises(beeline.InvalidArgumentError, match="ranks must ascend"):
            world.make_team(everyone[::-1])
        for nobody in (None, "world"):
            with pytest.raises(TypeError):
                beeline.Collectives(nobody)  # type: ignore[arg-type]

    beeline.run(2, body)


def test_a_call_tells_how_it_moved_data() -> None:
    def body(world: beeline.World) -> None:
        collectives = beeline.Collectives(world)
        assert collectives.last_transfer is None
        memory, array = world.allocate(50_000, "float32"), np.zeros(50_000, "float32")
        for tensor, algorithm, expected in [
            (memory, "two_shot", "in_place"),
            (array, "two_shot", "staged"),
            (memory, "ll_one_shot", "packets"),
            (memory, "copy_engine", "staged"),
            (array, "copy_engine", "staged"),
            (memory, "gather_cast", "staged"),
            (memory, "automatic", "in_place"),
        ]:
            collectives.allreduce(tensor, algorithm=algorithm)
            assert collectives.last_transfer == expected, (algorithm, expected)
        collectives.allreduce(memory, algorithm="copy_engine", symmetric=True)
        assert collectives.last_transfer == "in_place"
        reason = f"allreduce: source {array.ctypes.data:#x} is not in this rank's symmetric memory: .*World.allocate"
        with pytest.raises(beeline.InvalidArgumentError, match=reason):
            collectives.allreduce(memory, array, algorithm="copy_engine", symmetric=True)
        collectives.barrier()
        collectives.broadcast(memory, root=0, algorithm="peer")
        assert collectives.last_transfer == "in_place"
        collectives.broadcast(array, root=0, algorithm="peer")
        assert collectives.last_transfer == "staged"

    beeline.run(2, body)


def test_a_missing_member_is_named() -> None:
    def body(world: beeline.World) -> None:
        team = world.make_team([0, 1] if world.rank < 2 else [])
        if world.rank == 1:
            with pytest.raises(beeline.DeadlineError, match="rank 0"):
                beeline.Collectives(team)
            raise KeyError("over")
        while not world.failed:
            time.sleep(0.01)

    with pytest.raises(KeyError, match="over"):
        beeline.run(3, body, deadline_s=1.5)


def test_worlds_tell_their_deadline() -> None:
    with beeline.World.create(device="cpu", deadline_s=2.5) as world:
        assert world.deadline_s == 2.5


def barriers_without_end(world: beeline.World) -> None:
    while True:
        world.barrier()


def test_ranks_that_are_left_go_on() -> None:
    def body(world: beeline.World) -> None:
        if world.rank == 1:
            raise ValueError("the input file is empty")
        with pytest.raises(beeline.PeerDiedError, match="the input file is empty"):
            barriers_without_end(world)
        team = world.survivors(deadline_s=10)
        assert team.ranks == [0, 2, 3]
        total = np.full(1000, world.rank, "int64")
        beeline.Collectives(team).allreduce(total)
        assert (total == 5).all()
        assert world.allreduce(1) == 3

    with pytest.raises(ValueError, match="the input file is empty"):
        beeline.run(4, body)
