# SPDX-License-Identifier: Apache-2.0
"""The exact result of a reduction of given vectors, without rounding, and the error of a result.

Vectors are numpy arrays of the type's own elements; for bfloat16, which numpy lacks, of the elements' bits. The exact
result for floats is computed in numpy's longdouble, on x86 with 64 significant bits: 11 more than the longest type has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from beeline.ranks.names import INTEGERS

Vector = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Float:
    """A binary format of IEEE 754, or bfloat16."""

    digits: int  # of the significand, including the implicit digit
    least_exponent: int  # of a normal number
    stored: str  # numpy's type of the elements


FORMATS = {
    "float16": Float(11, -14, "float16"),
    "bfloat16": Float(8, -126, "uint16"),
    "float32": Float(24, -126, "float32"),
    "float64": Float(53, -1022, "float64"),
}


def data_for(type_name: str, reduction: str) -> tuple[str, ...]:
    """The kinds of data to draw. Signs matter for sums, where terms cancel; they do not change the rounding of a
    product."""
    if type_name in INTEGERS:
        return ("bits",)
    return ("positive",) if reduction == "product" else ("positive", "signed")


def draw(seed: int, rank: int, count: int, type_name: str, reduction: str, data: str) -> Vector:
    """A rank's vector, which does not depend on the process that draws it.

    positive, signed  sums and averages: from 0 to 1, or normally distributed around 0; products: 2 to the power of -0.4
                      to 0.4, so that those of 64 ranks fit every type
    bits              all bits at random
    """
    random = np.random.default_rng([seed, rank])
    if type_name in INTEGERS:
        return np.frombuffer(random.bytes(count * np.dtype(type_name).itemsize), type_name)
    if reduction == "product":
        return encode(np.exp2(random.uniform(-0.4, 0.4, count)), type_name)
    return encode(random.random(count) if data == "positive" else random.standard_normal(count), type_name)


def encode(values: Vector, type_name: str) -> Vector:
    """float64 values as elements of the type."""
    if type_name != "bfloat16":
        return values.astype(type_name)
    bits = values.astype("float32").view("uint32").astype("uint64")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def decode(vector: Vector, type_name: str) -> Vector:
    """Elements of a floating-point type as longdouble, exactly."""
    if type_name == "bfloat16":
        vector = (vector.astype("uint32") << 16).view("float32")
    return vector.astype(np.longdouble)


@dataclass(frozen=True)
class Exact:
    """The result of a reduction without rounding.

    value      floats: as longdouble; integers: combined in 64 bits, of which the low bits count
    magnitude  floats: the reduction of the terms' magnitudes; it is larger than the value if terms cancel
    """

    value: Vector
    magnitude: Vector | None


def reduced(vectors: Sequence[Vector], type_name: str, reduction: str) -> Exact:
    if type_name in INTEGERS:
        return Exact(reduced_integers(vectors, type_name, reduction), None)
    terms = [decode(one, type_name) for one in vectors]
    combine = np.multiply if reduction == "product" else np.add
    members = np.longdouble(len(vectors) if reduction == "average" else 1)
    return Exact(reduce(combine, terms) / members, reduce(combine, [np.abs(term) for term in terms]) / members)


def reduced_integers(vectors: Sequence[Vector], type_name: str, reduction: str) -> Vector:
    wide = [vector.astype("int64").view("uint64") for vector in vectors]  # wraps without a warning
    whole = reduce(np.multiply if reduction == "product" else np.add, wide)
    if reduction == "average" and type_name.startswith("u"):
        whole = whole // np.uint64(len(vectors))
    elif reduction == "average":
        signed = whole.view("int64")
        away = (signed < 0) & (signed % len(vectors) != 0)  # numpy's division rounds down, Beeline's towards zero
        whole = (signed // len(vectors) + away).view("uint64")
    return whole.astype(type_name)


def last_place(numbers: Vector, type_name: str) -> Vector:
    """The distance between adjacent numbers of the type at these numbers."""
    form = FORMATS[type_name]
    _, exponent = np.frexp(numbers)
    exponent = np.where(numbers == 0, form.least_exponent, exponent - 1)
    return np.ldexp(np.longdouble(1), np.maximum(exponent, form.least_exponent) - form.digits + 1)


def errors(result: Vector, exact: Exact, type_name: str) -> dict[str, Any]:
    """The error of a result against the exact one.

    ulp                in units in the last place of the result, or of the magnitude if terms cancel
    relative           relative to the exact result, where that is not 0
    correctly_rounded  share of elements that are the type's number closest to the exact result
    wrong              number of integer elements that differ
    """
    if exact.magnitude is None:
        return {**dict.fromkeys(FIGURES), "wrong": int(np.count_nonzero(result != exact.value))}
    away = np.abs(decode(result, type_name) - exact.value)
    units = away / last_place(exact.magnitude, type_name)
    somewhere = exact.value != 0
    relative = away[somewhere] / np.abs(exact.value[somewhere])
    right = np.mean(away <= last_place(exact.value, type_name) / 2)
    figures = (units.max(), units.mean(), relative.max(initial=0), relative.mean() if relative.size else 0, right)
    return {**{name: float(figure) for name, figure in zip(FIGURES, figures, strict=True)}, "wrong": None}


FIGURES = ("max_ulp", "mean_ulp", "max_relative", "mean_relative", "correctly_rounded")
