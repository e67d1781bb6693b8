# SPDX-License-Identifier: Apache-2.0
"""The problem: pictures of classes, and the convolutional model that learns to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

CLASSES = 10
EXTENT = 16  # pixels along each side
NOISE = 1.5  # standard deviation; that of the classes' patterns is 1
EVALUATION_SAMPLES = 512
EVALUATION_SEED = 1 << 40


@dataclass(frozen=True)
class Size:
    """How much is learnt."""

    steps: int
    samples: int  # in a step, of each rank
    seed: int


class Pictures:
    """Patterns with noise, by step and rank: the same on every machine and for every number of processes."""

    def __init__(self, size: Size, device: torch.device) -> None:
        self._size = size
        self._device = device
        patterns = torch.randn(CLASSES, 1, EXTENT, EXTENT, generator=torch.Generator().manual_seed(size.seed))
        self._patterns = patterns

    def batch(self, step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
        """[samples, 1, EXTENT, EXTENT] float32 pictures and [samples] classes."""
        return self._draw(self._size.seed + 1 + 1000 * step + rank, self._size.samples)

    def evaluation(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Pictures that no step has seen, the same on every rank."""
        return self._draw(EVALUATION_SEED + self._size.seed, EVALUATION_SAMPLES)

    def _draw(self, seed: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        classes = torch.randint(CLASSES, (samples,), generator=generator)
        noise = torch.randn(samples, 1, EXTENT, EXTENT, generator=generator)
        return (self._patterns[classes] + NOISE * noise).to(self._device), classes.to(self._device)


def make_model(size: Size, device: torch.device) -> nn.Module:
    """Two convolutions and a linear layer; the same weights wherever it is made."""
    torch.manual_seed(size.seed)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * (EXTENT // 2) ** 2, CLASSES),
    ).to(device)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def loss_of(model: nn.Module, pictures: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy."""
    return nn.functional.cross_entropy(model(pictures), classes)


@torch.no_grad()
def evaluate(model: nn.Module, data: Pictures) -> float:
    """Mean loss over the pictures for evaluation, in float64."""
    pictures, classes = data.evaluation()
    return nn.functional.cross_entropy(model(pictures).double(), classes).item()
