# SPDX-License-Identifier: Apache-2.0
"""What documents say about the tree (files, tests and public names), and the README's Python program."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from beeline.commands import bench
from conftest import skip_without_ucx
from rich.console import Console


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("document", ["README.md", "docs/tutorial.md", "docs/questions.md"])
def test_the_python_program_runs(repository: Path, tmp_path: Path, document: str, ranks: int) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", (repository / document).read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    launcher = str(repository / "build/bin/beeline-launch")
    done = subprocess.run(
        [launcher, "-n", str(ranks), "--device", "cpu", "--", sys.executable, str(program)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def run_on_two_nodes(repository: Path, program: str, *arguments: str) -> list[str]:
    """The output of a built program on four host ranks."""
    path = repository / "build/bin" / program
    if not path.exists():
        pytest.skip(f"build/bin has no {path.name}")
    launcher = str(repository / "build/bin/beeline-launch")
    done = subprocess.run(
        [launcher, "-n", "4", "--device", "cpu", "--split-nodes", "2", "--", str(path), *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    skip_without_ucx(done.stderr)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "program", ["hello", "symmetric", "neighbour", "ping_pong", "largest", "team_sum", "on_streams", "ring"]
)
def test_the_programs_of_the_tutorial_run_on_two_nodes(repository: Path, program: str) -> None:
    assert len(run_on_two_nodes(repository, f"example_{program}")) == (1 if program == "ping_pong" else 4)


HIMENO = "host_staged,host_copy_engine,stream_kernels,in_kernel,block_signals,persistent"


@pytest.mark.parametrize(
    ("program", "arguments", "methods"),
    [
        ("ring-reduction", ["--size", "64K", "--reductions", "3"], 9),
        ("jacobi", ["--size", "32", "--iterations", "5"], 8),
        ("himeno", ["--size", "20x20x20", "--iterations", "3", "--method", HIMENO], 6),
        ("random-access", ["--words", "1K", "--divisor", "8", "--method", "put,task,atomics"], 3),
        ("spin-glass", ["--size", "4x4x8", "--sweeps", "4"], 4),
        ("tree-search", ["--nodes", "20000", "--searches", "2", "--method", "task"], 1),
        ("breadth-first", ["--scale", "10", "--roots", "2"], 4),
    ],
)
def test_the_programs_of_apps_are_verified_on_two_nodes(repository: Path, program, arguments, methods) -> None:
    """By all methods without loads and stores to other ranks: not global_address_space, nor bulk of tree search."""
    lines = [json.loads(line.partition(" ")[2]) for line in run_on_two_nodes(repository, program, *arguments)]
    results = [line for line in lines if line["event"] == "result"]
    assert len({result["method"] for result in results}) == methods
    assert all(result["verified"] for result in results)


def test_the_memory_model_names_tests_that_exist(repository: Path) -> None:
    text = (repository / "docs/memory-model.md").read_text(encoding="utf-8")
    litmus = (repository / "tests/litmus/litmus_test.cpp").read_text(encoding="utf-8")
    cases = "".join(path.read_text(encoding="utf-8") for path in (repository / "tests/conformance").glob("*_cases.cpp"))
    named = set(re.findall(r"Litmus\.(\w+)", text))
    assert named == set(re.findall(r"TEST_P\(Litmus, (\w+)\)", litmus))
    where_tests_stand = re.findall(r"\[([^\]]*)\](?!\()", text) + re.findall(r"\| ([^|]*) \|$", text, re.MULTILINE)
    names = {name for place in where_tests_stand for name in re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b", place)}
    assert names
    assert names <= set(re.findall(r"(?:BEELINE_CASE\(\w+, |POST_CASE\()(\w+), ", cases))


CHANGES = (
    "algorithm",
    "collective",
    "transport",
    "engine",
    "adapter",
    "verb",
    "method",
    "bench case",
    "command",
    "function of the C interface",
    "launcher",
    "Generated files",
)


def test_contributing_follows_changes_that_are_in_the_tree(repository: Path) -> None:
    text = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("## What a change touches\n")
    sections = re.split(r"^### ", rest.partition("\n## ")[0], flags=re.MULTILINE)[1:]
    titles = [section.partition("\n")[0] for section in sections]
    assert [kind for kind, title in zip(CHANGES, titles, strict=True) if kind not in title] == []
    lost = []
    for section in sections:
        rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", section, re.MULTILINE)
        assert len(rows) == section.count("\n| `"), f"a row names no file, or no text of it: {section}"
        for name, registration in rows:
            file = repository / name
            if not file.exists() or registration not in file.read_text(encoding="utf-8"):
                lost.append(f"{name}: {registration}")
    assert lost == []


DECLARED = re.compile(
    r"^(?:template <.*> )?(?:struct|(?:enum )?class)(?: alignas\(\w+\))? (?P<type>\w+)(?: final)?(?: :.*)? ?\{"
    r"|^(?!#|using|static_assert|namespace|friend)[A-Za-z\[].*?\b(?<!::)(?P<function>\w+)\("
    r"|^(?:inline )?constexpr [\w:<> *]+?(?P<constant>\w+)(?: =|\[|\{)"
    r"|^using (?P<alias>\w+) ="
)
# Headers that public headers include, but whose names no program uses.
OF_THE_LIBRARY = {
    "core/command_protocol.hpp", "core/launcher.hpp", "core/macros.hpp", "core/transfer.hpp", "host/paths.hpp",
    "transports/transports.hpp", "runtime/bootstrap.hpp", "runtime/file_descriptor.hpp", "runtime/rendezvous.hpp",
    "selection/preferences.hpp",
}  # fmt: skip


def names_at_namespace_scope(header: str) -> set[str]:
    """Names declared by lines without indentation outside the namespace detail; found without tools/reference."""
    public = re.sub(r"^namespace detail.*?^\}  // namespace detail", "", header, flags=re.DOTALL | re.MULTILINE)
    found = (DECLARED.match(re.sub(r"^(BEELINE_\w+ )+", "", line)) for line in public.splitlines())
    return {name for match in found if match for name in match.groups() if name}


def test_the_reference_has_each_name_of_the_public_headers(repository: Path) -> None:
    reference = (repository / "docs/reference.md").read_text(encoding="utf-8")
    folder = repository / "include/beeline"
    headers = {str(path.relative_to(folder)) for path in folder.rglob("*.hpp") if "impl" not in path.parts}
    assert headers >= OF_THE_LIBRARY
    headers -= OF_THE_LIBRARY | {"beeline.hpp", "core/layout.hpp"}  # of the last, only WaitRecord is public
    assert {h for h in headers if f"\n## beeline/{h}\n" not in reference} == set()
    declared = {h: names_at_namespace_scope((folder / h).read_text(encoding="utf-8")) for h in headers}
    assert len(set().union(*declared.values())) > 100
    missing = {h: sorted(n for n in names if not re.search(rf"\b{n}\b", reference)) for h, names in declared.items()}
    assert {header: names for header, names in missing.items() if names} == {}


def test_each_header_of_the_reference_names_a_document_with_a_program(repository: Path) -> None:
    reference = (repository / "docs/reference.md").read_text(encoding="utf-8")
    headers = re.findall(r"^## beeline/\S+", reference, re.MULTILINE)
    links = re.findall(r"^Example: \[[^]]*\]\((\S+?)\)\.$", reference, re.MULTILINE)
    assert len(links) == len(headers) > 50
    for link in set(links):
        name, _, anchor = link.partition("#")
        text = (repository / "docs" / name).read_text(encoding="utf-8")
        sections = re.split(r"^#+ ", text, flags=re.MULTILINE)[1:] if anchor else [text]
        titled = {re.sub(r"[^\w\- ]", "", s.partition("\n")[0].lower()).replace(" ", "-"): s for s in sections}
        assert "// example: " in (titled[anchor] if anchor else text), link


def test_the_drawings_are_what_their_scripts_draw(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(repository / "tools/drawings"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_each_picture_has_a_form_for_dark_pages(repository: Path) -> None:
    pictures = list((repository / "docs/pictures").glob("*.svg"))
    assert len(pictures) > 10
    assert [each.name for each in pictures if "prefers-color-scheme" not in each.read_text(encoding="utf-8")] == []


def documents(repository: Path) -> list[Path]:
    top = [repository / "README.md", repository / "CONTRIBUTING.md"]
    return [*top, *sorted((repository / "docs").glob("*.md")), *sorted(repository.glob("*/README.md")),
            *sorted(repository.glob("apps/*/README.md"))]  # fmt: skip


def anchors(document: Path) -> set[str]:
    """The anchors by which links on GitHub name a document's headings."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_documents_lead_somewhere(repository: Path) -> None:
    lost = []
    for document in documents(repository):
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            path = (document.parent / name) if name else document
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
                lost.append(f"{document.relative_to(repository)}: {target}")
    assert lost == []


