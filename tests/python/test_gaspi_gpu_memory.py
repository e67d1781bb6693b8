# SPDX-License-Identifier: Apache-2.0
"""GPU memory of torch and CuPy as GASPI segments (gaspi_map_create); skipped without them or without a GPU."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import PROGRAMS

LIBRARY = PROGRAMS.parent / "src" / "libbeeline_gaspi.so"

# A process of one rank: numbers go from a host segment to the array of `module`, and changed ones come back.
PROGRAM = """
import ctypes, importlib, sys

library, module = sys.argv[1:]
count = 1 << 18
size, block, none = ctypes.c_uint64(8 * count), ctypes.c_uint64(2**64 - 1), ctypes.c_uint64(0)
gaspi = ctypes.CDLL(library)
arrays = importlib.import_module(module)
if module == "torch":
    array = arrays.zeros(count, dtype=arrays.int64, device="cuda")
    address, synchronize = array.data_ptr(), arrays.cuda.synchronize
else:
    array = arrays.zeros(count, dtype="int64")
    address, synchronize = array.data.ptr, arrays.cuda.runtime.deviceSynchronize
synchronize()

def call(name, *arguments):
    result = getattr(gaspi, name)(*arguments)
    assert result == 0, f"{name}: {result}"

call("gaspi_proc_init", block)
call("gaspi_gpu_init")
call("gaspi_segment_create", 0, size, 0, block, none)
call("gaspi_map_create", 1, ctypes.c_void_p(address), size, 0, block, none)
pointer = ctypes.c_void_p()
call("gaspi_segment_ptr", 1, ctypes.byref(pointer))
assert pointer.value == address
call("gaspi_segment_ptr", 0, ctypes.byref(pointer))
host = (ctypes.c_int64 * count).from_address(pointer.value)
host[:] = range(count)
call("gaspi_gpu_write", 0, none, 0, 1, none, size, 0, block)
call("gaspi_wait", 0, block)
assert int(array.sum()) == count * (count - 1) // 2
array[:] = 7
synchronize()
call("gaspi_read", 0, none, 0, 1, none, size, 0, block)
call("gaspi_wait", 0, block)
assert list(host[:3]) == [7, 7, 7] and host[count - 1] == 7
call("gaspi_segment_delete", 1)
call("gaspi_proc_term", block)
assert int(array[5]) == 7  # still the program's
"""


@pytest.mark.parametrize("module", ["torch", "cupy"])
def test_memory_of_an_array_is_a_segment(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    if not Path("/dev/nvidiactl").exists():
        pytest.skip("no GPU")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    command = [sys.executable, "-c", PROGRAM, str(LIBRARY), module]
    done = subprocess.run(
        command, capture_output=True, text=True, env=kept | {"BEELINE_DEVICE": "cuda:0"}, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
