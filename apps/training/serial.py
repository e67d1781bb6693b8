# SPDX-License-Identifier: Apache-2.0
"""The serial reference: one process learns from the data of all ranks."""

from __future__ import annotations

import torch
from steps import Learnt, learn
from task import Task


def train(task: Task, ranks: int) -> Learnt:
    """Trains with the data of `ranks` ranks in each step."""

    def batch(step: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.cat(parts) for parts in zip(*(task.batch(step, rank) for rank in range(ranks)), strict=True))

    return learn(task, task.make_model(), batch)