def test_calls_beside_those_of_other_libraries_are_public_names(repository: Path) -> None:
    text = (repository / "docs/coming_from.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*) \| (.*) \|$", text, re.MULTILINE)
    named = {name for _, ours in rows for name in re.findall(r"`(\w+)`", ours)}
    assert len(named) > 30
    headers = repository / "include/beeline"
    public = (headers / "beeline.hpp").read_text(encoding="utf-8")
    files = [headers.parent / name for name in re.findall(r'"(beeline/\S+)"', public)]
    files += [headers / "host/launch_options.hpp", headers / "runtime/health.hpp"]
    code = [re.sub(r"//.*", "", file.read_text(encoding="utf-8")) for file in files]
    assert {name for name in named if not any(re.search(rf"\b{name}\b", text) for text in code)} == set()


RECORD = re.compile(r"20\d\d-\d\d-\d\d_[A-Za-z0-9]+_[A-Za-z0-9-]+")
NUMBER = r"[×~]? ?-?\d[\d,.]*"
FIGURE = re.compile(rf"{NUMBER}(?: ?(?:/|:|of) ?{NUMBER})*(?: (?:µs|ms|GB/s|million/s|%|W))?(?: \(.*\)|[,:] .*)?")


def is_table_of_figures(block: str) -> bool:
    """Whether at least half of the filled cells below a table's header, without column 1, are measured figures."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")[1:]] for line in block.splitlines()[2:]]
    cells = [cell for row in rows for cell in row if cell not in ("", "–")]
    return block.startswith("|") and len(cells) >= 2 and 2 * sum(map(bool, map(FIGURE.fullmatch, cells))) >= len(cells)


def test_records_are_those_that_documents_name(repository: Path) -> None:
    records = {path.stem for path in (repository / "bench/records").glob("*.jsonl")}
    named = {name for document in documents(repository) for name in RECORD.findall(document.read_text("utf-8"))}
    notes = [path.read_text("utf-8") for path in (repository / "bench/records").glob("[!R]*.md")]
    named |= {name for text in notes for name in RECORD.findall(text)}
    assert len(named) > 40
    assert named - {"2030-01-31_4xH200_latency"} == records  # an example of a name


def test_each_table_of_figures_is_in_a_section_that_names_its_record(repository: Path) -> None:
    tables, without = 0, []
    for document in documents(repository):
        has_record = False
        for block in re.split(r"\n\s*\n", document.read_text(encoding="utf-8")):
            has_record = (has_record and not block.startswith("#")) or RECORD.search(block) is not None
            if is_table_of_figures(block):
                tables += 1
                without += [] if has_record else [f"{document.relative_to(repository)}: {block.splitlines()[0]}"]
    assert tables > 25
    assert without == []


@pytest.mark.parametrize("document", ["README.md", "docs/tutorial.md"])
def test_what_is_built_for_an_installation_is_what_it_installs(repository: Path, document: str) -> None:
    (built,) = re.findall(r"tools/build default ([\w -]*beeline_c[\w -]*)", (repository / document).read_text("utf-8"))
    rules = "".join(path.read_text("utf-8") for path in (repository / "cmake").glob("BeelineInstall*.cmake"))
    installed = re.findall(r"install\(TARGETS ([\w ]+?) EXPORT [^)]*COMPONENT library\)", rules)
    assert installed
    # beeline needs beeline_base, so that it is built, too
    assert {name for line in installed for name in line.split()} - {"beeline_base"} <= set(built.split())


def test_the_output_in_the_readme_is_that_of_its_record(repository: Path) -> None:
    text = (repository / "README.md").read_text(encoding="utf-8")
    ((record, block),) = re.findall(r"\(`(bench/records/\S+)`\):\n\n```\n(message, us.*?\n)```", text, re.DOTALL)
    lines = [json.loads(line) for line in (repository / record).read_text(encoding="utf-8").splitlines()]
    methods = re.findall(r"^ ([a-z_]+(?:/\w+)+(?: \(\w+\))?) {2,}", block, re.MULTILINE)
    assert len(methods) > 5
    shown = [
        line
        for line in lines
        if line.get("event") == "result" and line["operation"] == "message"
        and bench.row_of(line) in methods and line["bytes"] in (8, 4096)
    ]  # fmt: skip
    output = io.StringIO()
    Console(file=output, width=80).print(bench.render(shown))
    assert [line.rstrip() for line in output.getvalue().rstrip().splitlines()] == block.splitlines()
