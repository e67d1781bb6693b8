# SPDX-License-Identifier: Apache-2.0
"""`beeline app breadth-first`, with a fake program behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from beeline.official_graph500 import figures_of


def results_of(done) -> list[dict]:
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_each_method_runs_on_each_number_of_ranks(cli):
    done = cli("app", "breadth-first", "--ranks", "1,3", "--scale", "12", "--roots", "8", "--validate", "--json")
    assert done.returncode == 0
    results = results_of(done)
    assert [(one["ranks"], one["method"]) for one in results] == [
        (n, m) for n in (1, 3) for m in ("alltoallv", "bitmap")
    ]
    assert {one["scale"] for one in results} == {12}
    assert {one["validated_roots"] for one in results} == {8}


def test_the_table_compares_with_all_to_all_v(cli):
    done = cli("app", "breadth-first")
    assert done.returncode == 0
    for text in ("a graph of scale 16 on cpu", "125", "500", "4.00", "37.5", "64", "yes", "traversed edges per second"):
        assert text in done.stdout


def test_a_wrong_tree_fails(cli):
    done = cli("app", "breadth-first", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong result: alltoallv, bitmap" in done.stderr


OFFICIAL = """\
graph_generation:               0.0033 s
SCALE:                          16
NBFS:                           64
graph_generation:               0.0033
construction_time:              0.0483
bfs  mean_time:                 0.0144
mean_nedge:                     1048079
bfs  harmonic_mean_TEPS:     !  7.27e+07
"""


def test_the_official_program_stands_beside_the_methods(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "official"
    program.write_text(f'#!/bin/sh\n[ "$1 $2 $SKIP_VALIDATION" = "12 16 1" ] || exit 3\ncat <<END\n{OFFICIAL}END\n')
    program.chmod(0o755)
    mpirun = tmp_path / "mpirun"
    mpirun.write_text('#!/bin/sh\nwhile [ "$1" != -n ]; do [ $# -gt 0 ] || exit; shift; done; shift 2; exec "$@"\n')
    mpirun.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _: str(mpirun))
    done = cli("app", "breadth-first", "--ranks", "1,2", "--scale", "12", "--official", str(program), "--json")
    assert done.returncode == 0, done.stderr
    results = [one for one in results_of(done) if one["method"] == "official"]
    assert [(one["ranks"], one["scale"], one["teps"], one["roots"]) for one in results] == [
        (1, 12, 7.27e7, 64),
        (2, 12, 7.27e7, 64),
    ]


def test_an_output_without_figures_is_refused():
    with pytest.raises(ValueError, match="did not print NBFS"):
        figures_of("graph_generation: 0.1\nconstruction_time: 0.1\n")
