# SPDX-License-Identifier: Apache-2.0
"""What tools/setup and tools/build print on machines that lack something: each message says what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COMMANDS = (
    "apt-get", "basename", "bash", "cat", "ccache", "chmod", "cksum", "cmake", "ctags", "cut", "dirname", "env", "g++",
    "grep", "head", "id", "mkdir", "mpicxx", "mpirun", "mv", "ninja", "python3", "readlink", "rm", "sed", "sh",
    "sha256sum", "sort", "tail", "tee", "tr",
)  # fmt: skip

Setup = Callable[..., str]


@pytest.fixture
def setup(repository: Path, tmp_path: Path) -> Setup:
    """Runs tools/setup, or the tool named with its arguments, of another checkout, with this machine's commands except
    `without`; `instead` are scripts that replace commands. It must fail; returns its output."""
    tools = ("lib.sh", "setup", "setup-torch", "build", "requirements.txt", "requirements-torch.txt")
    for name in (*(f"tools/{name}" for name in tools), "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(repository / name, tmp_path / name)
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in COMMANDS:
        found = shutil.which(name)
        if found is not None:
            (commands / name).symlink_to(found)

    def run(tool: str = "setup", *, without: tuple[str, ...] = (), offline: bool = False, **instead: str) -> str:
        for name in without:
            (commands / name).unlink(missing_ok=True)
        for name, script in instead.items():
            place = commands / name.replace("_", "-")
            place.unlink(missing_ok=True)
            place.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            place.chmod(0o755)
        environment = {"PATH": str(commands), "HOME": str(tmp_path), "BEELINE_OFFLINE": str(int(offline))}
        done = subprocess.run(
            ["bash", *f"tools/{tool}".split()], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    return run


AS_USER = "echo 1000"


def test_without_root_the_command_to_run_is_named(setup: Setup) -> None:
    said = setup(without=("ninja",), id=AS_USER)
    assert "missing: ninja-build" in said
    assert "Run: sudo apt-get install -y --no-install-recommends ninja-build" in said


def test_without_a_compiler_its_package_is_named(setup: Setup) -> None:
    assert "sudo apt-get install -y --no-install-recommends g++" in setup(without=("g++",), id=AS_USER)


def test_on_another_system_the_packages_are_named(setup: Setup) -> None:
    said = setup(without=("g++", "apt-get"))
    assert "missing (Debian's names): g++" in said
    assert "Install them with this system's package manager" in said


def test_without_a_network_the_packages_cannot_be_installed(setup: Setup) -> None:
    said = setup(without=("ninja",), id="echo 0", apt_get="echo 'Could not resolve deb.debian.org'; exit 100")
    assert "Could not resolve deb.debian.org" in said
    assert "With a network, try: apt-get install" in said


def test_without_a_network_the_python_packages_are_named(setup: Setup) -> None:
    said = setup(
        python3=f"""case "$*" in
  "-m venv"*) echo "Could not fetch URL https://pypi.org"; exit 1 ;;
  *importlib.util*) echo pytest rich typer; exit 0 ;;
esac
exec {shutil.which("python3")} "$@\""""
    )
    assert "Could not fetch URL https://pypi.org" in said
    assert "lacks: pytest rich typer" in said
    assert "Python packages are missing: neither the network nor" in said
    assert "BEELINE_OFFLINE=1 tools/setup" in said


def test_where_the_network_is_forbidden_nothing_is_installed(setup: Setup) -> None:
    said = setup(without=("ninja",), offline=True, apt_get="touch called; exit 0")
    assert "missing: ninja-build (BEELINE_OFFLINE=1 forbids installing" in said
    assert "tools/offline-deps" in said


def test_the_demo_needs_fewer_debian_packages(setup: Setup) -> None:
    lacking = ("ninja", "mpirun", "mpicxx", "ccache")
    assert "missing: ninja-build. Run: sudo" in setup("setup --for demo", without=lacking, id=AS_USER)
    assert "missing: ninja-build openmpi-bin libopenmpi-dev" in setup()


def test_the_demo_needs_three_python_packages(setup: Setup) -> None:
    said = setup(
        "setup --for demo",
        python3=f"""case "$*" in
  "-m venv --clear .venv")
    mkdir -p .venv/bin
    printf '#!/bin/sh\\necho "asked for: $*"; exit 1' >.venv/bin/python
    chmod +x .venv/bin/python
    exit 0 ;;
  *importlib.util*) shift 2; echo "$*"; exit 0 ;;
esac
exec {shutil.which("python3")} "$@\"""",
    )
    assert re.search(r"asked for: -m pip install --retries 2 typer==[\d.]+ msgspec==[\d.]+ rich==[\d.]+\n", said)
    assert "lacks: rich typer msgspec\n" in said


def test_a_set_up_for_something_else_is_refused(setup: Setup) -> None:
    assert "setup: unknown arguments: --for all; valid: none, or --for demo" in setup("setup --for all")


def test_an_old_cmake_is_named_with_its_version(setup: Setup) -> None:
    said = setup(cmake="echo cmake version 3.18.4")
    assert "CMake 3.18.4 is too old" in said
    assert "3.24" in said
    assert "pip install cmake" in said


@pytest.mark.parametrize("command", ["cmake", "ninja"])
def test_a_build_before_the_set_up_names_the_set_up(setup: Setup, command: str) -> None:
    assert f"build: {command} is missing: run tools/setup" in setup("build", without=(command,))


