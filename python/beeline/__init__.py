# SPDX-License-Identifier: Apache-2.0
"""Beeline: communication among GPUs and CPUs.

The command line (`beeline.cli`) needs Python alone. The library (`World`, `Memory`, `run`, ...) needs the extension
module, which is loaded when one of its names is used first.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beeline.errors import *  # noqa: F403
    from beeline.library import *  # noqa: F403

__version__ = "0.1.0"

# In a checkout the extension lies in the build folder: that of the programs (BEELINE_BIN), otherwise `build`.
_programs = os.environ.get("BEELINE_BIN")
_build = Path(_programs).parent if _programs else Path(__file__).resolve().parents[2] / "build"
__path__.append(str(_build / "python"))  # noqa: F405

LIBRARY = (
    "Choice", "Collectives", "Device", "Event", "HybridTransfers", "Memory", "Messages", "Object", "PutBatch",
    "RankHealth", "Signals", "StagedChannel", "Stream", "Team", "World", "read_file", "run", "write_file",
)  # fmt: skip

__all__ = ["__version__", *LIBRARY]


def __getattr__(name: str) -> Any:
    """Loads on first use: the exceptions, the names of the library, and its module `energy`."""
    if name == "energy":
        return importlib.import_module("beeline.energy")
    module = "beeline.library" if name in LIBRARY else "beeline.errors"
    if name == "Error" or name.endswith("Error") or name in LIBRARY:
        return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'beeline' has no attribute '{name}'")


def __dir__() -> list[str]:
    errors = importlib.import_module("beeline.errors")
    return sorted([*globals(), *LIBRARY, "energy", *errors.__all__])
