# SPDX-License-Identifier: Apache-2.0
"""beeline-bench on two or more host ranks: its records, its verification, and what it refuses."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from beeline.programs import World, mpirun_command

PROGRAMS = Path(__file__).resolve().parents[2] / "build" / "bin"
METHODS = [
    "device/peer/ll", "device/peer/signal", "proxy/copy_engine/signal", "proxy/peer/signal",
    "triggered/copy_engine/signal", "stream/copy_engine/signal", "host/copy_engine/signal", "host/hybrid/pipelined",
    "host/staged/sequential", "host/staged/pipelined",
]  # fmt: skip
QUICK = ["--iterations", "2"]
RESULT_FIELDS = {
    "event", "schema_version", "operation", "method", "bytes", "ranks", "available", "reason", "unit", "median",
    "bus_gb_per_s", "relative_deviation", "iterations", "samples", "cpu_cores", "verified", "seed", "peer_of",
    "baseline",
    "ratio_to_baseline", "settings",
}  # fmt: skip
Record = dict[str, Any]
# As nccl-tests defines it: the share of the measured size that passes the busiest link, for n ranks.
BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "allreduce": lambda n: 2 * (n - 1) / n,
    **dict.fromkeys(("broadcast", "reduce"), lambda n: 1.0),
    **dict.fromkeys(
        ("scatter", "gather", "allgather", "reduce_scatter", "alltoall", "alltoallv"), lambda n: (n - 1) / n
    ),
}


def launch(
    *arguments: str, ranks: int = 2, threads: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    options = ["-n", str(ranks), "--device", "cpu", "--json", *(["--threads"] if threads else [])]
    command = [str(PROGRAMS / "beeline-launch"), *options, "--", str(PROGRAMS / "beeline-bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | variables, check=False)


def records(*arguments: str, ranks: int = 2, threads: bool = False, **variables: str) -> list[Record]:
    result = launch(*arguments, *QUICK, ranks=ranks, threads=threads, **variables)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def results(found: list[Record]) -> list[Record]:
    return [record for record in found if record["event"] == "result"]


def without_peers(found: list[Record]) -> list[Record]:
    """All results but those of peers that host ranks of one node lack; each of these gives the reason."""
    lacking = (("nvshmem/", "NVSHMEM"), ("nccl/", "NCCL"), ("mpi/", "MPI"), ("network/", "--split-nodes 2"))
    for peer, word in lacking:
        assert all(word in r["reason"] for r in found if r["method"].startswith(peer))
        found = [record for record in found if not record["method"].startswith(peer)]
    return found


def without_lines(found: list[Record], operation: str, sizes: list[int]) -> list[Record]:
    """The available results, after a check of the one method that host ranks lack."""
    lacking = [r for r in found if not r["available"]]
    assert [(r["method"], r["operation"], r["bytes"]) for r in lacking] == [
        ("device/peer/ll128", operation, size) for size in sizes
    ]
    assert all("only GPUs store whole lines" in record["reason"] for record in lacking)
    return [record for record in found if record["available"]]


def assert_measured(record: Record, ranks: int) -> None:
    assert set(record) == RESULT_FIELDS
    assert record["ranks"] == ranks
    assert record["available"] is True
    assert record["verified"] is True
    assert isinstance(record["seed"], int)
    assert record["iterations"] == 2
    assert len(record["samples"]) >= 5  # 20, or fewer if they take long
    assert min(record["samples"]) > 0
    assert min(record["samples"]) <= record["median"] <= max(record["samples"])
    assert record["relative_deviation"] >= 0
    assert 0 < record["cpu_cores"] < 1000
    factor = BUS_FACTORS.get(record["operation"])
    bandwidth = factor and pytest.approx(factor(ranks) * record["bytes"] / record["median"] / 1e3)
    assert record["bus_gb_per_s"] == bandwidth


@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_latency_of_every_method(threads: bool) -> None:
    found = without_peers(results(records("latency", "--sizes", "5,4K", threads=threads)))
    found = without_lines(found, "message", [5, 4096])
    for record in found:
        assert_measured(record, ranks=2)
        assert record["unit"] == "us"
    for method in METHODS:
        sizes = [r["bytes"] for r in found if r["method"] == method and r["operation"] == "message"]
        assert sorted(set(sizes)) == [5, 4096]
    assert {r["settings"]["order"] for r in found if r["method"] == "bare/flag"} == {"relaxed", "acquire", "memory"}
    flags = [r for r in found if r["operation"] == "flag" and r["peer_of"] is None]
    assert [r["settings"]["order"] for r in flags] == ["relaxed", "acquire", "memory"]
    assert {r["baseline"] for r in flags} == {"bare/flag"}
    assert all(r["ratio_to_baseline"] > 0 for r in flags)
    assert [r["settings"]["order"] for r in found if r["operation"] == "barrier"] == ["relaxed", "memory"]
    two_sided = [
        (r["method"], r["bytes"], r["settings"]["protocol"]) for r in found if r["operation"] == "send_receive"
    ]
    assert two_sided == [
        ("device/automatic", 5, "eager"), ("device/automatic", 4096, "eager"),
        ("stream/automatic", 5, "eager"), ("stream/automatic", 4096, "eager"),
        ("stream/eager", 5, "eager"), ("stream/eager", 4096, "eager"),
        ("stream/rendezvous", 4096, "rendezvous"), ("stream/staged", 4096, "rendezvous"),
    ]  # fmt: skip


@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_bandwidth_of_every_method(threads: bool) -> None:
    found = without_peers(results(records("bandwidth", "--sizes", "70001", threads=threads)))
    found = without_lines(found, "put", [70001])
    for record in found:
        assert_measured(record, ranks=2)
        assert record["unit"] == "GB/s"
        assert record["bytes"] == 70001
    puts = {*METHODS, "device/bulk/signal", "bare/copy", "bare/double_buffered", "bare/store"}
    assert {r["method"] for r in found if r["operation"] == "put"} == puts
    assert [r["method"] for r in found if r["operation"] == "get"] == ["device/peer/signal"]
    assert [r["method"] for r in found if r["operation"] == "send_receive"] == ["stream/automatic", "stream/staged"]
    copies = {r["method"]: r for r in found if r["method"] in {"bare/copy", "host/copy_engine/signal"}}
    ratio = copies["host/copy_engine/signal"]["median"] / copies["bare/copy"]["median"]
    assert copies["host/copy_engine/signal"]["ratio_to_baseline"] == pytest.approx(ratio)
    assert copies["bare/copy"]["peer_of"] == "host/copy_engine/signal"


@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_rates_of_every_method(threads: bool) -> None:
    found = without_peers(results(records("rate", "--sizes", "8,70", "--table", "64K", ranks=3, threads=threads)))
    for record in found:
        assert_measured(record, ranks=3)
    assert {(r["operation"], r["unit"]) for r in found} == {
        ("message_rate", "Mmsg/s"), ("puts", "Mmsg/s"), ("puts_call", "us"), ("fetch_add", "us"),
        ("compare_swap", "us"), ("random_update", "Gupdate/s"), ("random_store", "Gupdate/s"),
    }  # fmt: skip
    carriers = (("device/peer", 8), ("device/peer", 70), ("proxy/copy_engine", 8), ("proxy/copy_engine", 70))
    expected = [(f"{by}/{how}", size, n) for by, size in carriers for n in (1, 64) for how in ("signal", "batch")]
    for operation in ("puts", "puts_call"):
        puts = [(r["method"], r["bytes"], r["settings"]["puts"]) for r in found if r["operation"] == operation]
        assert sorted(puts) == sorted([*expected, ("bare/puts", 8, 1), ("bare/puts", 8, 64)])
    if platform.machine() == "x86_64":
        counts = {
            (r["method"], r["bytes"]): r["settings"]["instructions"] for r in found if "instructions" in r["settings"]
        }
        assert counts["device/peer/batch", 8] < counts["device/peer/signal", 8] / 2
    assert {r["baseline"] for r in found if r["method"].endswith("/batch")} == {
        "device/peer/signal", "proxy/copy_engine/signal",
    }  # fmt: skip
    messages = [(r["method"], r["bytes"]) for r in found if r["operation"] == "message_rate"]
    assert sorted(messages) == [
        ("bare/put_signal", 8), ("device/peer/ll", 8), ("device/peer/ll", 70),
        ("device/peer/signal", 8), ("device/peer/signal", 70), ("proxy/copy_engine/signal", 8),
    ]  # fmt: skip
    for operation in ("fetch_add", "compare_swap", "random_update", "random_store"):
        bare, library = (r for r in found if r["operation"] == operation)
        assert bare["peer_of"] == library["method"] == "device/peer/signal"
        assert library["ratio_to_baseline"] == pytest.approx(library["median"] / bare["median"])
    assert {r["settings"].get("table_bytes") for r in found} == {None, 64 << 10}


def test_methods_have_their_latency_rate_and_bandwidth() -> None:
    operations = ["--operations", "command,message,trigger,trigger_after_rest,message_rate,put,get"]
    found = without_peers(results(records("methods", "--sizes", "8,70001", *operations)))
    lacking = [(r["method"], r["operation"]) for r in found if not r["available"]]
    assert lacking == [("device/peer/ll128", "message"), ("device/peer/ll128", "put")]
    found = [record for record in found if record["available"]]
    for record in found:
        assert_measured(record, ranks=2)
    units = {"message_rate": "Mmsg/s", "put": "GB/s", "get": "GB/s"}
    units |= dict.fromkeys(("command", "message", "trigger", "trigger_after_rest"), "us")
    assert {r["operation"]: r["unit"] for r in found} == units
    for record in found:
        is_trigger = record["operation"].startswith("trigger")
        assert record["bytes"] == (70001 if record["unit"] == "GB/s" else 8) or is_trigger
    triggers = [r for r in found if r["operation"] == "trigger"]
    levels = [
        (back_end, level)
        for back_end in ("engine", "device_engine", "stream", "guarded_stream")
        for level in ("thread", "block", "all_threads")
    ]
    rows = [(r["bytes"], r["settings"].get("back_end"), r["settings"].get("level")) for r in triggers]
    assert rows == [(size, *row) for size in (8, 70001) for row in [(None, None), (None, None), *levels]]
    assert {r["baseline"] for r in triggers} == {None, "bare/stream_wait"}
    rested = [r for r in found if r["operation"] == "trigger_after_rest"]
    rows = [(r["bytes"], r["settings"].get("back_end"), r["settings"]["rest_us"]) for r in rested]
    back_ends = (None, "engine", "device_engine", "stream", "guarded_stream")
    assert rows == [(size, back_end, 30) for size in (8, 70001) for back_end in back_ends]
    assert {r["baseline"] for r in rested} == {None, "bare/stream_wait"}


def test_methods_of_tasks() -> None:
    found = results(records("methods", "--operations", "task,task_rate", threads=True))
    for record in found:
        assert_measured(record, ranks=2)
        assert record["bytes"] == 64
    rows = [(r["operation"], r["method"], r["settings"].get("target"), r["settings"].get("reply")) for r in found]
    assert rows[0] == ("task", "bare/payload_and_two_flags", None, None)
    assert rows[1:13] == [
        (operation, "task/peer/signal", target, reply)
        for target in ("peer", "own")
        for reply in ("memory", "task", "value")
        for operation in ("task", "task_post")
    ]
    assert rows[13] == ("task_start", "task/peer/signal", "own", "value")
    assert rows[14] == ("task", "bare/kernel_by_host", None, None)
    assert {r["unit"] for r in found[:15]} == {"us"}
    assert [r["settings"]["queues"] for r in found[15:]] == [1, 2]


def without_launched(found: list[Record], **reasons: str) -> list[Record]:
    """All results but those of operations by kernels and graphs that kernels launch, which give a reason on CPUs."""
    launched = {r["operation"]: r for r in found if r["method"].startswith("device_launched/")}
    assert set(launched) == set(reasons)
    for operation, reason in reasons.items():
        assert not launched[operation]["available"]
        assert reason in launched[operation]["reason"]
    return [record for record in found if record not in launched.values()]


NO_GRAPHS = {"started_copy": "kernels of GPUs alone launch graphs"}


@pytest.mark.timeout(290)  # 85 measurements of polling threads: 9 s on idle cores, over 120 s beside other tests
def test_methods_of_commands_and_of_both_ways() -> None:
    operations = (
        "command_load,command_leases,command_together,command_rate,command_parts,control_parts,copy_rate,"
        "started_copy,engine_cpu,engine_idle,kernel_start,kernel_parts,arrival,two_way,one_way,"
        "synchronize,thread_wait,accumulate,exchange,post_work_wait"
    )
    found = results(records("methods", "--sizes", "256K", "--operations", operations, threads=True))
    found = without_launched(found, **NO_GRAPHS, exchange="kernels of GPUs alone launch kernels")
    assert all(record["available"] for record in found)
    by_operation: dict[str, list[Record]] = {}
    for record in found:
        by_operation.setdefault(record["operation"], []).append(record)
    parts = {f"part_{name}" for name in ["post", "engine", "transfer", "completion", "start", "execution", "whole"]}
    times = {"command_p50", "command_p99", "engine_cpu", "engine_idle", "kernel_start", "arrival", "started_copy"}
    times |= {"buffer_wait", "thread_wait", "synchronize", "accumulate", "exchange", "post_work_wait"}
    units = dict.fromkeys(parts | times, "us")
    units |= {"command_rate": "Mmsg/s", "copy_rate": "Mmsg/s", "copy": "GB/s", "two_way": "GB/s", "one_way": "GB/s"}
    assert {name: each[0]["unit"] for name, each in by_operation.items()} == units
    timed_only = {"kernel_start", "arrival", "blocking/kernel", "bare/post", "synchronize", "thread_wait"}
    assert all(r["verified"] for r in found if r["operation"] not in timed_only and r["method"] not in timed_only)
    for p50, p99 in zip(by_operation["command_p50"], by_operation["command_p99"], strict=True):
        assert p50["settings"]["load"] == p99["settings"]["load"]
        assert min(p50["samples"]) <= max(p99["samples"])  # measured separately: other programs may delay one
    within, behind = (
        {
            r["median"]
            for r in by_operation["command_p50"]
            if r["settings"]["load"] == load and r["method"] == "proxy/peer/signal"
        }
        for load in ("none", "restart")
    )
    assert len(within) == len(behind) == 1
    assert min(within) < min(behind), "a lease that has ended is started again"
    assert {r["method"].split("/")[0] for r in by_operation["part_whole"]} == {"proxy", "triggered", "task", "bare"}
    assert {r["baseline"] for r in by_operation["copy_rate"]} == {None, "bare/issue_loop"}
    shapes = [(r["settings"]["blocks"], r["settings"]["engine_threads"]) for r in by_operation["command_rate"]]
    assert shapes == [(1, 1), (4, 1)]
    assert [r["settings"]["work_us"] for r in by_operation["engine_cpu"]] == [0, 10, 100, 1000]
    assert [r["settings"]["queued"] for r in by_operation["kernel_start"]] == [1, 4, 16, 64, 256]
    stages = [r["settings"]["buffers"] for r in found if "buffers" in r["settings"] and r["unit"] == "GB/s"]
    assert stages == ["pageable", "pinned"] * 2  # in both directions, then in one; messages above 1 MiB have others
    assert [r["settings"]["threads"] for r in by_operation["thread_wait"]] == [1, 2, 4] * 2
    exchanges = [(r["bytes"], r["method"], r["settings"]["separated_by"]) for r in by_operation["exchange"]]
    by_cpu = [("stream/peer/signal", "kernel_order"), ("stream/peer/signal", "last_block")]
    by_one = [("device/peer/signal", "grid_barrier")]
    assert exchanges == [(size, *row) for rows in (by_cpu, by_one) for size in (8, 64 << 10) for row in rows]
    overlapped = {r["method"]: r["settings"] for r in by_operation["post_work_wait"]}
    assert set(overlapped) == {
        "proxy/copy_engine/signal", "proxy/peer/signal", "device/peer/signal", "stream/copy_engine/signal",
        "host/hybrid/pipelined", "bare/copy",
    }  # fmt: skip
    assert all(one["work_ns"] >= one["transfer_ns"] > 0 for one in overlapped.values())


@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_address_space_against_threads_and_strides(threads: bool) -> None:
    named = "write_latency,read_latency,store,load,strided_store,strided_load,strided_local_store,store_requests"
    operations = ["--operations", f"{named},load_requests,started_copy"] if threads else []  # `bandwidth` has copies
    found = results(records("address-space", *operations, threads=threads, BEELINE_HOST_THREADS="2"))
    found = without_launched(found, **NO_GRAPHS)
    started = [record for record in found if record["operation"] == "started_copy"]
    assert {r["method"] for r in started} == {"proxy/copy_engine/signal", "device/peer/signal"}
    assert all(r["verified"] and r["iterations"] == 1 for r in started), "one copy at a time"
    for record in found:
        if record not in started:
            assert_measured(record, ranks=2)
    for operation in ("write_latency", "read_latency", "store", "load"):
        assert [r["settings"]["threads"] for r in found if r["operation"] == operation] == [1, 2]
    for operation in ("strided_store", "strided_load", "strided_local_store"):
        assert [r["settings"]["stride"] for r in found if r["operation"] == operation] == [1, 2, 4, 8, 16, 32]
    for operation in ("store_requests", "load_requests"):
        rows = [(r["settings"], r["median"]) for r in found if r["operation"] == operation]
        counts = {(s["values"], s["width"], s["stride"]): (s["instructions"], n, s["sectors"]) for s, n in rows}
        assert len(counts) == len(rows) == 28
        assert [counts[n, 4, 1] for n in (1, 16, 64, 4096)] == [(1, 1, 1), (1, 1, 2), (2, 2, 8), (128, 128, 512)]
        assert [counts[n, 4, 2] for n in (1, 16, 64, 4096)] == [(1, 1, 1), (1, 1, 4), (2, 4, 16), (128, 256, 1024)]
        assert counts[1024, 16, 1] == (32, 128, 512)
        assert counts[1024, 16, 32] == counts[1024, 8, 32] == (32, 1024, 1024)  # one request per value


def collectives(*arguments: str, ranks: int, threads: bool = False) -> tuple[list[Record], list[Record]]:
    """The results measured, and those that host ranks lack, each of which gives a reason."""
    found = results(records("collectives", *arguments, ranks=ranks, threads=threads))
    return [one for one in found if one["available"]], [one for one in found if not one["available"]]


CONTROLS = ["stream", "graph", "device"]
ALGORITHMS = ["automatic", "ll_one_shot", "ll_two_shot", "two_shot"]


@pytest.mark.parametrize(("ranks", "threads"), [(2, False), (3, True), (4, False)])
def test_collectives_by_every_algorithm(ranks: int, threads: bool) -> None:
    measured, lacking = collectives("--sizes", "4,1000", ranks=ranks, threads=threads)
    for record in measured:
        assert_measured(record, ranks)
        assert record["unit"] == "us"
        assert record["operation"] == "allreduce"
        assert record["settings"]["type"] == "float32"
    for control in ("stream", "device"):
        for algorithm in ALGORITHMS:
            sizes = [r["bytes"] for r in measured if r["method"] == f"{control}/{algorithm}"]
            assert sizes == [4, 1000]
    reasons = {record["method"]: record["reason"] for record in lacking}
    graphs = {r["method"].replace("stream/", "graph/") for r in measured if r["method"].startswith("stream/")}
    peers = {"nccl/stream", "nccl/graph", "nvshmem/stream", "nvshmem/graph", "nvshmem/device", "mpi/host", "mpi/staged"}
    lines = {f"{control}/ll128_{shot}" for control in CONTROLS for shot in ("one_shot", "two_shot")}
    nodes = {f"{control}/{name}across_nodes" for control in ("stream", "graph") for name in ("", "two_shot_")}
    assert set(reasons) == graphs | lines | peers | nodes | {"bare/empty_kernel"}
    assert all("only GPUs store whole lines" in reasons[method] for method in lines)
    assert all("CUDA graphs" in reasons[method] for method in graphs)
    assert "NCCL" in reasons["nccl/stream"]
    assert "mpirun" in reasons["mpi/host"]
    assert "see mpi/host" in reasons["mpi/staged"]


ACROSS_NODES = dict.fromkeys(("allreduce", "reduce"), "two_shot_across_nodes") | {"broadcast": "chain_across_nodes"}
MOVED = ["automatic", "ll", "peer"]
OPERATIONS = {
    "broadcast": MOVED, "scatter": MOVED, "gather": MOVED, "allgather": MOVED, "alltoall": MOVED, "alltoallv": MOVED,
    "reduce": ["automatic", "ll", "two_shot", "read", "gather", "alltoall_gather", "tree"],
    "reduce_scatter": ["automatic", "ll", "read", "peer"],
    "barrier": ["alltoall", "flat", "dissemination", "hierarchical"],
}  # fmt: skip


@pytest.mark.parametrize(("ranks", "threads", "sizes"), [(2, False, [8, 992]), (3, True, [12, 960])])
def test_every_operation_by_every_algorithm(ranks: int, threads: bool, sizes: list[int]) -> None:
    operations = ",".join(OPERATIONS)
    measured, lacking = collectives("--operations", operations, "--sizes", "8,1000", ranks=ranks, threads=threads)
    for record in measured:
        assert_measured(record, ranks)
    for operation, algorithms in OPERATIONS.items():
        mine = [r for r in measured if r["operation"] == operation and r["method"].startswith("stream/")]
        expected = {"barrier": [0], "broadcast": [8, 1000], "reduce": [8, 1000]}.get(operation, sizes)
        for algorithm in algorithms:
            assert [r["bytes"] for r in mine if r["method"] == f"stream/{algorithm}"] == expected
        graphs = {r["method"] for r in lacking if r["operation"] == operation and r["method"].startswith("graph/")}
        lines = {"graph/ll128"} if operation in ("allgather", "alltoall", "broadcast", "reduce") else set()
        across = {"across_nodes", ACROSS_NODES.get(operation, "across_nodes")}
        assert {f"graph/{algorithm}" for algorithm in {*algorithms} | across} | lines == graphs
    in_kernels = {(r["operation"], r["method"]) for r in measured if r["method"].startswith("device/")}
    assert in_kernels == {(name, f"device/{one}") for name in ("allgather", "alltoall") for one in MOVED} | {
        ("barrier", f"device/{one}") for one in OPERATIONS["barrier"]
    }
    copies = [r for r in measured if r["method"] == "bare/copies"]
    assert {r["operation"] for r in copies} == {"allgather", "alltoall"}


def test_large_pieces_go_by_bulk_and_engines_too() -> None:
    measured, _ = collectives("--operations", "alltoall,reduce_scatter", "--sizes", "200K", ranks=2)
    methods = {(r["operation"], r["method"]) for r in measured if r["verified"]}
    assert {
        ("alltoall", "stream/bulk"),
        ("alltoall", "stream/copy_engine"),
        ("reduce_scatter", "stream/bulk"),
    } <= methods


def test_collectives_of_bfloat16() -> None:
    measured, lacking = collectives("--sizes", "6", "--type", "bfloat16", "--operations", "all", ranks=2)
    assert {record["settings"].get("type") for record in measured} == {"bfloat16", None}
    assert all(record["verified"] for record in measured)
    assert next(r for r in lacking if r["method"] == "mpi/host")["reason"].endswith("MPI has no bfloat16")


def test_collectives_beyond_an_algorithms_use_are_left_out_with_a_reason_if_named() -> None:
    methods = "stream/ll_one_shot,stream/copy_engine,stream/two_shot,device/two_shot"
    measured, lacking = collectives("--sizes", "512K,8M", "--methods", methods, ranks=2)
    assert {(record["method"], record["bytes"]) for record in measured} == {
        ("stream/two_shot", 512 << 10), ("stream/two_shot", 8 << 20),
        ("stream/ll_one_shot", 512 << 10), ("stream/copy_engine", 8 << 20),
    }  # fmt: skip
    reasons = {(r["method"], r["bytes"]): r["reason"].removeprefix("rank 0: unavailable: ") for r in lacking}
    assert reasons == {
        ("stream/copy_engine", 512 << 10): "measured with 1048576 bytes and more",
        ("stream/ll_one_shot", 8 << 20): "measured with up to 4194304 bytes",
        ("device/two_shot", 512 << 10): "measured with up to 65536 bytes",
        ("device/two_shot", 8 << 20): "measured with up to 65536 bytes",
    }
    unnamed, _ = collectives("--sizes", "8", ranks=2)
    assert "stream/copy_engine" not in {record["method"] for record in unnamed}


beside_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or not (PROGRAMS / "beeline-bench-mpi.so").exists(),
    reason="mpirun is not installed, or this was built without MPI",
)


def by_mpirun(*arguments: str) -> list[Record]:
    foreign = ("OMPI_", "PMIX_", "BEELINE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    command = [*mpirun_command(World(2, device="cpu")), str(PROGRAMS / "beeline-bench"), *arguments, *QUICK]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**environment, "BEELINE_DEVICE": "cpu"}, check=False
    )
    assert result.returncode == 0, result.stderr
    return results([json.loads(line) for line in result.stdout.splitlines()])


@beside_mpi
@pytest.mark.parametrize("command", ["latency", "bandwidth"])
def test_messages_staged_by_mpi(command: str) -> None:
    found = by_mpirun(command, "--sizes", "5,70001", "--methods", "mpi/staged")
    if command == "latency":
        barrier = next(r for r in found if r["operation"] == "barrier")
        assert barrier["median"] > 0  # which is only timed
        found.remove(barrier)
    assert [r["bytes"] for r in found] == [5, 70001]
    for record in found:
        assert_measured(record, ranks=2)


@beside_mpi
def test_collectives_beside_mpi() -> None:
    found = by_mpirun("collectives", "--operations", "all", "--sizes", "8,4K", "--methods", "stream/automatic,mpi/host")
    (barrier,) = (r for r in found if r["operation"] == "barrier")
    assert barrier["method"] == "mpi/host"  # which is only timed
    found.remove(barrier)
    for record in found:
        assert_measured(record, ranks=2)
    for operation in BUS_FACTORS:
        for size in (8, 4096):
            library, peer = (r for r in found if r["operation"] == operation and r["bytes"] == size)
            assert peer["method"] == library["baseline"] == "mpi/host"
            assert library["ratio_to_baseline"] == pytest.approx(library["median"] / peer["median"])


def test_other_ranks_take_part_in_barriers_only() -> None:
    found = results(records("latency", "--sizes", "8", "--methods", "device/peer/signal", ranks=3))
    assert {r["operation"] for r in found} == {"message", "flag", "barrier", "gaspi_message"}
    for record in found:
        assert_measured(record, ranks=3)


def test_environment_comes_first_and_keeps_secrets() -> None:
    found = records("latency", "--sizes", "8", "--methods", "device/peer/ll")
    environment = found[0]
    assert environment["event"] == "environment"
    assert [r["event"] for r in found[1:]] == ["progress", "result", "result"]
    assert environment["schema_version"] == found[-1]["schema_version"]
    assert environment["rank_kind"] == "processes"
    assert [device["kind"] for device in environment["devices"]] == ["host", "host"]
    assert environment["arguments"][0] == "beeline-bench"
    assert {"commit", "dirty", "variables", "build", "host", "cuda", "topology"} <= set(environment)
    assert not {"BEELINE_TOKEN", "BEELINE_RENDEZVOUS"} & set(environment["variables"])
    assert str(PROGRAMS) not in json.dumps(found)


def test_a_seed_is_kept_and_verification_can_be_left_out() -> None:
    arguments = ["latency", "--sizes", "8", "--methods", "device/peer/signal", "--operations", "message"]
    assert results(records(*arguments, "--seed", "7"))[0]["seed"] == 7
    skipped = results(records(*arguments, "--no-verify"))[0]
    assert skipped["verified"] is None
    assert skipped["seed"] is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["latency", "--methods", "device/peer/pigeons"], "device/peer/ll128, device/peer/signal"),
        (["bandwidth", "--operations", "message"], 'bad --operations "message"; valid: all, put, get'),
        (["latency", "--sizes", "8,4X"], 'bad --sizes "4X"; valid: 1 to 16G bytes'),
        (["rate", "--table", "24"], 'bad --table "24"; valid: a power of two'),
        (["rate", "--table", "8,16"], 'bad --table "8,16"; valid: 8 to 16G bytes'),
        (["collectives", "--sizes", "7"], "multiples of the 4 bytes of a float32"),
        (["collectives", "--methods", "stream/peer"], "none of the operations allreduce is measured with any"),
        (["collectives", "--methods", "stream/pigeons"], "device/ll_two_shot"),
        (["collectives", "--operations", "sum"], "reduce_scatter, alltoall, alltoallv, barrier"),
        (["address-space", "--operations", "put"], "write_latency, read_latency, store, load, strided_store"),
        (["accuracy", "--types", "float32,"], 'bad --types ""; valid: all, float32'),
        (
            ["latency", "--energy", "26000"],
            "a window of 26 s, for which ranks wait: BEELINE_DEADLINE_S=30 has to be",
        ),
        (["latency", "--energy-budget", "5"], "--energy-budget: it limits what --energy meters: give both"),
        (["sideways"], "subcommand"),
    ],
)
def test_refuses_what_it_does_not_know(arguments: list[str], reason: str) -> None:
    result = launch(*arguments)
    assert result.returncode != 0
    assert result.stdout == ""
    assert reason in result.stderr


def test_needs_two_ranks() -> None:
    alone = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    command = [str(PROGRAMS / "beeline-bench"), "latency"]
    result = subprocess.run(command, capture_output=True, text=True, env=alone, timeout=60, check=False)
    assert result.returncode == 2
    assert "needs two ranks or more: beeline run -n 2 beeline-bench latency" in result.stderr


def described(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAMS / "beeline-bench"), *arguments, "--describe"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


COMMANDS = [
    "latency", "bandwidth", "rate", "methods", "energy", "launch", "network", "adapters", "address-space",
    "collectives", "accuracy", "overlap", "calls",
]  # fmt: skip


def test_the_description_names_all_commands_operations_and_methods() -> None:
    commands = json.loads(described().stdout)["commands"]
    assert [one["name"] for one in commands] == COMMANDS
    for one in commands:
        assert json.loads(described(one["name"]).stdout)["commands"] == [one]
        methods = {method["name"] for method in one["methods"]}
        assert methods == {name for operation in one["operations"] for name in operation["methods"]}
        assert all(method["summary"] for method in one["methods"])


def is_accepted(command: str, option: Record, text: str) -> bool:
    everything = ["--operations", "all"] * (command not in ("accuracy", "overlap", "calls"))
    beside = {"methods": everything, "energy-budget": ["--energy", "100"]}.get(option["name"], [])
    done = described(command, *beside, f"--{option['name']}", text)
    assert done.returncode in (0, 2), done.stderr
    assert done.returncode == 0 or f"--{option['name']}" in done.stderr
    return done.returncode == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_the_description_is_what_the_parser_accepts(cli: Callable[..., Any], command: str) -> None:
    (one,) = json.loads(described(command).stdout)["commands"]
    text = subprocess.run([str(PROGRAMS / "beeline-bench"), command, "--help"], capture_output=True, text=True).stdout
    in_python = cli("bench", command, "--help", BEELINE_BIN=str(PROGRAMS)).stdout
    for option in one["options"]:
        assert all(f"--{option['name']} " in shown for shown in (text, in_python))
        if option["type"] == "flag":
            (changed,) = json.loads(described(command, f"--{option['name']}").stdout)["commands"]
            assert {o["name"]: o["value"] for o in changed["options"]}[option["name"]] is True
            continue
        good = option["choices"] or [str(option["most"])]
        bad = ["", "x", f"{good[0]},,{good[0]}"]
        if option["choices"] is None:
            bad += [str(option["most"] + 1), str(option["least"] - 1)]
        assert all(is_accepted(command, option, each) for each in good)
        assert is_accepted(command, option, f"{good[0]},{good[-1]}") == option["list"]
        assert not any(is_accepted(command, option, each) for each in bad)


def test_commands_whose_program_is_not_built_say_so(tmp_path: Path) -> None:
    alone = shutil.copy2(PROGRAMS / "beeline-bench", tmp_path)
    done = subprocess.run([alone, "--describe"], capture_output=True, text=True, timeout=60, check=True)
    reasons = {one["name"]: one["reason"] for one in json.loads(done.stdout)["commands"]}
    assert list(reasons) == COMMANDS
    absent = f"{tmp_path}/beeline-bench-collectives is not there; tools/build builds it"
    assert list(reasons.values()) == [None] * 9 + [absent] * 4


def test_without_the_program_the_help_has_all_names_and_a_command_the_reason(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    done = cli("bench", "--help", BEELINE_BIN=str(tmp_path))
    assert done.returncode == 0
    assert {name for name in COMMANDS if f"{name} " in done.stdout} == set(COMMANDS)
    refused = cli("bench", "latency", "--ranks", "2", BEELINE_BIN=str(tmp_path))
    assert refused.returncode != 0
    assert "program beeline-bench is not in" in refused.stderr
