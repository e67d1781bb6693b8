# SPDX-License-Identifier: Apache-2.0
"""One rank of test_torch_suite.py: runs torch's tests in one world, one after the other.

python torch_suite_rank.py FOLDER TEST...: adds a JSON line for each test to FOLDER/RANK.jsonl. The first failure ends
the program, since the other ranks may wait for this one for ever.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import unittest
from pathlib import Path

import beeline
import beeline.torch_backend
import torch.distributed as dist
from torch.testing._internal import common_distributed, common_utils

# Torch's reasons for skipping tests that ask for nothing that only these back ends have.
MEANT_FOR_OTHERS = ("to be one of {'gloo'}", "GLOO Batch Send Recv", "Only MPI supports")

FOLDER, NAMES = Path(sys.argv[1]), sys.argv[2:]
WORLD = beeline.World.create()
os.environ.update(
    BACKEND="beeline", INIT_METHOD="env://", TEMP_DIR=str(FOLDER), RANK=str(WORLD.rank), WORLD_SIZE=str(WORLD.size)
)
for backends in common_distributed.DistTestCases.backend_feature.values():
    backends.add("beeline")
from torch.testing._internal.distributed import distributed_test  # noqa: E402 it reads the above


class Tests(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Torch's tests, in a world that exists already."""

    rank = WORLD.rank


def run(name: str) -> tuple[str, str]:
    test = getattr(Tests(), name)
    reason = getattr(test, "__unittest_skip_why__", "")
    if getattr(test, "__unittest_skip__", False) and not any(text in reason for text in MEANT_FOR_OTHERS):
        return "skipped", reason
    common_utils.set_rng_seed()
    try:
        test()
    except unittest.SkipTest as skip:
        return "skipped", str(skip)
    except SystemExit as end:
        reasons = {skip.exit_code: skip.message for skip in common_distributed.TEST_SKIPS.values()}
        return ("skipped", reasons[end.code]) if end.code in reasons else ("failed", f"it exits with {end.code}")
    except Exception:
        return "failed", traceback.format_exc()
    return "passed", ""


def main() -> None:
    store = beeline.torch_backend.make_store(WORLD)
    dist.init_process_group("beeline", store=store, rank=WORLD.rank, world_size=WORLD.size, pg_options=WORLD)
    with (FOLDER / f"{WORLD.rank}.jsonl").open("a", buffering=1) as results:
        for name in NAMES:
            outcome, text = run(name)
            results.write(json.dumps([name, outcome, text]) + "\n")
            if outcome == "failed":
                os._exit(1)
            if outcome == "passed":
                dist.barrier()
    dist.destroy_process_group()
    WORLD.leave()


main()
