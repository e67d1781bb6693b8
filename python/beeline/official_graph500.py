# SPDX-License-Identifier: Apache-2.0
"""Runs the official program of Graph500 under mpirun, and prints its figures as a result of `beeline app
breadth-first`.

The command line starts it: python -m beeline.official_graph500 DEVICE RANKS SCALE -- COMMAND. The program
(graph500_reference_bfs of github.com/graph500/graph500, version 3) takes scale and edge factor as arguments, searches
from 64 roots, and prints lines such as "bfs  harmonic_mean_TEPS:     !  7.9e+07".
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

EDGE_FACTOR = 16
FIGURES = {
    "roots": "NBFS",
    "generation_seconds": "graph_generation",
    "construction_seconds": "construction_time",
    "seconds": "bfs mean_time",
    "edges": "mean_nedge",
    "teps": "bfs harmonic_mean_TEPS",
}


def figures_of(output: str) -> dict[str, float]:
    """The figures that the official program has printed. Raises ValueError, naming one that is missing."""
    printed = {
        " ".join(name.split()): float(value)
        for name, value in re.findall(r"^([A-Za-z_ ]+):[ !]*([0-9.e+]+)$", output, re.MULTILINE)
    }
    lacking = [name for name in FIGURES.values() if name not in printed]
    if lacking:
        raise ValueError(f"the official program did not print {', '.join(lacking)}")
    return {figure: printed[name] for figure, name in FIGURES.items()}


def main() -> int:
    device, ranks, scale = sys.argv[1:4]
    command = [*sys.argv[5:], scale, str(EDGE_FACTOR)]
    variables = {**os.environ, "SKIP_VALIDATION": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=variables)
    try:
        figures = figures_of(done.stdout)
    except ValueError as problem:
        print(f"{done.stdout}{' '.join(command)}: status {done.returncode}: {problem}", file=sys.stderr)
        return done.returncode or 1
    result = {"event": "result", "app": "breadth_first", "method": "official", "ranks": int(ranks), "device": device}
    result |= {"scale": int(scale), **figures, "roots": int(figures["roots"]), "validated_roots": 0, "verified": None}
    print(json.dumps(result), flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
