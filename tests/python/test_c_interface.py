# SPDX-License-Identifier: Apache-2.0
"""The shared library of the C interface, loaded by a program without a C compiler; and the files generated from its
headers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from launching import launch

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARY = REPOSITORY / "build" / "src" / "libbeeline_c.so"
RANK = str(Path(__file__).with_name("c_interface_rank.py"))


def version() -> int:
    text = (REPOSITORY / "include/beeline/core/version.h").read_text()
    numbers = [int(number) for number in re.findall(r"^#define BEELINE_\w+ (\d+)$", text, re.MULTILINE)]
    major, minor, patch, interface = numbers
    return ((major * 100 + minor) * 100 + patch) * 1000 + interface


@pytest.mark.parametrize(("ranks", "options"), [("4", []), ("2", ["--by-name"])])
def test_a_program_without_a_compiler_uses_the_offsets_of_the_context(ranks: str, options: list[str]) -> None:
    """The program joins by the environment, and by settings that it passes by name."""
    command = [sys.executable, RANK, str(LIBRARY), str(version()), *options]
    done = launch("-n", ranks, "--device", "cpu", "--", *command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": verified") == int(ranks)


def test_another_version_is_refused_with_both_named() -> None:
    command = [sys.executable, RANK, str(LIBRARY), str(version() + 1000)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert re.search(r"headers of Beeline 0\.1\.1 \(.*library of Beeline 0\.1\.0 \(", done.stderr), done.stderr


def test_the_library_exports_the_functions_of_the_headers_alone() -> None:
    text = "".join(path.read_text() for path in (REPOSITORY / "include/beeline/c").glob("*.h"))
    declared = set(re.findall(r"\b(beeline_\w+)\([^;]*?\) BEELINE_NOEXCEPT;", text))
    listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[2].partition("@")[0] for line in listed.splitlines()}
    assert len(declared) > 80
    assert exported == declared


def test_the_fortran_module_is_what_the_headers_say() -> None:
    done = subprocess.run([REPOSITORY / "tools/fortran-module", "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
