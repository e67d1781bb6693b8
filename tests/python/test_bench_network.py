# SPDX-License-Identifier: Apache-2.0
"""beeline-bench network, on two host ranks of this machine, which acts as two nodes."""

from __future__ import annotations

import json

import pytest
from test_bench import Record, assert_measured, launch, records, results


def network_records(*arguments: str) -> list[Record]:
    """Results with this machine as two nodes."""
    found = results(records("network", *arguments, BEELINE_SPLIT_NODES="2"))
    if any("UCX" in (record["reason"] or "") for record in found):
        pytest.skip(found[0]["reason"])
    return found


def test_the_network_beside_bare_ucx() -> None:
    operations = "message,message_rate,put,get,overhead,puts,window,log_p,loop_back,source_kind,bus_read,socket_read"
    found = network_records("--sizes", "8,64K", "--operations", operations)
    lacking = [record for record in found if not record["available"]]
    assert {record["operation"] for record in lacking} <= {"message", "put", "bus_read", "socket_read"}
    assert {record["method"] for record in lacking} <= {"mpi/staged", "bare/reads"}
    found = [record for record in found if record not in lacking]
    for record in found:
        if record["method"] in {"ucx/sink", "bare/reads"}:
            assert record["verified"] is None  # no rank keeps data that arrive
        elif record["settings"].get("parameter") != "L":  # a difference, which may be negative
            assert_measured(record, ranks=2)
    units = {"message": "us", "overhead": "us", "put": "GB/s", "message_rate": "Mmsg/s", "puts": "Mmsg/s"}
    units |= {"get": "us", "window": "GB/s", "log_p": "us", "loop_back": "GB/s", "source_kind": "us"}
    assert {record["operation"]: record["unit"] for record in found} == units
    ours = [record for record in found if record["baseline"] is not None]
    assert {record["operation"] for record in ours} == set(units) - {"source_kind"}
    baselines = {"message": "ucx/put_flush", "log_p": "ucx/active_messages", "puts": "network/put_signal"}
    baselines |= {"loop_back": "bare/copy", "get": "ucx/get"}
    for record in ours:
        assert record["baseline"] == baselines.get(record["operation"], "ucx/puts")
    network = [r for r in found if r["method"].startswith("network/") and r["operation"] != "puts"]
    assert {(r["settings"]["source"], r["settings"]["destination"]) for r in network} == {("host", "host")}
    windows = {(r["operation"], r["settings"]["window"]) for r in network if "window" in r["settings"]}
    of_messages = {(operation, window) for operation in ("put", "message_rate") for window in (1, 8, 64)}
    assert windows == of_messages | {("window", window) for window in (1, 2, 8, 256)}
    parameters = {r["settings"]["parameter"] for r in found if r["operation"] == "log_p"}
    assert parameters == {"half_round_trip", "o_s", "o_r", "g", "L"}


def test_controls_over_sockets_and_what_is_lacking_without_ucx() -> None:
    operations = "message,get,trigger,task,barrier"
    settings = {"BEELINE_SPLIT_NODES": "2", "BEELINE_TRANSPORTS": "sockets", "BEELINE_UCX": "/nowhere"}
    found = results(records("network", "--sizes", "8", "--operations", operations, **settings))
    if any("no headers of Asio" in (record["reason"] or "") for record in found):
        pytest.skip(found[0]["reason"])
    lacking = [record for record in found if not record["available"] and record["method"] != "mpi/staged"]
    assert {record["method"] for record in lacking} == {"ucx/put_flush", "ucx/active_messages", "ucx/get"}
    assert all("UCX" in record["reason"] for record in lacking)
    measured = [record for record in found if record["available"]]
    for record in measured:
        if record["operation"] != "barrier":  # its check needs stores
            assert_measured(record, ranks=2)
    compared = {record["operation"]: record["baseline"] for record in measured if record["baseline"]}
    assert compared == {
        "trigger": "trigger_then_put_signal", "task": "put_signal_and_answer", "barrier": "two_signals"
    }  # fmt: skip
    assert {record["operation"] for record in measured} == set(operations.split(","))


def test_the_network_among_many_segments() -> None:
    found = network_records("--operations", "lookup")
    rows = [(record["settings"]["segments"], record["method"]) for record in found]
    methods = ("bare/list", "bare/interval_map", "network/put_signal")
    assert rows == [(count, method) for count in (1, 10, 100, 1000, 10000) for method in methods]
    for record in found:
        assert_measured(record, ranks=2)


def test_the_network_needs_two_nodes() -> None:
    found = results(records("network", "--sizes", "8"))
    ours = [record for record in found if record["method"].startswith("network/")]
    assert ours
    assert all("--split-nodes 2" in record["reason"] for record in ours)


def test_triggered_messages_between_nodes() -> None:
    """A loop arms as many operations as a stream takes: those of the loop before are over by then."""
    arguments = ("--operations", "message", "--methods", "triggered/copy_engine/signal", "--sizes", "8")
    done = launch("latency", *arguments, "--iterations", "12", BEELINE_SPLIT_NODES="2")
    assert done.returncode == 0, done.stderr
    found = results([json.loads(line) for line in done.stdout.splitlines()])
    if any("need UCX" in (record["reason"] or "") for record in found):
        pytest.skip(found[0]["reason"])
    back_ends = {record["settings"]["back_end"] for record in found}
    assert back_ends == {"engine", "device_engine", "stream", "guarded_stream"}
    for record in found:
        assert record["verified"] is True
        assert record["median"] > 0
