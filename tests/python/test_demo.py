# SPDX-License-Identifier: Apache-2.0
"""Which programs tools/demo builds and shows, and how tools report progress."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest


def plant(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def run_logged(repository, command):
    script = f"""source tools/lib.sh; PROGRESS_SECONDS=0; log=$(mktemp)
    status=0; run_logged "build (x)" "$log" bash -c '{command}' || status=$?; wc -l <"$log"; rm "$log"
    exit $status"""
    return subprocess.run(["bash", "-c", script], cwd=repository, capture_output=True, text=True, check=False)


def test_what_takes_long_says_how_far_it_is(repository):
    lines = "".join(f"[{number}/3] Building {number}\\n" for number in (1, 2, 3))
    done = run_logged(repository, f'printf "{lines}"; exit 3')
    assert done.stderr.splitlines() == ["build (x): 1 of 3", "build (x): 2 of 3", "build (x): 3 of 3"]
    assert done.stdout.split() == ["3"]  # lines in the log
    assert done.returncode == 3


APT_OUTPUT = """Get:1 http://deb.debian.org/debian bookworm InRelease
0 upgraded, 2 newly installed, 0 to remove and 1 not upgraded.
Get:1 http://deb.debian.org/debian bookworm/main a
Selecting previously unselected package a.
Unpacking a (1) ...
Setting up a (1) ...
"""


def test_the_steps_of_apt_are_counted(repository, tmp_path):
    plant(tmp_path, "output", APT_OUTPUT)
    done = run_logged(repository, f"cat {tmp_path}/output")
    lines = [line.removeprefix("build (x): ") for line in done.stderr.splitlines()]
    assert [re.sub(r"^\d+ s", "0 s", line) for line in lines] == [
        "0 s, Get:1 http://deb.debian.org/debian bookworm InRelease",
        "0 s, 0 upgraded, 2 newly installed, 0 to remove and 1 not upgraded.",
        *("1 of 6", "1 of 6", "2 of 6", "3 of 6"),
    ]


def test_a_command_that_prints_nothing_is_known_to_run(repository):
    done = run_logged(repository, "echo begins; sleep 1.5")
    assert re.fullmatch(r"build \(x\): \d s, begins\n", done.stderr.splitlines(keepends=True)[-1])
    assert len(done.stderr.splitlines()) >= 2


COMPILED_BY_THE_DEMO = 32


def test_the_demo_builds_what_it_shows(repository, tmp_path):
    """It builds little else: the limit is as much as two cores compile in five minutes."""
    if shutil.which("ninja") is None:
        pytest.skip("there is no ninja")
    configure = ["cmake", "--preset", "demo", "-B", tmp_path, "-DBEELINE_WITH_CUDA=OFF"]
    subprocess.run(configure, cwd=repository, capture_output=True, check=True)
    made = {}
    for target in ("demo-messages", "demo"):
        done = subprocess.run(
            ["ninja", "-C", tmp_path, "-t", "commands", target], capture_output=True, text=True, check=True
        )
        made[target] = re.findall(r" -o (\S+)", done.stdout)
    assert {"bin/beeline-info", "bin/beeline-launch", "bin/beeline-bench"} <= set(made["demo-messages"])
    assert "bin/himeno" in set(made["demo"]) - set(made["demo-messages"])
    assert len([name for name in made["demo"] if name.endswith(".o")]) <= COMPILED_BY_THE_DEMO


# Columns: GPUs that nvidia-smi lists, whether nvcc exists, environment, the demo's texts about the build, its commands.
ON_CPUS = [
    "bench latency --operations message --sizes 8,4K --ranks 2 --device cpu",
    "app himeno --method all --size S --ranks 4 --device cpu",
]
ON_ONE_GPU = [
    "bench latency --operations message --sizes 8,4K --ranks 2 --threads",
    "app himeno --method all --size M --ranks 1",
]
ON_TWO_GPUS = [
    "bench latency --operations message --sizes 8,4K --ranks 2",
    "app himeno --method all --size M --ranks 2",
]
ON_EIGHT_GPUS = [ON_TWO_GPUS[0], "app himeno --method all --size M --ranks 4"]


@pytest.mark.parametrize(
    ("gpus", "has_nvcc", "environment", "built", "shown", "commands"),
    [
        (None, True, {}, "built for CPUs only; BEELINE_WITH_CUDA=ON", "CPUs", ON_CPUS),
        (0, True, {}, "built for CPUs only; BEELINE_WITH_CUDA=ON", "CPUs", ON_CPUS),
        (1, False, {}, "nvcc (CUDA 12.8 or newer) is not on PATH", "CPUs", ON_CPUS),
        (1, True, {}, "for CPUs and these GPUs; BEELINE_WITH_CUDA=OFF", "one GPU", ON_ONE_GPU),
        (2, True, {}, "for CPUs and these GPUs; BEELINE_WITH_CUDA=OFF", "2 GPUs", ON_TWO_GPUS),
        (8, True, {}, "for CPUs and these GPUs; BEELINE_WITH_CUDA=OFF", "8 GPUs", ON_EIGHT_GPUS),
        (8, True, {"CUDA_VISIBLE_DEVICES": "3"}, "for CPUs and these GPUs", "one GPU", ON_ONE_GPU),
        (8, True, {"CUDA_VISIBLE_DEVICES": ""}, "no GPU (nvidia-smi -L, CUDA_VISIBLE_DEVICES)", "CPUs", ON_CPUS),
        (1, True, {"BEELINE_WITH_CUDA": "OFF"}, "BEELINE_WITH_CUDA=OFF, so kernels", "CPUs", ON_CPUS),
        (None, True, {"BEELINE_WITH_CUDA": "ON"}, "BEELINE_WITH_CUDA=ON, so kernels are built for", "CPUs", ON_CPUS),
    ],
)  # fmt: skip
def test_the_demo_shows_the_devices_that_are_there(
    repository, tmp_path, gpus, has_nvcc, environment, built, shown, commands
):
    (tmp_path / "commands").mkdir()
    for name in ("bash", "dirname", "basename", "grep", "tr"):
        (tmp_path / "commands" / name).symlink_to(shutil.which(name))
    listed = "" if gpus is None else "".join(f"echo 'GPU {i}: Fake GPU (UUID: GPU-{i})'\n" for i in range(gpus))
    fakes = {"nvidia-smi": listed or "exit 9\n"} if gpus is not None else {}
    for name, script in (fakes | ({"nvcc": ""} if has_nvcc else {})).items():
        plant(tmp_path, f"commands/{name}", f"#!/bin/sh\n{script}")
        (tmp_path / "commands" / name).chmod(0o755)
    for name in ("demo", "lib.sh"):
        text = (repository / "tools" / name).read_text()
        plant(tmp_path, f"tools/{name}", text.replace("/usr/local/cuda", "/absent"))  # where lib.sh searches for nvcc
    done = subprocess.run(
        ["bash", tmp_path / "tools/demo", "--plan"], capture_output=True, text=True, check=True, timeout=60,
        env={"PATH": str(tmp_path / "commands"), **environment},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert built in lines[0]
    assert lines[1].startswith(f"demo: shows on {shown}:")
    assert lines[2:] == [f"beeline {command}" for command in commands]
