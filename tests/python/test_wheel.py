# SPDX-License-Identifier: Apache-2.0
"""`pip install .` into a venv of its own: command line and library work outside the source tree, with the files of the
wheel."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

BUILD = REPOSITORY / "build"
# Only two programs are built, in a build folder that is kept; ccache has most objects from the main build. The folder
# is as deep in the tree as the main build's, because ccache may make paths relative.
OPTIONS = {
    "build-dir": str(REPOSITORY / "build-wheel"),
    "cmake.define.BEELINE_BUILD_APPS": "OFF",
    "cmake.define.BEELINE_BUILD_BENCH": "OFF",
}
AS_IN_BUILD = re.compile(
    r"(BEELINE_(?:WITH_CUDA|BATCHES|CUDA_ARCHITECTURES)|CMAKE_(?:CXX_COMPILER|(?:CXX|CUDA)_COMPILER_LAUNCHER)):\w+=(.*)"
)


def options() -> dict[str, str]:
    lines = (BUILD / "CMakeCache.txt").read_text().splitlines()
    same = dict(match.groups() for line in lines if (match := AS_IN_BUILD.fullmatch(line)))
    if "ccache" not in same.get("CMAKE_CXX_COMPILER_LAUNCHER", ""):
        pytest.skip("build/ was built without ccache: the library would be compiled again, for minutes")
    return OPTIONS | {f"cmake.define.{name}": value for name, value in same.items()}


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEELINE_", "PYTHON"))}
    done = subprocess.run(
        command, cwd=folder, env={**kept, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.timeout(300)
def test_the_wheel_works_outside_the_source_tree(tmp_path: Path) -> None:
    for module in ("scikit_build_core", "nanobind", "pip"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    settings = [f"--config-settings={name}={value}" for name, value in options().items()]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    shared = {"CCACHE_BASEDIR": str(REPOSITORY), "CCACHE_NOHASHDIR": "1", "CCACHE_DEPEND": "1"}  # as tools/build
    wheels = [*pip, "wheel", *offline, "--no-build-isolation", "-w", tmp_path, *settings, REPOSITORY]
    run(wheels, tmp_path, **shared)
    (wheel,) = tmp_path.glob("beeline-*.whl")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.name.startswith(f"beeline-0.1.0-{python}-{python}-")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"beeline/cli.py", "beeline/bin/beeline-launch", "beeline/bin/beeline-info"} <= set(names)
    assert [name for name in names if name.startswith("beeline/_beeline.") and name.endswith(".so")]
    sources = [name for name in names if name.endswith((".hpp", ".cpp", ".a", ".cmake"))]
    # These are compiled for the torch that is installed.
    assert sorted(sources) == [f"beeline/torch_{name}" for name in ("native.cpp", "native_work.hpp", "table.hpp")]

    venv = tmp_path / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", venv], tmp_path)
    (site,) = venv.glob("lib/python*/site-packages")
    # Typer and rich are taken from this Python; this checkout's own package is not among its packages.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run([*pip, "--python", venv / "bin" / "python", "install", *offline, wheel], tmp_path)

    beeline = venv / "bin" / "beeline"
    assert json.loads(run([beeline, "info", "--json"], tmp_path).stdout)["version"] == "0.1.0"
    info = run([beeline, "run", "-n", "2", "beeline-info"], tmp_path, PATH="/usr/bin:/bin").stdout.splitlines()
    for rank in (0, 1):
        (line,) = [line.removeprefix(f"[{rank}] ") for line in info if line.startswith(f"[{rank}]")]
        launcher = json.loads(line)["launcher"]
        assert (launcher["name"], launcher["rank"], launcher["size"]) == ("beeline", rank, 2)

    # This wheel has no benchmarks; their command line is made from the description of a program elsewhere.
    benchmarks = run([beeline, "bench", "--help"], tmp_path, BEELINE_BIN=str(BUILD / "bin")).stdout
    assert "address-space" in benchmarks

    program = "import beeline; print(beeline.run(3, lambda world: world.allgather(b'%d' % world.rank)))"
    library = run([venv / "bin" / "python", "-c", program], tmp_path).stdout
    assert library == f"{[[b'0', b'1', b'2']] * 3}\n"
