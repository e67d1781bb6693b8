# SPDX-License-Identifier: Apache-2.0
"""torch's CUDA streams that groups borrow and return."""

from __future__ import annotations

import torch

# When a tensor is freed, torch records events on the streams that used it, perhaps long after the group has ended.
# Therefore these are torch's own streams, which are never destroyed. torch hands out 32 in turn; those that groups have
# returned are used again.
_idle_streams: dict[torch.device, list[torch.cuda.Stream]] = {}


def take_stream(device: torch.device) -> torch.cuda.Stream:
    idle = _idle_streams.setdefault(device, [])
    return idle.pop() if idle else torch.cuda.Stream(device, priority=-1)


def give_back(stream: torch.cuda.Stream) -> None:
    _idle_streams[stream.device].append(stream)
