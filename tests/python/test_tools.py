# SPDX-License-Identifier: Apache-2.0
"""The project's own checks find the errors that they are meant to find."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CPP = "// SPDX-License-Identifier: Apache-2.0\n"


def plant(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", ["layers", "spdx", "style", "lists", "names", "format", "ruff", "spelling"])
def test_the_project_passes(tool, name):
    done = tool("check", name)
    if "skipped: " in done.stdout:
        pytest.skip(done.stdout.split("skipped: ")[1].strip())
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("path", "include", "passes"),
    [
        ("include/beeline/core/a.hpp", '"beeline/runtime/b.hpp"', False),
        ("include/beeline/device/a.hpp", '"beeline/memory/b.hpp"', False),
        ("include/beeline/device/impl/a.hpp", '"beeline/runtime/b.hpp"', False),
        ("include/beeline/transport/a.hpp", "<beeline/host/b.hpp>", False),
        ("src/memory/a.cpp", '"beeline/transport/b.hpp"', False),
        ("src/memory/a.cpp", '"transport/b.hpp"', False),
        ("src/memory/linux/a.cpp", '"../../host/b.hpp"', False),
        ("src/core/a.cpp", '"../host/b.hpp"', False),
        ("src/host/a.cpp", '"beeline/elsewhere/b.hpp"', False),
        ("src/elsewhere/a.cpp", '"beeline/core/b.hpp"', False),
        ("include/beeline/device/a.hpp", '"beeline/core/b.hpp"', True),
        ("include/beeline/device/a.hpp", "<atomic>", True),
        ("include/beeline/host/a.hpp", '"beeline/energy/b.hpp"', True),
        ("src/memory/a.cpp", '"beeline/memory/b.hpp"', True),
        ("src/memory/a.cpp", '"memory/b.hpp"', True),
        ("src/memory/a.cpp", '"b.hpp"', True),
        ("apps/himeno/a.cpp", '"beeline/host/b.hpp"', True),
        ("tests/unit/a.cpp", '"host/b.hpp"', True),
    ],
)
def test_includes_go_along_the_layers(tool, tmp_path, path, include, passes):
    plant(tmp_path, path, f"{CPP}#include {include}\n")
    done = tool("check", "--root", tmp_path, "layers")
    assert done.returncode == (0 if passes else 1), done.stdout
    assert passes or f"layers: {path}" in done.stdout


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/a.cpp", "int a;\n"),
        ("src/a.cpp", "\n" + CPP),
        ("python/a.py", '"""No licence."""\n'),
        ("CMakeLists.txt", "project(a)\n"),
        ("tools/a", "#!/bin/sh\ntrue\n"),
    ],
)
def test_missing_licence_is_found(tool, tmp_path, path, text):
    plant(tmp_path, path, text)
    done = tool("check", "--root", tmp_path, "spdx")
    assert done.returncode == 1
    assert f"spdx: {path}:1: first line must be" in done.stdout


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("src/a.cpp", "x" * 121, ":1: 121 columns"),
        ("src/a.cpp", "\n" * 600, ": 600 lines"),
        ("src/a.cpp", "// TO" + "DO: later", ":1: TO" + "DO left over"),
        ("src/utils.cpp", "", ": say what it is for"),
        ("src/a.cpp", 'asm volatile("membar.sys;");', ":1: inline assembly belongs in"),
        ("src/a.cpp", "#if defined(__CUDACC__)", ":1: a compiler's name belongs in"),
        ("src/a.cpp", "#include <fstream>", ":1: iostreams, locales or regex"),
        ("src/util/a.cpp", "", ": say what it is for"),
        ("src/a.cpp", "BEELINE_HOST_DEVICE void f();\nint i = std::countr_zero(x);", ":2: wrong in kernels"),
    ],
)
def test_bad_style_is_found(tool, tmp_path, path, text, problem):
    plant(tmp_path, path, text)
    done = tool("check", "--root", tmp_path, "style")
    assert done.returncode == 1
    assert f"style: {path}{problem}" in done.stdout


def test_a_schedule_that_is_not_listed_is_found(tool, tmp_path):
    folder = "include/beeline/collectives/impl/schedule"
    for name in ("b", "a"):
        plant(tmp_path, f"{folder}/{name}.hpp", "template <>\nstruct PacketSchedule<Schedule::x> {};\n")
    plant(tmp_path, f"{folder}/tree.hpp", "struct Tree {};\n")
    assert f"lists: {folder}/in_packets.hpp: not what" in tool("check", "--root", tmp_path, "lists").stdout
    assert tool("check", "--root", tmp_path, "--fix", "lists").returncode == 0
    listed = (tmp_path / folder / "in_packets.hpp").read_text()
    assert re.findall(r"schedule/(\w+)", listed) == ["a", "b"]
    assert tool("check", "--root", tmp_path, "lists").returncode == 0
    (tmp_path / folder / "a.hpp").unlink()
    assert tool("check", "--root", tmp_path, "lists").returncode == 1


def test_a_name_that_two_sources_of_a_batch_define_is_found(tool, tmp_path):
    plant(tmp_path, "src/host/a.cpp", "namespace b {\nnamespace {\nstruct Shape { int x; };\nusing Size = int;\n}\n}\n")
    plant(tmp_path, "src/memory/c.cpp", "namespace b {\nnamespace {\nvoid f(int x) {}\nusing Size = int;\n}\n}\n")
    plant(tmp_path, "src/memory/d.cpp", "namespace b {\nnamespace {\nvoid f(char x) {}\n}\n}\n")
    done = tool("check", "--root", tmp_path, "names")
    if "skipped: " in done.stdout:
        pytest.skip(done.stdout.split("skipped: ")[1].strip())
    assert done.returncode == 0
    plant(tmp_path, "src/memory/d.cpp", "namespace b {\nnamespace {\nenum class Shape { x };\nvoid f(int y) {}\n}\n}\n")
    assert [line.split(";")[0] for line in tool("check", "--root", tmp_path, "names").stdout.splitlines()[:-1]] == [
        "names: src/host/a.cpp, src/memory/d.cpp: each defines b::(anonymous)::Shape",
        "names: src/memory/c.cpp, src/memory/d.cpp: each defines b::(anonymous)::f(int)",
    ]


def test_unformatted_files_are_found(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    plant(tmp_path, "a.cpp", "int  a;\nint  b;\n")
    plant(tmp_path, "good.cpp", "int a;\n")
    plant(tmp_path, "z.hpp", "int  c;\n")
    done = tool("check", "--root", tmp_path, "format")
    if "skipped: " in done.stdout:
        pytest.skip(done.stdout.split("skipped: ")[1].strip())
    assert [line.split(" formatted")[0] for line in done.stdout.splitlines()[:-1]] == [
        "format: a.cpp: not", "format: z.hpp: not"
    ]  # fmt: skip
    assert done.returncode == 1


def test_a_checkout_is_checked_where_git_is_missing(tool, tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    plant(tmp_path, "src/a.cpp", "int a;\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "spdx: src/a.cpp:1" in tool("check", "--root", tmp_path, "spdx").stdout


def test_unknown_check_is_refused_with_the_list(tool):
    done = tool("check", "everything")
    assert done.returncode == 2
    assert "known: layers, spdx, style" in done.stderr


DOCUMENT = """
```cpp
int fragment();
```

