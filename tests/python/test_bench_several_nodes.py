# SPDX-License-Identifier: Apache-2.0
"""beeline-bench on ranks that count as two nodes: it leaves out methods that need loads and stores among all ranks."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import skip_without_ucx

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"
NOT_REACHED = "loads and stores do not reach rank 2 from rank 0"


def results(command: list[str], ranks: int = 4, device: str = "cpu") -> list[dict[str, Any]]:
    options = ["-n", str(ranks), "--device", device, "--split-nodes", "2", "--json"]
    program = [str(PROGRAMS / "beeline-bench"), *command, "--iterations", "2"]
    launch = [str(PROGRAMS / "beeline-launch"), *options, "--", *program]
    done = subprocess.run(launch, capture_output=True, text=True, timeout=300, check=False)
    skip_without_ucx(done.stderr)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [record for record in found if record["event"] == "result"]


@pytest.mark.parametrize(
    ("command", "left_out"),
    [
        (["latency", "--sizes", "8"], ("barrier", "device/peer/signal", NOT_REACHED)),
        (["bandwidth", "--sizes", "64K"], None),
        (["rate"], ("random_update", "device/peer/signal", NOT_REACHED)),
        (["address-space"], None),
        (["collectives", "--sizes", "8"], ("allreduce", "device/ll_one_shot", "some members are on other nodes")),
        (["calls", "--sizes", "8"], None),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_needs_loads_and_stores_is_left_out(command: list[str], left_out: tuple[str, str, str] | None) -> None:
    found = results(command)
    measured = [record for record in found if record["available"]]
    assert measured
    assert all(record["verified"] in (True, None) for record in measured)
    if left_out is None:
        return
    operation, method, expected = left_out
    reasons = [r["reason"] for r in found if (r["operation"], r["method"]) == (operation, method)]
    assert reasons
    assert all(expected in reason for reason in reasons)


def test_exchanges_and_overlapped_transfers_reach_another_node() -> None:
    found = results(["methods", "--sizes", "4K", "--operations", "exchange,post_work_wait"], ranks=2)
    measured = [record for record in found if record["available"]]
    assert all(record["verified"] for record in measured)
    methods = {"stream/copy_engine/signal", "host/hybrid/pipelined", "device/peer/signal"}
    methods |= {"proxy/copy_engine/signal", "proxy/peer/signal"}
    assert {r["method"] for r in measured if r["operation"] == "post_work_wait"} == methods
    assert len([r for r in measured if r["operation"] == "exchange"]) == 6


def test_packets_inside_a_node_of_several() -> None:
    found = results(["latency", "--methods", "device/peer/ll,device/peer/signal", "--sizes", "8,4K"])
    packets = [record for record in found if record["method"] == "device/peer/ll"]
    assert [record["bytes"] for record in packets] == [8, 4096]
    assert all(record["verified"] for record in packets)


def gpus() -> int:
    nvidia_smi = shutil.which("nvidia-smi")
    if nvidia_smi is None:
        return 0
    listed = subprocess.run([nvidia_smi, "-L"], capture_output=True, text=True, timeout=60, check=False)
    return listed.stdout.count("GPU ")


@pytest.mark.skipif(gpus() < 2, reason="two GPUs are needed")
def test_all_pairs_of_memories_of_gpus() -> None:
    found = results(["network", "--sizes", "8,1M", "--operations", "message,put"], 2, "cuda:0,cuda:1")
    for method in ("network/put_signal", "network/puts"):
        ours = [record for record in found if record["method"] == method]
        memories = {(record["settings"]["source"], record["settings"]["destination"]) for record in ours}
        assert memories == {(source, destination) for source in ("host", "gpu") for destination in ("host", "gpu")}
        assert all(record["verified"] for record in ours)


def test_a_method_that_is_left_out_leaves_its_memory_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """On host ranks ll128 finds that it is unavailable after allocating its source and destination: if these 28 MiB
    were not freed, 2 of 8 MiB would not fit."""
    monkeypatch.setenv("BEELINE_HEAP_BYTES", "36M")
    methods = ["--methods", "device/peer/ll128,host/copy_engine/signal", "--operations", "put"]
    found = results(["bandwidth", "--sizes", "2M,4M,8M", *methods], ranks=2)
    assert {r["method"] for r in found if not r["available"]} == {"device/peer/ll128"}
    sizes = [r["bytes"] for r in found if r["method"] == "host/copy_engine/signal"]
    assert sizes == [2 << 20, 4 << 20, 8 << 20]


@pytest.mark.parametrize(
    "command",
    [["latency", "--sizes", "8", "--operations", "message,flag"], ["bandwidth", "--sizes", "64K"],
     ["rate", "--sizes", "8", "--operations", "message_rate,fetch_add"]],
    ids=lambda command: command[0],
)  # fmt: skip
def test_bare_loops_do_not_store_to_another_node(command: list[str]) -> None:
    found = results(command, ranks=2)
    methods = {record["method"] for record in found if record["available"]}
    assert "device/peer/signal" in methods
    assert methods.isdisjoint({"bare/flag", "bare/put_signal", "bare/store", "bare/copy", "bare/atomic"})
    assert {record["baseline"] for record in found if record["available"]} <= {None}
