# SPDX-License-Identifier: Apache-2.0
"""Settings of the back end for torch.compile."""

from __future__ import annotations

from types import FunctionType
from typing import TypeVar

from torch._C._dynamo import eval_frame

Kind = TypeVar("Kind", bound=type)


def not_compiled(kind: Kind) -> Kind:
    """Marks a class: a compiled program does not compile its methods, nor the functions that they call.

    Where a program leaves compiled code, as in DDP, torch.compile also compiles the functions that the program calls,
    including those of a back end in Python. `torch.compiler.disable` would have the same effect, but loads the
    compiler, and takes time in each call.
    """
    skip = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)
    for member in vars(kind).values():
        if isinstance(member, FunctionType):
            eval_frame.set_code_exec_strategy(member.__code__, skip)
    return kind