```cpp
// example: hello
int main() {}
```

```cpp
// example: ring, 4 ranks
int main() { return 0; }
```
"""


def test_examples_are_extracted(tool, tmp_path):
    plant(tmp_path, "README.md", DOCUMENT)
    done = tool("examples", tmp_path / "out", tmp_path / "README.md")
    assert done.returncode == 0
    assert done.stdout == "hello 2\nring 4\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["hello.cpp", "ring.cpp"]
    assert (tmp_path / "out" / "ring.cpp").read_text() == "// example: ring, 4 ranks\nint main() { return 0; }\n"


def test_unchanged_example_keeps_its_time(tool, tmp_path):
    plant(tmp_path, "README.md", DOCUMENT)
    times = []
    for _ in range(2):
        tool("examples", tmp_path / "out", tmp_path / "README.md")
        times.append((tmp_path / "out" / "hello.cpp").stat().st_mtime_ns)
    assert times[0] == times[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```cpp\n// example: Two Words\n```\n", "write `// example: NAME`"),
        (DOCUMENT + DOCUMENT, "two examples are called hello"),
    ],
)
def test_bad_example_is_refused(tool, tmp_path, text, problem):
    plant(tmp_path, "a.md", text)
    done = tool("examples", tmp_path / "out", tmp_path / "a.md")
    assert done.returncode == 1
    assert problem in done.stderr


REPORT = """<testsuite>
<testcase name="good" classname="t" status="run"/>
<testcase name="one" classname="t" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION"/>
<system-out>a.cpp:5: Skipped
no GPU

