# SPDX-License-Identifier: Apache-2.0
"""Each rank learns from pictures of its own; torch's DistributedDataParallel averages the gradients over the ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from problem import Pictures, Size, evaluate, loss_of, make_model, make_optimizer
from torch.nn.parallel import DistributedDataParallel


def train(size: Size, device: torch.device) -> float:
    """The loss after `size.steps` steps of the default process group: the same model on every rank."""
    data = Pictures(size, device)
    model = DistributedDataParallel(make_model(size, device))
    optimizer = make_optimizer(model)
    for step in range(size.steps):
        optimizer.zero_grad()
        loss_of(model, *data.batch(step, dist.get_rank())).backward()
        optimizer.step()
    return evaluate(model.module, data)
