# SPDX-License-Identifier: Apache-2.0
"""One rank of `beeline bench accuracy`: all-reduces of random data by every algorithm and peer, and their errors.

python -m beeline.ranks.accuracy VALUES: the values of the options of `beeline-bench accuracy --describe`, as JSON
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import beeline
from beeline.ranks import references
from beeline.ranks.accuracy_peers import Absent, close_groups, open_peer
from beeline.ranks.records import Record, emit, everyones, first_line, lacking, result, run_rank
from beeline.ranks.references import Exact, Vector

LIMIT_S = 600
FIGURES = (*references.FIGURES, "wrong", "digest", "same_bits_on_all_ranks")
Allreduce = Callable[[Vector, str, str], Vector]


def main() -> None:
    options = SimpleNamespace(**json.loads(sys.argv[1]))

    def measure(world: beeline.World) -> None:
        Study(world, options).run()
        close_groups()

    run_rank(measure, LIMIT_S)


class Own:
    """Beeline's algorithms, between vectors in the heap, which every algorithm uses in place."""

    def __init__(self, world: beeline.World) -> None:
        self._world, self._collectives = world, beeline.Collectives(world)
        self._memory: dict[str, tuple[Any, Any]] = {}

    def by(self, algorithm: str) -> Allreduce:
        def allreduce(vector: Vector, type_name: str, reduction: str) -> Vector:
            source, destination = self._vectors(len(vector), type_name)
            got = np.empty_like(vector)
            self._world.copy(source, vector)
            self._collectives.allreduce(destination, source, reduction, algorithm=algorithm)
            self._world.copy(got, destination)
            return got

        return allreduce

    def _vectors(self, count: int, type_name: str) -> tuple[Any, Any]:
        if type_name not in self._memory:
            self._memory[type_name] = tuple(self._world.allocate(count, type_name) for _ in range(2))
        return self._memory[type_name]


class Study:
    """Measures every method with every type and reduction."""

    def __init__(self, world: beeline.World, options: SimpleNamespace) -> None:
        self.world, self.elements, self.seed = world, options.elements, options.seed
        self.types, self.reductions = options.types, options.reductions
        own = Own(world)
        self.methods: dict[str, Allreduce] = {}
        for name in options.methods:
            if name.startswith("stream/"):
                self.methods[name] = own.by(name.removeprefix("stream/"))
                continue
            try:
                self.methods[name] = open_peer(world, name)
            except Absent as absent:
                emit(
                    world, result("allreduce", name, 0, world.size) | lacking(str(absent), FIGURES) | {"verified": None}
                )

    def run(self) -> None:
        for type_name in self.types:
            for reduction in self.reductions:
                for data in references.data_for(type_name, reduction):
                    self.measure(type_name, reduction, data)

    def measure(self, type_name: str, reduction: str, data: str) -> None:
        world = self.world
        vectors = [
            references.draw(self.seed, rank, self.elements, type_name, reduction, data) for rank in range(world.size)
        ]
        exact = references.reduced(vectors, type_name, reduction)
        for method, allreduce in self.methods.items():
            head = result("allreduce", method, vectors[0].nbytes, world.size)
            head |= {"type": type_name, "reduction": reduction, "data": data, "elements": self.elements}
            head |= {"seed": self.seed, "unit": "ulp"}
            figures = self.outcome(allreduce, vectors[world.rank], exact, type_name, reduction)
            emit(world, head | figures | {"verified": verified(method, figures)})

    def outcome(self, allreduce: Allreduce, mine: Vector, exact: Exact, type_name: str, reduction: str) -> Record:
        try:
            got = allreduce(mine, type_name, reduction)
        except (Absent, beeline.UnavailableError) as missing:
            return lacking(first_line(missing), FIGURES)
        figures = references.errors(got, exact, type_name)
        seen = everyones(self.world, {"digest": zlib.crc32(got.tobytes()), "wrong": figures["wrong"]})
        same_bits = len({one["digest"] for one in seen}) == 1
        return {**figures, "digest": seen[0]["digest"], "same_bits_on_all_ranks": same_bits}


def verified(method: str, figures: Record) -> bool | None:
    """Whether the results of Beeline's methods are right: integers are exact, and the bits are the same on all ranks.
    None for peers, whose integers may differ: Open MPI 4.1 saturates most sums of uint8."""
    if not method.startswith("stream/") or figures["digest"] is None:
        return None
    return figures["same_bits_on_all_ranks"] and not figures["wrong"]


if __name__ == "__main__":
    main()
