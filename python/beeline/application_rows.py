# SPDX-License-Identifier: Apache-2.0
"""What pictures of an application show: its rate, the size of its problem, and its work for each joule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from beeline.display import format_bytes
from beeline.records import Event


@dataclass(frozen=True)
class Application:
    """How to read the results of one application."""

    title: str
    rate: str
    """The name of the rate, with its unit."""
    rate_of: Callable[[Event], float | None]
    size_fields: tuple[str, ...]
    """Fields whose product is the size: numbers, or lists of numbers."""
    unit: str
    """What the size counts."""
    joules_field: str | None = None
    """The field of the work for each joule; None: the program meters nothing."""
    joules_factor: float = 1
    joules: str = ""
    """The name of this work."""
    kind_fields: tuple[str, ...] = ()
    """Fields that tell problems of one size apart."""
    is_divided: bool = True
    """Whether the ranks divide the work. A reduction's work grows with the ranks: its picture has no speed-up."""

    def size(self, result: Event) -> tuple[int, ...]:
        values = [result.get(name) or 0 for name in self.size_fields]
        return tuple(one for value in values for one in (value if isinstance(value, list) else [value]))

    def count(self, result: Event) -> int:
        """The size as a number."""
        size = math.prod(self.size(result))
        return 1 << min(size, 62) if self.unit == "vertices" else size

    def size_text(self, result: Event) -> str:
        size = self.size(result)
        if self.unit == "bytes":
            return format_bytes(size[0])
        if self.unit == "vertices":
            return f"scale {size[0]}"
        return "×".join(map(str, size)) if len(size) > 1 else f"{size[0]:,} {self.unit}"

    def kind(self, result: Event) -> tuple[str, ...]:
        return tuple(f"{result[name]} {name.replace('_', ' ')}" for name in self.kind_fields if name in result)

    def work_for_a_joule(self, result: Event) -> float | None:
        work = result.get(self.joules_field) if self.joules_field else None
        return None if work is None else self.joules_factor * float(work)


def by_field(name: str, factor: float) -> Callable[[Event], float | None]:
    return lambda one: None if one.get(name) is None else factor * float(one[name])


def elements_a_second(result: Event) -> float | None:
    return 1e-9 * result["elements"] / result["seconds"] if result.get("elements") and result.get("seconds") else None


UPDATES = ("updates_per_joule", 1e-6, "million updates a joule")
REDUCTIONS = ("reductions_per_joule", 1.0, "reductions a joule")
APPLICATIONS = {
    "breadth_first": Application(
        "Breadth-first search", "million TEPS", by_field("teps", 1e-6), ("scale",), "vertices",
        "edges_per_joule", 1e-6, "million edges a joule",
    ),
    "fft": Application("Fourier transform", "giga-elements/s", elements_a_second, ("elements",), "elements"),
    "global_reduction": Application(
        "Global reduction", "thousand reductions/s", by_field("reductions_per_second", 1e-3), ("values",), "values",
        *REDUCTIONS, is_divided=False,
    ),
    "himeno": Application(
        "Himeno", "GFLOPS", by_field("mflops", 1e-3), ("size",), "points", "mflop_per_joule", 1, "MFLOP a joule"
    ),
    "jacobi": Application(
        "Jacobi", "giga-updates/s", by_field("updates_per_second", 1e-9), ("columns", "rows"), "points", *UPDATES
    ),
    "merge_sort": Application(
        "Merge sort", "giga-keys/s", by_field("keys_per_second", 1e-9), ("keys",), "keys", kind_fields=("key_bits",)
    ),
    "random_access": Application(
        "RandomAccess", "giga-updates/s", by_field("updates_per_second", 1e-9), ("words",), "words", *UPDATES
    ),
    "ring_reduction": Application(
        "Ring reduction", "bus bandwidth, GB/s", by_field("bus_bytes_per_second", 1e-9), ("bytes",), "bytes",
        *REDUCTIONS, is_divided=False,
    ),
    "spin_glass": Application(
        "Spin glass", "giga-updates/s", by_field("updates_per_second", 1e-9), ("size",), "spins", *UPDATES
    ),
    "stencil": Application("Stencil", "giga-updates/s", by_field("updates_per_second", 1e-9), ("size",), "points"),
    "tree_search": Application(
        "Tree search", "million nodes/s", by_field("nodes_per_second", 1e-6), ("nodes",), "nodes",
        "searches_per_joule", 1, "searches a joule",
    ),
}  # fmt: skip


def places(result: Event) -> int:
    """Ranks, or devices of a program without ranks."""
    return int(result.get("ranks") or result.get("devices") or 1)


def place_name(result: Event) -> str:
    return "devices" if result.get("ranks") is None else "ranks"


def places_text(result: Event) -> str:
    count = places(result)
    return f"{count} {place_name(result)}" if count > 1 else f"1 {place_name(result)[:-1]}"
