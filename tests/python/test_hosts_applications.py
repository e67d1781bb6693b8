# SPDX-License-Identifier: Apache-2.0
"""Applications and the documents' examples, unchanged, on two and three hosts: each method that needs no plain loads
and stores between ranks, checked against the serial reference."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hosts import PROGRAMS, Hosts, ends, hosts_of

BRIEF = ("--iterations", "5")


def on_each(hosts: Hosts, program: str, *arguments: str) -> list[tuple[int, str, str]]:
    """Status, output and errors of one rank of the program on each host."""
    ranks = [
        hosts.start(rank, *arguments, program=PROGRAMS / program, BEELINE_HEAP_BYTES="64M")
        for rank in range(len(hosts.names))
    ]
    return ends(ranks)


@pytest.fixture(params=[2, 3])
def hosts(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    yield from hosts_of(request.param)


@pytest.mark.parametrize(
    ("app", "options", "methods"),
    [
        (
            "jacobi",
            ("--size", "16", *BRIEF),
            "host,stream,proxy,proxy_device,triggered,triggered_device,task,device",
        ),
        (
            "himeno",
            ("--size", "16x16x16", *BRIEF),
            "host_staged,host_copy_engine,stream_kernels,in_kernel,block_signals,persistent,gaspi_device",
        ),
        (
            "ring-reduction",
            ("--size", "4K", "--reductions", "5"),
            "host,stream,proxy,proxy_device,triggered,triggered_stream,task,device,device_packets",
        ),
        ("tree-search", (), "task"),
        ("random-access", ("--words", "1K", "--divisor", "8"), "atomics,put,task"),
        ("breadth-first", ("--scale", "10", "--roots", "2"), "alltoallv,message,put,bitmap"),
        ("spin-glass", ("--size", "4x4x8", "--sweeps", "4"), "off,receive,both,device"),
    ],
)
def test_an_application_on_several_hosts(hosts: Hosts, app: str, options: tuple[str, ...], methods: str) -> None:
    results = []
    for status, out, err in on_each(hosts, app, "--method", methods, *options):
        assert status == 0, err
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        results += [line for line in lines if line["event"] == "result"]
    assert [result["method"] for result in results] == methods.split(",")
    assert all(result["verified"] for result in results)
    assert all(result["ranks"] == len(hosts.names) for result in results)


TUTORIAL = (
    "all_reduce", "graph", "hello", "inspect", "largest", "memory_kinds", "messages", "neighbour", "on_streams",
    "one_sided", "ping_pong", "post", "ring", "symmetric", "task", "task_kernel", "team_sum", "trigger",
)  # fmt: skip


def test_the_examples_of_the_documents_on_several_hosts(hosts: Hosts) -> None:
    for name in TUTORIAL:
        for status, _, err in on_each(hosts, f"example_{name}"):
            assert status == 0, f"{name}: {err}"


@pytest.mark.parametrize(
    ("program", "arguments", "reason"),
    [
        ("tree-search", ("--method", "bulk"), "at refused: loads and stores do not reach rank"),
        ("random-access", ("--words", "1K", "--method", "mailboxes"), "at refused: loads and stores do not reach rank"),
        ("himeno", ("--method", "global_address_space"), "at refused: loads and stores do not reach rank"),
        ("example_rma", (), "an RMA port needs memory that all members share: rank"),
        ("example_verbs", (), "a verbs-style queue pair needs memory that all members share: rank"),
    ],
)
def test_plain_loads_and_stores_are_refused(
    hosts: Hosts, program: str, arguments: tuple[str, ...], reason: str
) -> None:
    every = on_each(hosts, program, *arguments)
    assert all(status != 0 for status, _, _ in every)
    assert any(reason in err for _, _, err in every)
