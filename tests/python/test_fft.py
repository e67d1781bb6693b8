# SPDX-License-Identifier: Apache-2.0
"""`beeline app fft`: the real program on host devices, its results beside numpy's; the table with a fake program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from beeline.display import against

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"


def run(devices: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    launch = [str(PROGRAMS / "beeline-launch"), "--threads", "-n", str(devices), "--device", "cpu", "--"]
    command = [*launch, str(PROGRAMS / "fft"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def transformed(tmp_path: Path, devices: int, count: int, method: str) -> np.ndarray:
    file = tmp_path / f"{devices}_{count}_{method}"
    done = run(devices, "--size", str(count), "--method", method, "--transforms", "1", "--write", str(file))
    assert done.returncode == 0, done.stderr
    return np.fromfile(file, np.complex64)


def initial_values(part: int, count: int) -> np.ndarray:
    """The real (0) or imaginary (1) parts before the transform, as `initial_element` of apps/fft has them."""
    bits = np.uint64(part) * np.uint64(0x9E3779B97F4A7C15) + np.arange(count, dtype=np.uint64)
    bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return ((bits >> np.uint64(32)) % np.uint64(129)).astype(np.float64) / 128 - 0.5


@pytest.mark.parametrize("devices", [1, 2, 8])
@pytest.mark.parametrize("method", ["copies", "unified"])
def test_results_are_those_of_numpy(tmp_path, devices, method):
    for count in (2 * devices, 512, 1 << 18):
        found = transformed(tmp_path, devices, count, method)
        expected = np.fft.fft(initial_values(0, count) + 1j * initial_values(1, count))
        assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < 1e-6


def test_each_method_says_how_long_the_bytes_take():
    done = run(2, "--size", "4K,64K", "--transforms", "2")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    results = [line for line in lines if line["event"] == "result"]
    assert [(one["method"], one["devices"], one["elements"]) for one in results] == [
        (method, devices, count)
        for count in (4096, 65536)
        for method, devices in (("one_device", 1), ("copies", 2), ("unified", 2))
    ]
    for one in results:
        assert one["verified"]
        assert one["relative_error"] < 1e-6
        assert one["bound_seconds"] > 0
        assert (one["link_bytes_per_second"] is None) == (one["devices"] == 1)


@pytest.mark.parametrize(
    ("devices", "arguments", "reason"),
    [
        (3, (), "3 devices: pairs exchange their parts, so the number is a power of two"),
        (4, ("--size", "4"), "each device needs at least 2"),
        (1, ("--size", "1000"), "'1000' is no number of elements"),
        (1, ("--size", "4G"), "of host memory"),
        (1, ("--write", "/nowhere/file", "--size", "2"), "cannot write /nowhere/file"),
    ],
)
def test_bad_input_is_refused(devices, arguments, reason):
    done = run(devices, *arguments)
    assert done.returncode in (1, 2)
    assert reason in done.stderr


def test_the_table_compares_with_one_device(cli):
    done = cli("app", "fft", "--devices", "2")
    assert done.returncode == 0, done.stderr
    for text in ("Fourier transform on cpu", "8 MiB", "80", "40", "2.00", "25", "87.5", "93.8", "1.2e-07", "yes"):
        assert text in done.stdout


def test_without_verification(cli):
    done = cli("app", "fft", "--no-verify")
    assert done.returncode == 0, done.stderr
    assert "1.2e-07" not in done.stdout


def test_a_wrong_result_fails(cli):
    done = cli("app", "fft", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: one_device, unified" in done.stderr


def test_each_run_is_compared_with_its_own_time_on_one_device():
    runs = [
        {"method": "one_device", "bytes": 8, "seconds": 4.0},
        {"method": "copies", "bytes": 8, "seconds": 2.0},
        {"method": "one_device", "bytes": 8, "seconds": 1.0},
        {"method": "copies", "bytes": 8, "seconds": 0.25},
    ]
    speeds = [against(one, runs, "one_device", "seconds", ("bytes",)) for one in runs]
    assert speeds == ["1.00", "2.00", "1.00", "4.00"]
    assert against(runs[1], runs[1:], "one_device", "seconds", ("bytes",)) == "0.50"
