# SPDX-License-Identifier: Apache-2.0
"""Starting beeline-launch in tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"
LAUNCHER = str(PROGRAMS / "beeline-launch")
FAILING_RANK = str(PROGRAMS / "failing-rank")
ENDING_RANK = str(PROGRAMS / "ending-rank")

Result = subprocess.CompletedProcess[str]


def launch(*arguments: str, **environment: str) -> Result:
    """Runs the launcher with only these settings of Beeline, whatever the tests' environment contains."""
    merged = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")} | environment
    return subprocess.run([LAUNCHER, *arguments], capture_output=True, text=True, env=merged, timeout=60, check=False)


def shell(script: str, *options: str, ranks: int = 2, **environment: str) -> Result:
    return launch("-n", str(ranks), *options, "--", "sh", "-c", script, **environment)
