# SPDX-License-Identifier: Apache-2.0
"""The serial reference: one process learns from the pictures of all ranks."""

from __future__ import annotations

import torch
from problem import Pictures, Size, evaluate, loss_of, make_model, make_optimizer


def train(size: Size, ranks: int, device: torch.device) -> float:
    """The loss after `size.steps` steps; each takes the pictures of `ranks` ranks."""
    data = Pictures(size, device)
    model = make_model(size, device)
    optimizer = make_optimizer(model)
    for step in range(size.steps):
        pictures, classes = zip(*(data.batch(step, rank) for rank in range(ranks)), strict=True)
        optimizer.zero_grad()
        loss_of(model, torch.cat(pictures), torch.cat(classes)).backward()
        optimizer.step()
    return evaluate(model, data)