[  SKIPPED ] t.one</system-out></testcase>
<testcase name="two" classname="t"><skipped message="no driver"/></testcase>
BAD</testsuite>"""


def test_summary_counts_and_gives_reasons(tool, tmp_path):
    plant(tmp_path, "a.xml", REPORT.replace("BAD", ""))
    done = tool("summary", "--json", tmp_path / "a.json", "--about", "1 GPU", f"unit={tmp_path}/a.xml")
    assert done.returncode == 0
    assert done.stdout == "unit: 1 passed, 0 failed, 2 skipped\n  1 skipped: no GPU\n  1 skipped: no driver\n"
    kept = json.loads((tmp_path / "a.json").read_text())
    assert kept["about"] == "1 GPU"
    assert kept["tests"]["unit"] == {"passed": 1, "failed": [], "skipped": {"no GPU": 1, "no driver": 1}}


def test_summary_fails_with_what_a_failed_test_said(tool, tmp_path):
    said = '<failure message="x"/><system-out>boom</system-out>'
    bad = f'<testcase name="bad" classname="t" status="fail">{said}</testcase>'
    plant(tmp_path, "a.xml", REPORT.replace("BAD", bad))
    done = tool("summary", f"unit={tmp_path}/a.xml")
    assert done.returncode == 1
    assert "FAILED t: bad" in done.stdout
    assert "boom" in done.stdout


@pytest.mark.parametrize("title", ["WARNING: ThreadSanitizer: data race", "==7==ERROR: AddressSanitizer: heap"])
def test_summary_shows_the_beginning_of_a_sanitizers_report_and_its_sum(tool, tmp_path, title):
    frames = [f"#{frame} somewhere" for frame in range(100)]
    text = "\n".join(["passed"] * 99 + [f"{title} (pid=7)", *frames, "SUMMARY: race in f", "end"])
    said = f"<system-out>{text}</system-out>"
    bad = f'<testcase name="bad" classname="t" status="fail"><failure message="x"/>{said}</testcase>'
    plant(tmp_path, "a.xml", REPORT.replace("BAD", bad))
    lines = tool("summary", f"unit={tmp_path}/a.xml").stdout.splitlines()
    begin = lines.index(f"{title} (pid=7)")
    assert lines[begin - 2 : begin] == ["FAILED t: bad", "x"]
    assert lines[begin + 59 : begin + 62] == ["#58 somewhere", "... 43 lines more", "SUMMARY: race in f"]
    assert "end" not in lines
    assert "passed" not in lines


SUITE_OF_A_PROGRAM = """<testsuites><testsuite name="threads_2">
<testcase name="puts" status="run" result="completed" classname="threads_2"/>
<testcase name="gets" status="run" result="skipped" classname="threads_2">
<skipped message="/a/suite.cpp:95&#x0A;one rank only"/></testcase>
BAD</testsuite></testsuites>"""


@pytest.mark.parametrize("bad_case", [False, True])
@pytest.mark.parametrize("bad_program", [False, True])
def test_summary_counts_the_cases_of_a_suite(tool, tmp_path, bad_case, bad_program):
    status = 'status="fail"><failure message=""/>' if bad_program else 'status="run">'
    test = f'<testcase name="p.threads_2" classname="p" {status}<system-out>all that it said</system-out></testcase>'
    plant(tmp_path, "a.xml", f"<testsuite>{test}</testsuite>")
    failure = (
        '<testcase name="bad" status="run" classname="threads_2"><failure message="rank 1 of 2: boom"/></testcase>'
    )
    plant(tmp_path, "suites/p.threads_2.xml", SUITE_OF_A_PROGRAM.replace("BAD", failure if bad_case else ""))
    done = tool("summary", f"unit={tmp_path}/a.xml")
    assert (
        f"unit: 1 passed, {int(bad_case or bad_program)} failed, 1 skipped\n  1 skipped: one rank only" in done.stdout
    )
    assert done.returncode == (1 if bad_case or bad_program else 0)
    assert ("FAILED p.threads_2: bad\nrank 1 of 2: boom\nall that it said" in done.stdout) == bad_case
    assert ("FAILED p: p.threads_2\nall that it said" in done.stdout) == (bad_program and not bad_case)


@pytest.mark.parametrize("text", [None, "<testsuite/>"])
def test_summary_fails_without_tests(tool, tmp_path, text):
    if text is not None:
        plant(tmp_path, "a.xml", text)
    assert tool("summary", f"unit={tmp_path}/a.xml").returncode == 1


def test_the_reference_is_what_the_headers_say(tool):
    done = tool("reference", "--check")
    assert done.returncode == 0, done.stderr


HEADER = """namespace beeline {
/// Adds.
int add(int a, int b = 2);
namespace detail {
int hidden();
}
/// Holds.
class Box {
  int inside;

 public:
  int size() const { return 1; }
};
}
"""


@pytest.fixture
def small_tree(repository, tmp_path):
    """A tree with one public header and this package's Python files."""
    plant(tmp_path, "include/beeline/beeline.hpp", '#include "beeline/core/a.hpp"\n')
    plant(tmp_path, "include/beeline/core/a.hpp", HEADER)
    for name in ("_beeline.pyi", "library.py", "errors.py", "energy.py", "energy_record.py", "torch_backend.py"):
        plant(tmp_path, f"python/beeline/{name}", (repository / "python/beeline" / name).read_text(encoding="utf-8"))
    (tmp_path / "docs").mkdir()
    return tmp_path


