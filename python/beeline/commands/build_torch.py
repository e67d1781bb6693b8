# SPDX-License-Identifier: Apache-2.0
"""`beeline build-torch`: the C++ part of the back end of torch.distributed, compiled beforehand."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from beeline import options
from beeline.programs import CliError

Deadline = Annotated[
    float, typer.Option("--deadline", min=1, max=1e6, help="Seconds that it may take, other processes' turns included.")
]


def build_torch(deadline: Deadline = 600, as_json: options.Json = False) -> None:
    """Compile the C++ part of the back end of torch.distributed for the torch of this Python, unless it is there, and
    show where it is.

    DDP and compiled programs call it; without it they go through Python. Programs compile it in the background when
    they first need it. The command is for images of containers, and for the first measurement."""
    try:
        from beeline import torch_native
    except ImportError as problem:
        raise CliError(f"build-torch needs torch ({problem})") from None
    start = time.monotonic()
    try:
        is_new = not torch_native.is_there(torch_native.part())
        place = torch_native.build(deadline)
        torch_native.loaded(place)
    except torch_native.Unavailable as reason:
        raise CliError(str(reason)) from None
    seconds = round(time.monotonic() - start, 1)
    if as_json:
        print(json.dumps({"part": str(place), "compiled": is_new, "seconds": seconds}))
    else:
        print(f"{place}: {f'compiled in {seconds:g} s' if is_new else 'it was there'}")
