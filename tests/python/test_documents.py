# SPDX-License-Identifier: Apache-2.0
"""What documents say about the tree: tests that the memory model names."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_memory_model_names_tests_that_exist(repository: Path) -> None:
    text = (repository / "docs/memory-model.md").read_text(encoding="utf-8")
    litmus = (repository / "tests/litmus/litmus_test.cpp").read_text(encoding="utf-8")
    cases = "".join(path.read_text(encoding="utf-8") for path in (repository / "tests/conformance").glob("*_cases.cpp"))
    named = set(re.findall(r"Litmus\.(\w+)", text))
    assert named == set(re.findall(r"TEST_P\(Litmus, (\w+)\)", litmus))
    where_tests_stand = re.findall(r"\[([^\]]*)\](?!\()", text) + re.findall(r"\| ([^|]*) \|$", text, re.MULTILINE)
    names = {name for place in where_tests_stand for name in re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b", place)}
    assert names
    assert {name for name in names if f'{{"{name}", ' not in cases} == set()