def test_a_changed_header_makes_the_reference_stale(tool, small_tree):
    header, document = small_tree / "include/beeline/core/a.hpp", small_tree / "docs/reference.md"
    root = ("--root", str(small_tree))
    assert tool("reference", "--check", *root).returncode == 1
    assert tool("reference", *root).returncode == 0
    written = document.read_text(encoding="utf-8")
    for text in ("- `int add(int a, int b = 2)`: Adds.\n", "### Box", "- `int size() const`"):
        assert text in written
    for text in ("hidden", "inside"):
        assert text not in written
    assert tool("reference", "--check", *root).returncode == 0
    header.write_text(HEADER.replace("b = 2", "b = 3"), encoding="utf-8")
    stale = tool("reference", "--check", *root)
    assert stale.returncode == 1
    assert "run tools/reference" in stale.stderr


def test_a_changed_docstring_makes_the_reference_of_python_stale(tool, small_tree):
    root = ("--root", str(small_tree))
    assert tool("reference", *root).returncode == 0
    library = small_tree / "python/beeline/library.py"
    before = library.read_text(encoding="utf-8")
    library.write_text(before.replace("Calls `function(world)`", "Starts `function(world)`"), encoding="utf-8")
    assert "docs/reference-python.md is not what the sources say" in tool("reference", "--check", *root).stderr
    library.write_text(re.sub(r'    """Calls.*?"""\n', "    pass\n", before, flags=re.DOTALL), encoding="utf-8")
    assert "beeline: run has no docstring" in tool("reference", "--check", *root).stderr


