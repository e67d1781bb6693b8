# SPDX-License-Identifier: Apache-2.0
"""The task of sequences: a transformer learns which token follows which."""

from __future__ import annotations

import torch
from task import Size, Task
from torch import nn

SURPRISES = 0.1  # share of the tokens that are random


class Transformer(nn.Module):
    """Layers of causal attention between an embedding and its transpose: [samples, length] to logits of each token."""

    def __init__(self, tokens: int, length: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, width // 64 or 1, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        words = self.embedding(sequences) + self.places
        for layer in self.layers:
            words = layer(words, src_mask=self.mask, is_causal=True)
        return self.norm(words) @ self.embedding.weight.T


class Sequences(Task):
    """Each token follows from the previous one by a fixed permutation, or, now and then, is random."""

    steps, samples, evaluation_samples = 20, 4, 4
    tokens, length, width, depth = 20480, 128, 768, 12

    def __init__(self, size: Size, device: torch.device) -> None:
        super().__init__(size, device)
        self._following = torch.randperm(self.tokens, generator=torch.Generator().manual_seed(size.seed))

    def draw(self, generator: torch.Generator, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
        surprises = torch.rand(samples, self.length, generator=generator) < SURPRISES
        tokens = torch.randint(self.tokens, (samples, self.length + 1), generator=generator)
        for place in range(self.length):
            follows = ~surprises[:, place]
            tokens[follows, place + 1] = self._following[tokens[follows, place]]
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def layers(self) -> nn.Module:
        return Transformer(self.tokens, self.length, self.width, self.depth)

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=3e-4)


class FewSequences(Sequences):
    """The same task with a model small enough for CPUs."""

    steps, evaluation_samples = 100, 64
    tokens, length, width, depth = 64, 16, 64, 2
