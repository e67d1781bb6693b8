# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional model on the ranks of a world, by each back end, and compares the losses."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Annotated

import beeline
import beeline.torch_backend
import data_parallel
import serial
import torch
import torch.distributed as dist
import typer
from problem import Size

BACKENDS = ("serial", "beeline", "gloo", "nccl")
TOLERANCE = 1e-3  # of the losses, relative to the first back end's


def device_of(world: beeline.World) -> torch.device:
    if world.device.kind == "host":
        return torch.device("cpu")
    torch.cuda.set_device(world.device.index)
    return torch.device("cuda", world.device.index)


def train(backend: str, size: Size, world: beeline.World) -> float | None:
    """The loss; None on ranks that have no part in it."""
    device = device_of(world)
    if backend == "serial":
        return serial.train(size, world.size, device) if world.rank == 0 else None
    options = {"pg_options": world} if backend == "beeline" else {}
    store = beeline.torch_backend.make_store(world)
    dist.init_process_group(backend, store=store, rank=world.rank, world_size=world.size, **options)
    try:
        return data_parallel.train(size, device)
    finally:
        dist.destroy_process_group()


def check(backends: list[str], world: beeline.World) -> None:
    unknown = [backend for backend in backends if backend not in BACKENDS]
    if unknown:
        raise typer.BadParameter(f"unknown back end {', '.join(unknown)}; known: {', '.join(BACKENDS)}")
    if "nccl" in backends and world.device.kind == "host":
        raise typer.BadParameter("nccl needs GPU ranks")


def main(
    backend: Annotated[
        str, typer.Option(help="back ends, separated by commas: " + ", ".join(BACKENDS))
    ] = "serial,beeline",
    steps: Annotated[int, typer.Option(min=1, help="steps to learn")] = 200,
    samples: Annotated[int, typer.Option(min=1, help="pictures in a step, of each rank")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="of weights and pictures")] = 1,
) -> None:
    """One JSON line for each back end, from rank 0; exit status 1 when the losses differ by more than 1e-3."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.allow_tf32 = False
    size = Size(steps, samples, seed)
    backends = backend.split(",")
    reference = None
    agree = True
    with beeline.World.create() as world:
        check(backends, world)
        for name in backends:
            world.barrier()
            start = time.monotonic()
            loss = train(name, size, world)
            seconds = time.monotonic() - start
            if world.rank != 0:
                continue
            reference = loss if reference is None else reference
            difference = abs(loss - reference) / abs(reference)
            agree = agree and difference <= TOLERANCE
            print(json.dumps({
                "event": "result", "app": "training", "backend": name, "ranks": world.size,
                "device": world.device.name, "steps": steps, "samples": samples, "seed": seed, "loss": loss,
                "seconds": seconds, "relative_difference": difference, "compared_with": backends[0],
                "verified": difference <= TOLERANCE,
            }), flush=True)  # fmt: skip
    if not agree:
        sys.exit(1)


if __name__ == "__main__":
    # cuBLAS's own condition for results that repeat.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    typer.run(main)
