# SPDX-License-Identifier: Apache-2.0
"""tools/test: which steps run, which failures fail it, and its report of times."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from test_tools import plant

STEPS = """1000000000
20\t3.5\tset-up
535\t900.0\tbuild (default)
"""
NINJA_LOG = """# ninja log v5
0\t23300\t1000000005000000000\ttests/slow.cpp.o\tab
0\t99000\t999999999000000000\tof/an/earlier/run.cpp.o\tcd
"""


def test_the_longest_steps_tests_and_compilations_are_told(tool, tmp_path):
    plant(tmp_path, "build/steps.tsv", STEPS)
    plant(tmp_path, "build/.ninja_log", NINJA_LOG)
    cases = '<testcase name="t.a" classname="t.a" time="35.4"/><testcase name="b" classname="c" time="0.5"/>'
    plant(tmp_path, "build/ctest.xml", f"<testsuite>{cases}</testsuite>")
    done = tool("longest", tmp_path / "build/steps.tsv", tmp_path / "build", tmp_path / "build-asan")
    assert done.returncode == 0, done.stderr
    said = [line.split(" s ") for line in done.stdout.splitlines() if " s " in line]
    assert [(float(seconds), what.strip()) for seconds, what in said] == [
        (535, "900 core-s  build (default)"), (20, "4 core-s  set-up"),
        (35.4, "build: t.a"), (23.3, "build: tests/slow.cpp.o"), (0.5, "build: c: b"),
    ]  # fmt: skip


COMPILED = "10.0\t1.0\tsrc/a.o\n4.0\t0.5\ttests/unit/b.o\n"


def test_the_budget_of_core_seconds(repository, tmp_path):
    plant(tmp_path, "steps.tsv", "1000000000\n20\t30.0\tbuild (default)\n9\t5.0\tPython tests\n")
    plant(tmp_path, "build/core-seconds.tsv", COMPILED)
    plant(tmp_path, "tools/budget", (repository / "tools/budget").read_text(encoding="utf-8"))

    def run(budget: str) -> subprocess.CompletedProcess[str]:
        plant(tmp_path, "tools/budget.tsv", budget)
        command = [sys.executable, tmp_path / "tools/budget", tmp_path / "steps.tsv", tmp_path / "build"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    within = "# comment\ncompile src\t11\ncompile tests/unit\t5\nlinking and scripts\t20\nPython tests\t5\n"
    done = run(within)
    assert (done.returncode, done.stdout) == (0, "core-seconds, of budget: 35 of 41\n"), done.stderr
    done = run(within.replace("src\t11", "src\t10"))
    assert done.returncode == 0
    assert "compile src: 11 of 10, above its budget (tools/budget.tsv)" in done.stdout
    done = run("compile src\t11\n")
    assert done.returncode == 1
    assert "Python tests: 5 of 0, above its budget" in done.stdout
    assert "more than 2 times the budget" in done.stdout


def test_every_component_of_the_budget_is_one_that_a_run_can_have(repository):
    lines = (repository / "tools/budget.tsv").read_text(encoding="utf-8").splitlines()
    for name in (line.split("\t")[0] for line in lines if not line.startswith("#")):
        if name.startswith("compile "):
            assert (repository / name.removeprefix("compile ")).is_dir() or name == "compile tests/CMakeFiles", name
        else:
            assert name in {"set-up", "set-up of torch", "linking and scripts", *GROUPS}, name


def test_a_compiler_that_is_timed_keeps_its_output_and_status(repository, tmp_path):
    told = tmp_path / "told.tsv"
    command = [repository / "tools/core-seconds", told, "sh", "-c", "echo out; echo err >&2; exit 3", "-o", "a.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    user, system, output = told.read_text(encoding="utf-8").rstrip("\n").split("\t")
    assert float(user) >= 0
    assert float(system) >= 0
    assert output == "a.o"


PASSED = '<testsuite><testcase name="good" classname="good" time="1.5" status="run"/></testsuite>'
FAKE_CTEST = """#!/usr/bin/env bash
sleep 0.3
while [ $# -gt 0 ]; do
  case $1 in --output-junit) report=$2 ;; --test-dir) folder=$2 ;; -N) exit ;; -[RE]) echo "$folder: $*" >>parts ;; esac
  shift
