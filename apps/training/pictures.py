# SPDX-License-Identifier: Apache-2.0
"""The task of pictures: a convolutional model learns to distinguish classes."""

from __future__ import annotations

import torch
from task import Size, Task
from torch import nn

CLASSES = 10
EXTENT = 16  # pixels along each side
NOISE = 1.5  # standard deviation; that of the classes' patterns is 1


class Pictures(Task):
    """Patterns with noise: [samples, 1, EXTENT, EXTENT] float32 pictures and [samples] classes."""

    steps, samples, evaluation_samples = 200, 16, 512

    def __init__(self, size: Size, device: torch.device) -> None:
        super().__init__(size, device)
        self._patterns = torch.randn(CLASSES, 1, EXTENT, EXTENT, generator=torch.Generator().manual_seed(size.seed))

    def draw(self, generator: torch.Generator, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
        classes = torch.randint(CLASSES, (samples,), generator=generator)
        noise = torch.randn(samples, 1, EXTENT, EXTENT, generator=generator)
        return self._patterns[classes] + NOISE * noise, classes

    def layers(self) -> nn.Module:
        """Two convolutions and a linear layer."""
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * (EXTENT // 2) ** 2, CLASSES),
        )

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
