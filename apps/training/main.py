# SPDX-License-Identifier: Apache-2.0
"""Trains a model on the ranks of a world with each back end, and compares losses and times."""

from __future__ import annotations

import itertools
import json
import os
import platform
import statistics
import sys
import time
from typing import Annotated, Any

import beeline
import beeline.torch_backend
import data_parallel
import serial
import torch
import torch.distributed as dist
import typer
from beeline.ranks.records import environment
from pictures import Pictures
from sequences import FewSequences, Sequences
from steps import Learnt
from task import Size, Task

BACKENDS = ("serial", "beeline", "gloo", "nccl")
MODELS = {"convolutional": Pictures, "transformer": Sequences, "small-transformer": FewSequences}
VARIABLES = ("BEELINE_TORCH_NATIVE", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # that change the times
TOLERANCE = 1e-3  # of the losses, relative to the first back end's


def device_of(world: beeline.World) -> torch.device:
    if world.device.kind == "host":
        return torch.device("cpu")
    torch.cuda.set_device(world.device.index)
    return torch.device("cuda", world.device.index)


def train(backend: str, task: Task, world: beeline.World) -> Learnt | None:
    """Returns None on ranks that do not take part."""
    if backend == "serial":
        return serial.train(task, world.size) if world.rank == 0 else None
    options = {"pg_options": world} if backend == "beeline" else {}
    store = beeline.torch_backend.make_store(world)
    dist.init_process_group(backend, store=store, rank=world.rank, world_size=world.size, **options)
    try:
        return data_parallel.train(task)
    finally:
        dist.destroy_process_group()


def describe(world: beeline.World) -> dict[str, Any]:
    """The first line: software, model and machine of the run."""
    return {
        **environment(sys.argv[1:]),
        "variables": {name: value for name, value in sorted(os.environ.items()) if name in VARIABLES},
        "devices": [each.name for each in world.devices], "torch": torch.__version__,
    }  # fmt: skip


def check(backends: list[str], model: str, world: beeline.World) -> None:
    of_backend = {"param_hint": "'--backend'"}
    unknown = [backend for backend in backends if backend not in BACKENDS]
    if unknown:
        raise typer.BadParameter(f"unknown back end {', '.join(unknown)}; valid: {', '.join(BACKENDS)}", **of_backend)
    if model not in MODELS:
        raise typer.BadParameter(f"unknown model {model}; valid: {', '.join(MODELS)}", param_hint="'--model'")
    if "nccl" in backends and world.device.kind == "host":
        raise typer.BadParameter("nccl needs GPU ranks", **of_backend)
    if "nccl" in backends and len({each.uuid for each in world.devices}) < world.size:
        raise typer.BadParameter("nccl refuses ranks that share a GPU", **of_backend)


def main(
    backend: Annotated[
        str, typer.Option(help="back ends, separated by commas: " + ", ".join(BACKENDS))
    ] = "serial,beeline",
    model: Annotated[str, typer.Option(help=", ".join(MODELS))] = "convolutional",
    steps: Annotated[int | None, typer.Option(min=1, help="steps to learn (default: as the model wants)")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="samples in a step, of each rank")] = None,
    seed: Annotated[int, typer.Option(min=0, help="of weights and data")] = 1,
    rounds: Annotated[int, typer.Option(min=1, help="times that each back end trains the model anew, in turns")] = 1,
) -> None:
    """From rank 0: a JSON line with the environment, and one for each back end.

    Exit status 1 when the losses differ by more than 1e-3.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.allow_tf32 = False
    backends = backend.split(",")
    reference = None
    agree = True
    times: dict[str, list[float]] = {name: [] for name in backends}
    with beeline.World.create() as world:
        check(backends, model, world)
        if world.rank == 0:
            print(json.dumps(describe(world)), flush=True)
        kind = MODELS[model]
        size = Size(steps or kind.steps, samples or kind.samples, seed)
        for turn, name in itertools.product(range(rounds), backends):
            world.barrier()
            start = time.monotonic()
            learnt = train(name, kind(size, device_of(world)), world)
            seconds = time.monotonic() - start
            if learnt is None or world.rank != 0:
                continue
            reference = learnt.loss if reference is None else reference
            difference = abs(learnt.loss - reference) / abs(reference)
            agree = agree and difference <= TOLERANCE
            if learnt.step_ms is not None:
                times[name].append(learnt.step_ms)
            if turn < rounds - 1:
                continue
            print(json.dumps({
                "event": "result", "app": "training", "backend": name, "model": model,
                "parameters": learnt.parameters, "ranks": world.size, "device": world.device.name,
                "machine": platform.machine(), "torch": torch.__version__, "steps": size.steps,
                "samples": size.samples, "seed": seed, "loss": learnt.loss,
                "step_ms": statistics.median(times[name]) if times[name] else None,
                "rounds_ms": times[name], "seconds": seconds, "relative_difference": difference,
                "compared_with": backends[0], "verified": difference <= TOLERANCE,
            }), flush=True)  # fmt: skip
    if not agree:
        sys.exit(1)


if __name__ == "__main__":
    # The condition that cuBLAS sets for reproducible results.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    typer.run(main)
