# SPDX-License-Identifier: Apache-2.0
"""The learning task: data, model and loss, the same on every machine and for every number of processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import nn

EVALUATION_SEED = 1 << 40


@dataclass(frozen=True)
class Size:
    """The size of a training."""

    steps: int
    samples: int  # in a step, of each rank
    seed: int


class Task(ABC):
    """The data of each seed, step and rank, and a model that learns from them on one device."""

    steps: int  # default, without the option
    samples: int
    evaluation_samples: int

    def __init__(self, size: Size, device: torch.device) -> None:
        self.size, self.device = size, device

    @abstractmethod
    def draw(self, generator: torch.Generator, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The input of the model, and the class of each of its outputs, on the CPU."""

    @abstractmethod
    def layers(self) -> nn.Module:
        """The model, on the CPU, with weights from torch's random numbers."""

    @abstractmethod
    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer: ...

    def batch(self, step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._drawn(self.size.seed + 1 + 1000 * step + rank, self.size.samples)

    def make_model(self) -> nn.Module:
        torch.manual_seed(self.size.seed)
        return self.layers().to(self.device)

    @staticmethod
    def loss_of(model: nn.Module, data: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """Mean cross entropy."""
        return nn.functional.cross_entropy(model(data).flatten(0, -2), classes.flatten())

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> float:
        """Mean loss in float64 over data that no step has used; the data are the same on every rank."""
        data, classes = self._drawn(EVALUATION_SEED + self.size.seed, self.evaluation_samples)
        return nn.functional.cross_entropy(model(data).flatten(0, -2).double(), classes.flatten()).item()

    def _drawn(self, seed: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
        data, classes = self.draw(torch.Generator().manual_seed(seed), samples)
        return data.to(self.device), classes.to(self.device)
