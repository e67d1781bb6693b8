# SPDX-License-Identifier: Apache-2.0
"""KvikIO on the files of `beeline bench files`: measure.py FOLDER host|device BYTES[,BYTES...] ROUNDS STATE[,STATE...],
which prints results like beeline-bench-files. Needs PyPI's kvikio-cu12 or kvikio-cu13, a CUDA driver and numpy."""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

READS = ("cold", "cached")
# As it is installed, with one thread that reads through the page cache; and with several.
THREADS = {"kvikio": 1, "kvikio/4_threads": 4, "kvikio/8_threads": 8}


def settings_of(method: str, state: str) -> dict[str, Any]:
    """With several threads KvikIO reads a cold file past the page cache."""
    return {"num_threads": THREADS[method], "auto_direct_io_read": THREADS[method] > 1 and state == "cold"}


def prepare(path: Path, state: str, content: bytes) -> None:
    """Brings the file into a state, as beeline-bench-files does."""
    if state in ("new", "durable"):
        path.unlink(missing_ok=True)
        return
    if not path.exists():
        path.write_bytes(content)
    descriptor = os.open(path, os.O_RDWR)
    os.fdatasync(descriptor)
    if state == "cached":
        while os.read(descriptor, 1 << 20):
            pass
    else:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def way_of(kvikio: Any, path: Path, state: str, memory: Any) -> Callable[[], None]:
    def move() -> None:
        if state in READS:
            with kvikio.CuFile(str(path), "r") as file:
                file.read(memory)
            return
        with kvikio.CuFile(str(path), "r+" if state == "existing" else "w") as file:
            file.write(memory)
            if state == "durable":  # the data, and the new file's name
                os.fdatasync(file.fileno())
                folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
                os.fsync(folder)
                os.close(folder)

    return move


def memory_of(kind: str, size: int) -> Any:
    if kind == "host":
        import numpy

        return numpy.ones(size, dtype=numpy.uint8)
    return GpuBytes(size)


class GpuBytes:
    """Bytes of the first GPU, by the driver's calls; kept until the process ends."""

    def __init__(self, size: int) -> None:
        driver = ctypes.CDLL("libcuda.so.1")
        gpu, context, address = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
        calls = (
            lambda: driver.cuInit(0),
            lambda: driver.cuDeviceGet(ctypes.byref(gpu), 0),
            lambda: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), gpu),
            lambda: driver.cuCtxSetCurrent(context),
            lambda: driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)),
            lambda: driver.cuMemsetD8_v2(address, ctypes.c_ubyte(1), ctypes.c_size_t(size)),
        )
        for number, call in enumerate(calls):
            if (error := call()) != 0:
                raise OSError(f"call {number} of the CUDA driver for {size} bytes of a GPU failed: error {error}")
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (address.value, False), "version": 3,
        }  # fmt: skip


def measure(kvikio: Any, folder: Path, kind: str, size: int, rounds: int, states: list[str]) -> None:
    path = folder / f"beeline-bench-kvikio-{os.getpid()}"
    memory = memory_of(kind, size)
    try:
        for state in states:
            move = way_of(kvikio, path, state, memory)
            samples: dict[str, list[float]] = {method: [] for method in THREADS}
            for turn in range(rounds + 1):
                for method, values in samples.items():
                    with kvikio.defaults.set(settings_of(method, state)):
                        prepare(path, state, b"\1" * size)
                        begun = time.perf_counter()
                        move()
                        taken_s = time.perf_counter() - begun
                    if turn > 0:
                        values.append(size / taken_s / 1e9)
            for method, values in samples.items():
                print(json.dumps(result(method, state, kind, size, values)), flush=True)
    finally:
        path.unlink(missing_ok=True)


def result(method: str, state: str, kind: str, size: int, samples: list[float]) -> dict[str, Any]:
    middle = statistics.median(samples)
    return {
        "event": "result", "schema_version": 1, "operation": "file_read" if state in READS else "file_write",
        "method": method, "bytes": size, "ranks": 1, "available": True, "reason": None, "unit": "GB/s",
        "median": middle, "relative_deviation": statistics.median(abs(one - middle) for one in samples) / middle,
        "samples": samples, "verified": None, "settings": {"memory": kind, "file": state},
    }  # fmt: skip


def reason_against(folder: Path, kind: str) -> str:
    """Why KvikIO cannot be used here; empty if it can. Some reasons show only when it moves bytes."""
    path = folder / f"beeline-bench-kvikio-{os.getpid()}"
    try:
        import kvikio

        way_of(kvikio, path, "new", memory_of(kind, 4096))()
    except Exception as reason:
        return (str(reason).splitlines() or [type(reason).__name__])[0].strip()
    finally:
        path.unlink(missing_ok=True)
    return ""


def main() -> None:
    folder, kind, sizes, rounds = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(","), int(sys.argv[4])
    reason = reason_against(folder, kind)
    if reason:
        lacking = {"available": False, "reason": reason, "median": None, "samples": []}
        print(json.dumps(result("kvikio", "cold", kind, 0, [1.0]) | lacking))
        return
    import kvikio
    import kvikio.defaults

    for size in sizes:
        measure(kvikio, folder, kind, int(size), rounds, sys.argv[5].split(","))


if __name__ == "__main__":
    main()
