# SPDX-License-Identifier: Apache-2.0
"""What the back end tells torch.compile."""

from __future__ import annotations

from types import FunctionType
from typing import TypeVar

from torch._C._dynamo import eval_frame

Kind = TypeVar("Kind", bound=type)


def not_compiled(kind: Kind) -> Kind:
    """A class whose methods, with all that they call, run as they are when a compiled program calls them.

    torch.compile goes on into whatever a program calls where it leaves compiled code, as it does in DDP: also into a
    back end, if that is Python. `torch.compiler.disable` would say the same, but loads the compiler, and takes time in
    each call.
    """
    skip = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)
    for member in vars(kind).values():
        if isinstance(member, FunctionType):
            eval_frame.set_code_exec_strategy(member.__code__, skip)
    return kind
