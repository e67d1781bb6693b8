# SPDX-License-Identifier: Apache-2.0
"""What documents say about the tree: tests that the memory model names, and the README's program in Python."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_python_program_of_the_readme_runs(repository: Path, tmp_path: Path, ranks: int) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", (repository / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    launcher = str(repository / "build/bin/beeline-launch")
    done = subprocess.run(
        [launcher, "-n", str(ranks), "--device", "cpu", "--", sys.executable, str(program)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_memory_model_names_tests_that_exist(repository: Path) -> None:
    text = (repository / "docs/memory-model.md").read_text(encoding="utf-8")
    litmus = (repository / "tests/litmus/litmus_test.cpp").read_text(encoding="utf-8")
    cases = "".join(path.read_text(encoding="utf-8") for path in (repository / "tests/conformance").glob("*_cases.cpp"))
    named = set(re.findall(r"Litmus\.(\w+)", text))
    assert named == set(re.findall(r"TEST_P\(Litmus, (\w+)\)", litmus))
    where_tests_stand = re.findall(r"\[([^\]]*)\](?!\()", text) + re.findall(r"\| ([^|]*) \|$", text, re.MULTILINE)
    names = {name for place in where_tests_stand for name in re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b", place)}
    assert names
    assert names <= set(re.findall(r"BEELINE_CASE\(\w+, (\w+), ", cases))
