# SPDX-License-Identifier: Apache-2.0
"""torch's CUDA streams that groups use and give back."""

from __future__ import annotations

import torch

# When a tensor goes, torch records events on the streams that it was used on, perhaps long after its group: so these
# are torch's own, which it never destroys. It hands out 32 in turn; those that groups have given back are taken again.
_idle_streams: dict[torch.device, list[torch.cuda.Stream]] = {}


def take_stream(device: torch.device) -> torch.cuda.Stream:
    idle = _idle_streams.setdefault(device, [])
    return idle.pop() if idle else torch.cuda.Stream(device, priority=-1)


def give_back(stream: torch.cuda.Stream) -> None:
    _idle_streams[stream.device].append(stream)