def test_a_header_without_a_program_is_found(tool, small_tree):
    plant(small_tree, "include/beeline/beeline.hpp", '#include "beeline/elsewhere/a.hpp"\n')
    plant(small_tree, "include/beeline/elsewhere/a.hpp", HEADER)
    assert "beeline/elsewhere/a.hpp has no program" in tool("reference", "--root", str(small_tree)).stderr


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def lines_of(folder: Path, *revisions: str) -> list[dict]:
    command = [sys.executable, folder / "tools" / "lines", "--json", *revisions]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_lines_counts_code_without_comments_and_tests_apart(repository, tmp_path):
    pytest.importorskip("pygount")
    plant(tmp_path, "tools/lines", (repository / "tools" / "lines").read_text(encoding="utf-8"))
    plant(tmp_path, "src/a.cpp", f"{CPP}\n/* a\n   comment */\nint a;\nint b;  // of a\n")
    plant(tmp_path, "python/c.py", '"""A docstring."""\n\n# why\nc = 1\n')
    plant(tmp_path, "tests/d.cpp", "int d;\n")
    plant(tmp_path, "docs/e.md", "text\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    plant(tmp_path, "python/c.py", "c = 1\nf = 2\n")
    first, now = *lines_of(tmp_path, "HEAD"), *lines_of(tmp_path)
    assert first["tests"] == 1
    assert {part: first["folders"][part] for part in ("library", "python")} == {"library": 2, "python": 1}
    assert first["code"] == first["folders"]["library"] + first["folders"]["python"] + first["folders"]["tools"]
    assert now["code"] == first["code"] + 1


FAKE_CUOBJDUMP = """#!/bin/sh
case $1 in
  -xelf) cp "$3" image.1.sm_90a.cubin ;;
  *) printf ' Function kernel:\\n  REG:%s STACK:16 SHARED:0\\n' "$REGISTERS" ;;
esac
"""


def test_machine_code_compares_kernels(repository, tmp_path):
    plant(tmp_path, "cuobjdump", FAKE_CUOBJDUMP)
    (tmp_path / "cuobjdump").chmod(0o755)
    plant(tmp_path, "kernel.c", '__attribute__((section(".text.kernel"))) int f(int a) { return a + 1; }\n')
    subprocess.run(["g++", "-xc", "-c", "kernel.c", "-o", "kernel.o"], cwd=tmp_path, check=True)

    def machine_code(registers: int, *arguments: object) -> subprocess.CompletedProcess:
        path = f"{tmp_path}:{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, repository / "tools" / "machine-code", *map(str, arguments), tmp_path / "kernel.o"],
            env={**os.environ, "PATH": path, "REGISTERS": str(registers)}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    written = machine_code(8, "--json")
    assert written.returncode == 0, written.stderr
    kernel = json.loads(written.stdout)["sm_90a kernel"]
    assert (kernel["registers"], kernel["stack_bytes"]) == (8, 16)
    assert kernel["code_bytes"] > 0
    plant(tmp_path, "before.json", written.stdout)
    assert machine_code(8, "--against", tmp_path / "before.json").returncode == 0
    worse = machine_code(9, "--against", tmp_path / "before.json")
    assert worse.returncode == 1
    assert "registers 8 -> 9: sm_90a kernel" in worse.stdout
    plant(tmp_path, "before.json", written.stdout.replace("kernel", "other_name"))
    renamed = machine_code(8, "--against", tmp_path / "before.json")
    assert renamed.returncode == 0
    assert "1 with the same instructions (1 renamed)" in renamed.stdout


def test_compile_times_are_told(tool, tmp_path):
    plant(tmp_path, "user.cpp", f'{CPP}#include "beeline/core/status.hpp"\n')
    done = tool("compile-times", tmp_path / "user.cpp")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^g\+\+ +\d+\.\d s  user\.cpp$", done.stdout, re.MULTILINE)
    plant(tmp_path, "user.cpp", "int")
    done = tool("compile-times", tmp_path / "user.cpp")
    assert done.returncode == 1
    assert "g++ does not compile" in done.stderr


@pytest.mark.parametrize(
    ("unit", "figures", "verdict"),
    [
        ("us", ("1.0", "1.01"), "equal"),
        ("us", ("1.0", "1.5"), "worse"),
        ("us", ("1.5", "1.0"), "better"),
        ("GB/s", ("1.0", "1.5"), "better"),
        ("GB/s", ("1.5", "1.0"), "worse"),
    ],
)
def test_two_builds_are_compared(tool, tmp_path, unit, figures, verdict):
    for build, figure in zip(("old", "new"), figures, strict=True):
        result = {
            "event": "result",
            "operation": "put",
            "method": "a",
            "bytes": 8,
            "unit": unit,
            "median": float(figure),
        }
        said = [json.dumps(line) for line in ({"event": "environment", "commit": build}, result)]
        plant(tmp_path, f"{build}/bin/beeline-launch", f"#!/bin/sh\necho '{said[0]}\n{said[1]}'\n")
        (tmp_path / build / "bin/beeline-launch").chmod(0o755)
    done = tool(
        "compare", tmp_path / "old", tmp_path / "new", "--output", tmp_path / "rows", "--", "beeline-bench", "put"
    )
    assert done.returncode == 0, done.stderr
    environment, row = (json.loads(line) for line in (tmp_path / "rows").read_text().splitlines())
    assert (environment["commit"], environment["old_commit"]) == ("new", "old")
    assert row["verdict"] == verdict
    assert done.stdout.startswith(verdict)
