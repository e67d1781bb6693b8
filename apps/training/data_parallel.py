# SPDX-License-Identifier: Apache-2.0
"""Each rank learns from its own data; torch's DistributedDataParallel averages the gradients over the ranks."""

from __future__ import annotations

import torch.distributed as dist
from steps import Learnt, learn
from task import Task
from torch.nn.parallel import DistributedDataParallel


def train(task: Task) -> Learnt:
    """Trains the same model on every rank, with the default process group."""
    model = DistributedDataParallel(task.make_model(), gradient_as_bucket_view=True)
    return learn(task, model, lambda step: task.batch(step, dist.get_rank()))
