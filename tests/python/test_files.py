# SPDX-License-Identifier: Apache-2.0
"""Files and tensors: beeline.read_file and beeline.write_file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

numpy = pytest.importorskip("numpy")
import beeline  # noqa: E402
from beeline.commands.info import collect_info, describe_files  # noqa: E402

pytest.importorskip("beeline._beeline", reason="needs the extension module")


def test_a_round_trip_of_numpy(tmp_path: Path) -> None:
    numbers = numpy.arange(300_000, dtype=numpy.float32)
    assert beeline.write_file(tmp_path / "file", numbers, durable=True) == numbers.nbytes
    assert (tmp_path / "file").read_bytes() == numbers.tobytes()
    back = numpy.zeros_like(numbers)
    assert beeline.read_file(str(tmp_path / "file"), back) == numbers.nbytes
    assert (back == numbers).all()


@pytest.mark.parametrize("variant", ["automatic", "user", "pinned", "double_buffered"])
@pytest.mark.parametrize("access", ["automatic", "direct", "buffered"])
def test_a_part_in_each_way(tmp_path: Path, variant: str, access: str) -> None:
    content = numpy.random.default_rng(1).integers(0, 256, 100_001, dtype=numpy.uint8)
    content.tofile(tmp_path / "file")
    part = numpy.zeros((17, 1000), dtype=numpy.uint8)
    beeline.read_file(tmp_path / "file", part[1:], offset=777, variant=variant, access=access, block_bytes=4097)
    assert (part[1:].reshape(-1) == content[777:16_777]).all()
    assert not part[0].any()
    beeline.write_file(tmp_path / "file", part[:1], offset=5, variant=variant, access=access, blocks_in_flight=2)
    content[5:1005] = 0
    assert (tmp_path / "file").read_bytes() == content.tobytes()


def test_bad_input_touches_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    array = numpy.zeros(6, dtype=numpy.uint8)
    with pytest.raises(beeline.InvalidArgumentError, match="has 5 bytes"):
        beeline.read_file(tmp_path / "file", array)
    with pytest.raises(beeline.InvalidArgumentError, match="No such file"):
        beeline.read_file(tmp_path / "none", array)
    with pytest.raises(beeline.InvalidArgumentError, match="a directory"):
        beeline.read_file(tmp_path, array)
    for name in (b"none\xff", "none\udcff"):  # not UTF-8
        with pytest.raises(beeline.InvalidArgumentError, match="none\udcff cannot be read: No such file"):
            beeline.read_file(name, array)
    with pytest.raises(ValueError, match="known are automatic, user, pinned, double_buffered"):
        beeline.read_file(tmp_path / "file", array, variant="best")
    with pytest.raises(ValueError, match="known are automatic, direct, buffered"):
        beeline.write_file(tmp_path / "file", array, access="best")
    with pytest.raises(ValueError, match="deadline_s"):
        beeline.read_file(tmp_path / "file", array[:5], deadline_s=0.0)
    with pytest.raises(ValueError, match="not contiguous"):
        beeline.read_file(tmp_path / "file", array[::2])
    with pytest.raises(TypeError, match="DLPack"):
        beeline.write_file(tmp_path / "file", [1, 2])
    fixed = numpy.zeros(5, dtype=numpy.uint8)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        beeline.read_file(tmp_path / "file", fixed)
    assert not array.any()
    assert (tmp_path / "file").read_bytes() == b"12345"


def test_progress(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    array = numpy.zeros(1_000_000, dtype=numpy.uint8)
    beeline.write_file(tmp_path / "file", array, progress=lambda moved, total: seen.append((moved, total)))
    assert seen[-1] == (1_000_000, 1_000_000)

    def refuse(moved: int, total: int) -> None:
        raise RuntimeError(f"enough at {moved} of {total}")

    with pytest.raises(RuntimeError, match="enough at 1000000"):
        beeline.write_file(tmp_path / "other", array, progress=refuse)
    assert not (tmp_path / "other").exists()


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    """A thread counts while this one writes and reads; each call takes some milliseconds at least."""
    array = numpy.zeros(64 << 20, dtype=numpy.uint8)
    beeline.write_file(tmp_path / "file", array)
    counts, is_over = [0], threading.Event()

    def count() -> None:
        while not is_over.is_set():
            counts[0] += 1
            time.sleep(0.0001)

    thread = threading.Thread(target=count)
    thread.start()
    while counts[0] == 0:
        time.sleep(0.001)
    during = 0
    end = time.monotonic() + 30
    while during == 0 and time.monotonic() < end:
        before = counts[0]
        beeline.read_file(tmp_path / "file", array, access="direct")
        during = counts[0] - before
    is_over.set()
    thread.join()
    assert during > 0


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy, beeline
array = numpy.zeros(64 << 20, dtype=numpy.uint8)
beeline.write_file(sys.argv[1], array)
def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        beeline.read_file(sys.argv[1], array, access="direct", block_bytes=4096, blocks_in_flight=1)
except KeyboardInterrupt:
    beeline.read_file(sys.argv[1], array)
    print("interrupted")
"""


def test_ctrl_c_ends_a_call(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "file")],
        capture_output=True, text=True, timeout=60, check=False, env=environment,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def test_torch_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    devices = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    for device in devices:
        values = torch.arange(200_003, dtype=torch.int32, device=device)
        beeline.write_file(tmp_path / "file", values)
        back = torch.zeros_like(values)
        beeline.read_file(tmp_path / "file", back[1:], offset=4)
        assert torch.equal(back[1:], values[1:]), device
        assert int(back[0]) == 0, device


def test_info_says_how_files_are_moved() -> None:
    files = collect_info()["files"]
    for way in ("io_uring", "gds"):
        assert files[way]["available"] == (files[way]["reason"] is None)
    assert describe_files(files).startswith("by io_uring" if files["io_uring"]["available"] else "by threads: ")