def test_torch_before_the_set_up_names_the_set_up(setup: Setup) -> None:
    assert "setup-torch: .venv is missing: run tools/setup" in setup("setup-torch")


def test_without_a_network_torch_can_be_left_out(setup: Setup, tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f"""#!/bin/sh
case "$*" in
  *find_spec*) exit 1 ;;
  *"-m pip"*) echo "Could not fetch URL https://pypi.org"; exit 1 ;;
  *) echo {tmp_path} ;;
esac
""",
        encoding="utf-8",
    )
    python.chmod(0o755)
    said = setup("setup-torch")
    assert "Could not fetch URL https://pypi.org" in said
    assert "could not install torch from PyPI (tools/requirements-torch.txt)" in said
    assert "run tools/setup-torch again; BEELINE_WITH_TORCH=OFF tools/test leaves" in said
    assert not list((tmp_path / ".cache").glob("beeline/*"))


def run_here(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    merged = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=merged)


def info(repository: Path, **environment: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run_here([str(repository / "build/bin/beeline-info")], **environment).stdout)
    return told


def refusal_of_gpu_0(**environment: str) -> str:
    """The last line of a rank that is to use a GPU on a machine without one."""
    pytest.importorskip("beeline._beeline", reason="the extension module is not built")
    joins = "import beeline; beeline.World.create()"
    done = run_here([sys.executable, "-c", joins], BEELINE_DEVICE="cuda:0", **environment)
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


def test_without_a_gpu_the_reason_and_the_way_out_are_named(repository: Path) -> None:
    reason = info(repository)["no_gpu_reason"]
    if reason is None:
        pytest.skip("this machine has a GPU")
    assert re.search("build again|no CUDA driver is installed|the driver shows no GPU: CUDA_VISIBLE_DEVICES", reason)
    assert f'"cuda:0" is not here: 0 GPU(s) visible ({reason}); --device cpu runs on CPUs' in refusal_of_gpu_0()


def test_an_old_driver_is_named_with_both_versions(repository: Path, tmp_path: Path) -> None:
    if not info(repository)["build"]["cuda"]:
        pytest.skip("this build has no CUDA, so asks no driver")
    source = tmp_path / "driver.c"
    source.write_text(
        "int cuInit(unsigned f) { return 0; }\nint cuDriverGetVersion(int* v) { *v = 11040; return 0; }\n"
    )
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", tmp_path / "libcuda.so.1", source], check=True
    )
    old = {"LD_LIBRARY_PATH": str(tmp_path)}
    reason = info(repository, **old)["no_gpu_reason"]
    assert re.fullmatch(
        "the driver serves CUDA 11.4, this build needs 1.*: install a newer driver, or build with that CUDA", reason
    )
    assert reason in refusal_of_gpu_0(**old)


WITHOUT_PEER_ACCESS = {"BEELINE_PEER_ACCESS": "0"}  # applies to all pairs, even of host ranks


def test_without_peer_access_the_path_is_named(repository: Path) -> None:
    programs = repository / "build/bin"
    paths = [str(programs / "beeline-launch"), "-n", "2", "--device", "cpu", "--json", "--",
             str(programs / "beeline-info"), "--paths"]  # fmt: skip
    node = "both ranks are on one node"
    for environment, expected in (
        (
            WITHOUT_PEER_ACCESS,
            ("loads and stores in host memory only", "staged through host memory", f"{node}, without peer access"),
        ),
        ({}, ("loads and stores", "direct", node)),
    ):
        done = run_here(paths, **environment)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)["paths"]
        assert {(one["operations"], one["copies"], one["reason"]) for one in told} == {expected}


def test_without_peer_access_the_channel_that_is_left_is_named_and_works() -> None:
    pytest.importorskip("beeline._beeline", reason="the extension module is not built")
    pytest.importorskip("numpy")
    program = """
import beeline, numpy
def rank(world):
    try:
        beeline.Messages(world)
    except beeline.UnavailableError as error:
        print(error)
    channel, data = beeline.StagedChannel(world), numpy.full(1000, world.rank)
    channel.send(data, 1) if world.rank == 0 else channel.receive(data, 0)
    return int(data.sum())
print(beeline.run(2, rank))
"""
    done = run_here([sys.executable, "-c", program], **WITHOUT_PEER_ACCESS)
    assert done.returncode == 0, done.stderr
    assert "kernels of rank 0 do not reach the memory of rank 1: StagedChannel serves instead" in done.stdout
    assert done.stdout.splitlines()[-1] == "[0, 0]"


def test_programs_need_no_shared_memory_of_the_container(repository: Path) -> None:
    """Containers often have a small /dev/shm or none: the ranks' memory must not be there."""
    program = repository / "build/bin/example_symmetric"
    launcher = repository / "build/bin/beeline-launch"
    if not program.exists() or not launcher.exists():
        pytest.skip("build/bin has no example_symmetric")
    hidden = 'mount -t tmpfs -o ro,size=4k none /dev/shm && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hidden, "sh", str(launcher), "-n", "2",
               "--device", "cpu", str(program)]  # fmt: skip
    if subprocess.run([*command[:7], "sh", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no mount in a user namespace")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert "rank 1 reads 0.5 from rank 0" in done.stdout
