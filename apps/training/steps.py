# SPDX-License-Identifier: Apache-2.0
"""The steps of a training, with their times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from task import Task
from torch import nn

FIRST_STEPS = 3  # these allocate memory and map segments


@dataclass(frozen=True)
class Learnt:
    """The results of a training."""

    loss: float
    parameters: int
    step_ms: float | None  # median of the steps after the first ones; None: there are none


def learn(task: Task, model: nn.Module, batch: Callable[[int], tuple[torch.Tensor, ...]]) -> Learnt:
    """Runs all steps. `batch` returns the data of a step; it is called before the step is timed."""
    optimizer = task.make_optimizer(model)
    times = []
    for step in range(task.size.steps):
        data = batch(step)
        _synchronize(task.device)
        start = time.perf_counter()
        optimizer.zero_grad()
        task.loss_of(model, *data).backward()
        optimizer.step()
        _synchronize(task.device)
        times.append(1e3 * (time.perf_counter() - start))
    steady = times[FIRST_STEPS:]
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Learnt(task.evaluate(model), parameters, statistics.median(steady) if steady else None)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
