# SPDX-License-Identifier: Apache-2.0
"""The library on torch's tensors in host memory, on host ranks that are threads; skipped without torch."""

from __future__ import annotations

import os
import subprocess
import sys

import beeline
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("numpy")
try:
    import beeline.library
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)


@pytest.mark.parametrize("order", ["world, torch", "torch, world"])
def test_torch_is_imported_before_a_world_or_after(order: str) -> None:
    """Both contain locale code of the C++ library, perhaps two copies of it (src/core/text_file.hpp)."""
    lines = {"world": "world = beeline.World.create(device='cpu')", "torch": "import torch; str(torch.ops.aten.add)"}
    program = "; ".join(["import beeline", *(lines[part] for part in order.split(", "))])
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100, env=os.environ | {"BEELINE_SIZE": "1"})


def test_memory_is_a_tensor_without_a_copy() -> None:
    with beeline.World.create(device="cpu") as world:
        memory = world.allocate((3, 4), torch.bfloat16)
        tensor = torch.from_dlpack(memory)
        assert (tensor.data_ptr(), tensor.device) == (memory.address, torch.device("cpu"))
        assert (tensor.shape, tensor.dtype) == ((3, 4), torch.bfloat16)
        assert not tensor.any()
        tensor.fill_(2)
        copy = torch.empty(3, 4, dtype=torch.bfloat16)
        world.copy(copy, memory)
        assert (copy == 2).all()
        assert world.owner_of(tensor) == 0
        assert world.owner_of(torch.ones(1)) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_collectives_and_messages_take_tensors(dtype: torch.dtype) -> None:
    def body(world: beeline.World) -> None:
        collectives, messages = beeline.Collectives(world), beeline.Messages(world)
        inside = torch.from_dlpack(world.allocate(1000, dtype))
        for tensor in (inside, torch.empty(1000, dtype=dtype)):
            tensor.fill_(world.rank + 1)
            collectives.allreduce(tensor)
            assert (tensor == 6).all()
            got = torch.zeros_like(tensor)
            messages.send_receive(tensor.fill_(world.rank), (world.rank + 1) % 3, got, (world.rank + 2) % 3)
            assert (got == (world.rank + 2) % 3).all()

    beeline.run(3, body)


def test_what_is_refused() -> None:
    with beeline.World.create(device="cpu") as world:
        collectives = beeline.Collectives(world)
        with pytest.raises(ValueError, match="not contiguous"):
            collectives.allreduce(torch.ones(4, 4).t()[1:])
        with pytest.raises(ValueError, match="no sum of int16"):
            collectives.allreduce(torch.ones(4, dtype=torch.int16))