done
if [ "${folder%/asan-*}" = "${FAILING:-}" ]; then exit 8; fi
if [ "${FAILING:-}-$folder" = alone-build ] && [ ! -e build/pytest.xml ]; then exit 8; fi
echo '{}' >"$report"
"""
FAKE_PYTHON = """#!/usr/bin/env bash
if [ "${{FAILING:-}}" = pytest ]; then exit 1; fi
if [ "$2" = compileall ]; then exit; fi
if [ "$1" = -c ]; then [ -e torch ] || exit 1; fi
sleep 0.3
echo '{}' >build/pytest.xml
"""
FAKE_BUILD = """#!/usr/bin/env bash
echo "build ${1:-default}: priority $(nice)"
if [ "${FAILING:-}" = "build ${1:-default}" ]; then exit 1; fi
mkdir -p "build-${1:-x}"
"""


@pytest.fixture
def run_all(repository, tmp_path, monkeypatch):
    """Runs tools/test with stand-ins for set-up, builds and tests; the named stand-ins fail."""
    for name in ("lib.sh", "test", "summary", "longest", "budget", "budget.tsv"):
        plant(tmp_path, f"tools/{name}", (repository / "tools" / name).read_text(encoding="utf-8"))
    plant(tmp_path, "tools/setup", "#!/bin/sh\n")
    plant(tmp_path, "tools/setup-torch", "#!/bin/sh\ntouch torch\n")
    plant(tmp_path, "tools/build", FAKE_BUILD)
    plant(tmp_path, "bin/ctest", FAKE_CTEST.replace("{}", PASSED))
    plant(tmp_path, ".venv/bin/python", FAKE_PYTHON.format(PASSED))
    for name in ("tools/setup", "tools/setup-torch", "tools/build", "bin/ctest", ".venv/bin/python"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.delenv("BEELINE_WITH_TORCH", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def run(failing: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setenv("FAILING", failing)
        command = ["bash", tmp_path / "tools" / "test"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_torch_is_set_up_where_it_is_asked_for(run_all, monkeypatch):
    missing = "Tests with torch were skipped: BEELINE_WITH_TORCH=ON tools/test includes them"
    assert missing in run_all().stdout
    monkeypatch.setenv("BEELINE_WITH_TORCH", "ON")
    done = run_all()
    assert done.returncode == 0, done.stdout + done.stderr
    assert missing not in done.stdout


def test_torch_is_not_fetched_where_the_network_is_forbidden(repository, tmp_path):
    environment = {**os.environ, "BEELINE_OFFLINE": "1", "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [repository / "tools" / "setup-torch"], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    if done.returncode == 0:
        pytest.skip("the python3 on PATH has torch")
    assert "BEELINE_OFFLINE=1 forbids installing" in done.stderr
    assert not list(tmp_path.iterdir())


GROUPS = ("C++ tests", "Python tests", "ThreadSanitizer tests", "AddressSanitizer tests")


def label_of(group: str) -> str:
    """The label of a group's tests, or of the first part of them."""
    return f"{group}, part 1 of 4" if group.startswith("Address") else group


def test_each_of_addresssanitizers_tests_is_in_one_part(run_all, tmp_path):
    done = run_all()
    assert done.returncode == 0, done.stdout + done.stderr
    parts = [line.split() for line in (tmp_path / "parts").read_text(encoding="utf-8").splitlines()]
    assert sorted(folder for folder, *_ in parts) == [f"build-asan/asan-{part}:" for part in range(4)]
    tests = ["conformance_processes_test.a", "collectives_test.b", "newer_ucx.faults", "fault_test.c", "unit_test.d"]
    tests += ["fault_threads_test.e", "conformance_threads_test.f", "gaspi_test.g"]
    for test in tests:
        runs = [bool(re.search(pattern, test)) == (option == "-R") for _, option, pattern in parts]
        assert runs.count(True) == 1, test


def test_every_group_of_tests_runs_and_its_time_is_told(run_all):
    done = run_all()
    assert done.returncode == 0, done.stdout + done.stderr
    for group in GROUPS:
        assert f"{label_of(group)}: 1 passed, 0 failed, 0 skipped" in done.stdout
        assert f" core-s  {group}\n" in done.stdout
    for step in ("set-up", "build (default)", "build (tsan)", "build (asan)"):
        assert f" core-s  {step}\n" in done.stdout
    assert "1.5 s  build: good" in done.stdout
    assert "build tsan: priority 19" in done.stdout


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ("build", "C++ tests: no report"),
        ("pytest", "Python tests: no report"),
        ("build-tsan", "ThreadSanitizer tests: no report"),
        ("build-asan", "AddressSanitizer tests, part 1 of 4: no report"),
        ("build tsan", ""),
        ("build asan", "ThreadSanitizer tests: 1 passed"),
        ("build default", "ThreadSanitizer tests: 1 passed"),
    ],
)
def test_a_group_that_fails_fails_the_run(run_all, failing, said):
    done = run_all(failing)
    assert done.returncode == 1
    assert said in done.stdout
    assert "all passed" not in done.stdout
    assert [group for group in GROUPS if f"{label_of(group)}: 1 passed" in done.stdout]  # the others go on
    assert "some failed" in done.stderr


def test_tests_of_cpp_follow_those_of_python_on_gpus(run_all, tmp_path):
    plant(tmp_path, "bin/nvidia-smi", "#!/bin/sh\n")
    (tmp_path / "bin/nvidia-smi").chmod(0o755)
    done = run_all("alone")
    assert done.returncode == 0, done.stdout


def test_python_tests_do_not_run_without_the_torch_that_was_asked_for(run_all, tmp_path, monkeypatch):
    monkeypatch.setenv("BEELINE_WITH_TORCH", "ON")
    plant(tmp_path, "tools/setup-torch", "#!/bin/sh\nsleep 0.3\necho no network >&2\nexit 1\n")
    done = run_all()
    assert done.returncode == 1
    assert "no network" in done.stderr
    assert "C++ tests: 1 passed" in done.stdout
    assert "Python tests" not in done.stdout


@pytest.mark.parametrize("gpu", ["", "bin/nvidia-smi"])
def test_what_is_tested_longest_is_built_first(run_all, tmp_path, gpu):
    if gpu:
        plant(tmp_path, gpu, "#!/bin/sh\n")
        (tmp_path / gpu).chmod(0o755)
    done = run_all()
    order = re.findall(r"^build (default|asan|tsan): priority", done.stdout, re.MULTILINE)
    assert order[:3] == ["default", "asan", "tsan"], done.stdout
