# SPDX-License-Identifier: Apache-2.0
"""torch's tensors and reductions as Beeline's collectives take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from beeline.library import _beeline

Tensors = Sequence[torch.Tensor]
_REDUCTION_NAMES = {
    dist.ReduceOp.SUM: "sum",
    dist.ReduceOp.AVG: "average",
    dist.ReduceOp.PRODUCT: "product",
    dist.ReduceOp.MIN: "minimum",
    dist.ReduceOp.MAX: "maximum",
    dist.ReduceOp.BAND: "bit_and",
    dist.ReduceOp.BOR: "bit_or",
    dist.ReduceOp.BXOR: "bit_xor",
}
REDUCTIONS = {int(operation): _beeline._REDUCTIONS.index(name) for operation, name in _REDUCTION_NAMES.items()}


def reduction_of(opts: Any) -> int:
    """Beeline's number of torch's reduction; raises ValueError for reductions that Beeline does not have."""
    return reduction_number(int(dist.ReduceOp.SUM if opts is None else opts.reduceOp.op))


def reduction_number(operation: int) -> int:
    """The same for the number that torch's reduction has in C++."""
    try:
        return REDUCTIONS[operation]
    except KeyError:
        name = dist.ReduceOp.RedOpType(operation)
        raise ValueError(f"reduction {name}: beeline has {', '.join(_REDUCTION_NAMES.values())}") from None


def is_async(opts: Any) -> bool:
    """Whether the call is asynchronous; otherwise it is made on torch's current stream."""
    return opts is None or opts.asyncOp


def check_dense(tensor: torch.Tensor) -> None:
    """Raises ValueError for a sparse tensor."""
    if tensor.layout != torch.strided:
        raise ValueError(f"a tensor of layout {tensor.layout}: beeline takes dense ones")


def in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor of any shape as a one-dimensional tensor, without a copy."""
    check_dense(tensor)
    if not tensor.is_contiguous():
        raise ValueError(f"a tensor of shape {tuple(tensor.shape)} that is not contiguous")
    return tensor.detach().view(-1)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of any type and shape as a one-dimensional tensor of bytes, for moving tensors of several types at
    once."""
    return in_a_row(tensor).view(torch.uint8)


def put_together(tensors: Tensors) -> torch.Tensor:
    """The elements of the tensors, concatenated; as bytes if they have several types."""
    if len({tensor.dtype for tensor in tensors}) > 1:
        return torch.cat([as_bytes(tensor) for tensor in tensors])
    rows = [in_a_row(tensor) for tensor in tensors]
    return rows[0] if len(rows) == 1 else torch.cat(rows)


def check_types(tensors: Tensors) -> None:
    """Raises ValueError unless all tensors have the same type."""
    types = {tensor.dtype for tensor in tensors}
    if len(types) > 1:
        raise ValueError(f"tensors of {', '.join(sorted(map(str, types)))}: they must be of one type")


def check_parts(parts: Tensors, each: torch.Tensor) -> None:
    """Raises ValueError unless all parts have type and size of `each`: before any rank would wait in vain."""
    check_types([each, *parts])
    if any(part.nbytes != each.nbytes for part in parts):
        raise ValueError(
            f"tensors of {', '.join(str(part.nbytes) for part in parts)} bytes, and {each.nbytes} of each rank: "
            "they must be of one size"
        )


def take_apart(together: torch.Tensor, parts: Tensors) -> None:
    """Copies consecutive elements into tensors."""
    pieces = as_bytes(together).split([part.nbytes for part in parts])
    for part, data in zip(parts, pieces, strict=True):
        part.copy_(data.view(part.dtype).view_as(part))


def check_rows(tensor: torch.Tensor, ranks: int) -> None:
    """Raises ValueError unless the rows are divisible among the ranks."""
    if tensor.shape[0] % ranks:
        raise ValueError(f"{tensor.shape[0]} rows cannot be divided among {ranks} ranks")


def split(tensor: torch.Tensor, splits: Sequence[int], ranks: int) -> list[int]:
    """The bytes of each rank's part: `splits` rows of the first dimension; without splits, equal parts."""
    rows = tensor.shape[0]
    if not splits:
        check_rows(tensor, ranks)
    if splits and (len(splits) != ranks or sum(splits) != rows):
        raise ValueError(f"splits {list(splits)}: there are {ranks} ranks and {rows} rows")
    row = tensor[:1].nbytes
    return [each * row for each in splits or [rows // ranks] * ranks]
