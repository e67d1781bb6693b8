# SPDX-License-Identifier: Apache-2.0
"""Figures in documents equal those in the records that they name, with each peer at its best; pages stay short."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import measured_figures
import pytest
from test_documents import RECORD, documents, is_table_of_figures

MOST_WORDS = 4000
GENERATED = {"reference.md", "reference-python.md"}


def pages(repository: Path) -> list[Path]:
    return [*documents(repository), *sorted((repository / "bench/records").glob("*.md"))]


def test_marked_figures_are_those_of_their_records(repository: Path) -> None:
    compared, wrong = 0, []
    for page in pages(repository):
        found = measured_figures.check_document(page, repository / "bench/records")
        compared += found.compared
        wrong += [f"{page.relative_to(repository)}: {one}" for one in found.wrong]
    assert wrong == []
    assert compared > 1500


def test_each_table_of_figures_is_compared_or_says_why_not(repository: Path) -> None:
    without = []
    for page in documents(repository):
        blocks = re.split(r"\n\s*\n", page.read_text(encoding="utf-8"))
        for table, behind in zip(blocks, [*blocks[1:], ""], strict=True):
            if is_table_of_figures(table) and not re.match(r"<!-- (record|not compared:) ", behind):
                without.append(f"{page.relative_to(repository)}: {table.splitlines()[0]}")
    assert without == []


def test_sections_say_which_results_were_not_verified(repository: Path) -> None:
    unsaid = []
    for page in documents(repository):
        for section in re.split(r"^#+ ", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            unchecked = [name for name in set(RECORD.findall(section)) if has_unchecked(repository, name)]
            if unchecked and "--no-verify" not in section:
                unsaid.append((page.name, section.splitlines()[0], unchecked))
    assert unsaid == []


def has_unchecked(repository: Path, name: str) -> bool:
    path = repository / f"bench/records/{name}.jsonl"
    return path.exists() and any(not one["is_checked"] for one in measured_figures.results(path))


TABLE = """
| | 8 B | 4 KB |
|---|---|---|
| `device/peer/signal` | 0.98 | 1.5 |
| `nvshmem/put` | 1.2 | ~1.9 |

<!-- record r
each: operation=message
-->

Twice as long: 2.0 times.

<!-- record r
2.0 = method=device/peer/signal bytes=4K OVER method=device/peer/signal bytes=8
-->
"""


def result(method: str, size: int, median: float, threads: int = 1) -> dict[str, object]:
    settings = {"threads_per_block": threads}
    return {"event": "result", "operation": "message", "method": method, "bytes": size, "unit": "us",
            "median": median, "settings": settings}  # fmt: skip


RESULTS = [
    result("device/peer/signal", 8, 0.981), result("device/peer/signal", 4096, 1.96 * 0.981),
    result("nvshmem/put", 8, 1.35), result("nvshmem/put", 8, 1.2, 32), result("nvshmem/put", 4096, 1.87),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "to", "words"),
    [
        ("| 1.5 |", "| 1.9 |", ""),
        ("| 1.5 |", "| 1.5 |", "1.5, the record has 1.92"),
        ("| 1.5 |\n| `nvshmem/put` | 1.2", "| 1.9 |\n| `nvshmem/put` | 1.4", "1.4, the record has 1.2"),
        ("2.0 times", "2.1 times", "the text has no `2.0`"),
        ("each: operation=message", "each: operation=put", "no result has"),
        ("each: operation=message", "each: threads_per_block=1", "picks one of the peer's results"),
        ("each: operation=message", "columns: bytes=8", "2 columns, 2 rows; the mark has 1, 2"),
        ("<!-- record r\neach", "<!-- record s\neach", "there is no record"),
    ],
)
def test_a_wrong_figure_is_found(tmp_path: Path, changed: str, to: str, words: str) -> None:
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(one) + "\n" for one in RESULTS))
    page = tmp_path / "page.md"
    text = TABLE if "1.5" in changed else TABLE.replace("| 1.5 |", "| 1.9 |")
    assert changed in text
    page.write_text(text.replace(changed, to))
    found = measured_figures.check_document(page, tmp_path)
    assert (words in "\n".join(found.wrong)) if words else (found.wrong == [] and found.compared == 5)


def test_several_results_of_beeline_are_no_figure(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(one | {"method": "x"}) + "\n" for one in RESULTS))
    page = tmp_path / "page.md"
    page.write_text("It takes 1.2.\n\n<!-- record r\n1.2 = bytes=8\n-->\n")
    assert "3 results have" in measured_figures.check_document(page, tmp_path).wrong[0]


def test_pages_are_short(repository: Path) -> None:
    """Comments, which no reader sees, are not counted."""
    text = {page.name: page.read_text(encoding="utf-8") for page in (repository / "docs").glob("*.md")}
    words = {name: len(re.sub(r"<!--.*?-->", "", one, flags=re.DOTALL).split()) for name, one in text.items()}
    assert {name: count for name, count in words.items() if count > MOST_WORDS}.keys() == GENERATED


def test_each_record_leads_to_a_commit_of_the_history(repository: Path) -> None:
    """By the record's own commit, or by the table in the records' README."""
    listed = subprocess.run(["git", "rev-list", "HEAD"], cwd=repository, capture_output=True, text=True, check=False)
    commits = listed.stdout.split()
    if len(commits) < 500:
        pytest.skip("this is no clone with its history")
    table = (repository / "bench/records/README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `?(\w+)`? \| .* \| (?:the parent of )?(\w+)", table, re.MULTILINE)
    assert len(rows) > 10
    assert [code for _, code in rows if not any(one.startswith(code) for one in commits)] == []
    named = {line["commit"] for path in (repository / "bench/records").glob("*.jsonl") for line in environments(path)}
    mapped = {commit for commit, _ in rows}
    assert [c for c in named if c[:7] not in mapped and not any(one.startswith(c) for one in commits)] == []


def environments(path: Path) -> list[dict[str, str]]:
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if '"environment"' in line)
    return [line for line in lines if line.get("event") == "environment"]
