# SPDX-License-Identifier: Apache-2.0
"""Ranks on two hosts, which are network namespaces of this machine: how they start, and how they end together. Faults
of the network are in test_hosts_faults.py."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import beeline
import pytest
from conftest import skip_without_ucx
from hosts import RANK, Hosts, ends, hosts_of, run, skip_without_tls
from processes import eventually


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    yield from hosts_of(2)


def test_a_world_on_two_hosts(hosts: Hosts) -> None:
    for rank, (status, out, err) in enumerate(ends([hosts.start(rank, "200") for rank in range(2)])):
        assert status == 0, err
        assert f"rank {rank} has played 200 rounds" in out


def expect_rounds(started: list[subprocess.Popen[str]], rounds: int) -> None:
    every = ends(started)
    for status, _, err in every:
        assert status == 0, err
    played = "".join(out for _, out, _ in every)
    for rank in range(2):
        assert f"rank {rank} has played {rounds} rounds" in played


def expect_ranks_of_srun(hosts: Hosts, **more: str) -> None:
    """Ranks start with the variables that srun 22.05 sets for a step on two hosts."""

    def of_rank(rank: int) -> dict[str, str]:
        return {
            "SLURM_PROCID": str(rank), "SLURM_LOCALID": "0", "SLURM_NODEID": str(rank), "SLURM_NTASKS": "2",
            "SLURM_NNODES": "2", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_NUM_NODES": "2", "SLURM_CLUSTER_NAME": "cluster",
            "SLURM_LAUNCH_NODE_IPADDR": hosts.addresses[0],
        } | more  # fmt: skip

    expect_rounds([hosts.execute(rank, [str(RANK), "20"], of_rank(rank)) for rank in range(2)], 20)


def test_ranks_of_srun_meet(hosts: Hosts, tmp_path: Path) -> None:
    """With the variables that a user may set, and without them."""
    expect_ranks_of_srun(hosts)
    expect_ranks_of_srun(hosts, HOME=str(tmp_path), MASTER_ADDR="", BEELINE_TOKEN="")
    assert list((tmp_path / ".beeline").iterdir()) == []


def test_containers_meet_whose_names_are_known_late(hosts: Hosts) -> None:
    """As in Kubernetes: each rank is given its number and the name of the first; only the system starts the ranks."""

    def of_rank(rank: int) -> dict[str, str]:
        return {"BEELINE_RANK": str(rank), "BEELINE_SIZE": "2", "MASTER_ADDR": "job-0.job"}

    ranks = [hosts.execute(rank, [str(RANK), "20"], of_rank(rank)) for rank in range(2)]
    with pytest.raises(subprocess.TimeoutExpired):
        ranks[1].wait(0.7)
    hosts.name_host(0, "job-0.job")
    expect_rounds(ranks, 20)


def test_ranks_of_mpirun_meet(hosts: Hosts, tmp_path: Path) -> None:
    mpirun = shutil.which("mpirun")
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True, check=False) if mpirun else None
    if mpirun is None or version is None or "Open MPI" not in version.stdout:
        pytest.skip("no mpirun of Open MPI")
    variables = {"HOME": str(tmp_path), "MASTER_ADDR": "", "BEELINE_TOKEN": "", "BEELINE_DEADLINE_S": "60"}
    exported = [word for name in hosts.meeting() | variables for word in ("-x", name)]
    command = [
        mpirun, "--allow-run-as-root", "-n", "2", "--host", ",".join(hosts.addresses), "--map-by", "node",
        "--mca", "plm_rsh_agent", str(hosts.write_ssh(tmp_path)), *exported, str(RANK), "50",
    ]  # fmt: skip
    expect_rounds([hosts.execute(0, command, variables)], 50)


def test_ranks_of_torchrun_meet(hosts: Hosts, tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")

    def of_host(host: int) -> list[str]:
        return [
            sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--node-rank",
            str(host), "--master-addr", hosts.addresses[0], "--master-port", "29400", "--no-python", str(RANK), "50",
        ]  # fmt: skip

    variables = {"HOME": str(tmp_path), "BEELINE_TOKEN": "", "BEELINE_DEADLINE_S": "60"}  # torchrun starts them
    expect_rounds([hosts.execute(host, of_host(host), variables) for host in range(2)], 50)


def test_networks_that_do_not_connect_the_hosts_are_left_alone(hosts: Hosts) -> None:
    """Each host has a bridge with the same address, as Docker creates it, and networks that the other cannot reach."""
    for host in range(2):
        hosts.add_network(host, "a-docker0", "172.17.0.1/16")
        for number in range(3):
            hosts.add_network(host, f"a-storage{number}", f"192.168.{10 * number + host}.5/24")
    expect_rounds([hosts.start(rank, "20") for rank in range(2)], 20)
    chosen = {"UCX_NET_DEVICES": "a-storage0", "BEELINE_DEADLINE_S": "2"}
    for status, _, err in ends([hosts.start(rank, "20", **chosen) for rank in range(2)]):
        assert status != 0
        assert "uses UCX_NET_DEVICES=a-storage0, rank" in err


@pytest.fixture
def hosts_of_ipv6() -> Iterator[Hosts]:
    yield from hosts_of(2, "fd77::{}/64")


def test_hosts_may_have_ipv6_alone(hosts_of_ipv6: Hosts, tmp_path: Path) -> None:
    hosts = hosts_of_ipv6
    expect_rounds([hosts.launch(hosts.write_ssh(tmp_path), "20")], 20)
    expect_ranks_of_srun(hosts, HOME=str(tmp_path), MASTER_ADDR="", BEELINE_TOKEN="")
    # The same devices also have IPv4 addresses, by which the hosts cannot reach each other.
    for host, (name, device) in enumerate(zip(hosts.names, hosts.devices, strict=True)):
        run("ip", "-n", name, "addr", "add", f"192.168.{host}.5/24", "dev", device)
    expect_rounds([hosts.start(rank, "20") for rank in range(2)], 20)


STORES = """
import sys
import beeline.torch_backend as backend, torch, torch.distributed as dist
dist.init_process_group("beeline")
world = dist.group.WORLD.world
store = backend.make_store(world)
store.set(f"rank {world.rank}", sys.argv[1])
assert store.get(f"rank {1 - world.rank}") == b"on its host"
dist.all_reduce(tensor := torch.full((100,), world.rank + 1.0))
assert (tensor == 3).all()
dist.destroy_process_group()
"""


def test_ranks_meet_by_torchs_store_and_get_one(hosts: Hosts) -> None:
    """No launcher says where rank 0 is, and BEELINE_TOKEN is empty."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    command = [sys.executable, "-c", STORES, "on its host"]
    settings = {"WORLD_SIZE": "2", "BEELINE_TOKEN": "", "BEELINE_HEAP_BYTES": "64M", "BEELINE_DEADLINE_S": "15"}
    started = [hosts.execute(host, command, settings | {"RANK": str(host)}) for host in range(2)]
    for status, _, err in ends(started):
        assert status == 0, err


def test_torch_operations_under_torchrun(hosts: Hosts) -> None:
    """One rank on the first host, two on the second."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    program = str(Path(__file__).with_name("torch_rank.py"))

    def of_host(host: int) -> list[str]:
        return [
            sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", str(host + 1),
            "--node-rank", str(host), "--master-addr", hosts.addresses[0], "--master-port", "29400",
            program, "operations", "cpu",
        ]  # fmt: skip

    settings = {"BEELINE_HEAP_BYTES": "256M", "BEELINE_DEADLINE_S": "30", "BEELINE_TORCH_NATIVE": "0"}
    settings["OMP_NUM_THREADS"] = "1"
    every = ends([hosts.execute(host, of_host(host), settings) for host in range(2)])
    for status, out, err in every:
        assert status == 0, out + err
    assert "".join(out for _, out, _ in every).count(": refusals") == 3


def test_a_wrong_token_is_refused(hosts: Hosts) -> None:
    ranks = [hosts.start(0, BEELINE_DEADLINE_S="2"), hosts.start(1, BEELINE_TOKEN="another")]
    (_, _, first), (status, _, second) = ends(ranks)
    assert status != 0
    assert "token" in second
    assert "rank 1" in first


@pytest.mark.parametrize("security", ["--trusted-network", "--secure"])
def test_run_starts_ranks_over_ssh(hosts: Hosts, tmp_path: Path, security: str) -> None:
    if security == "--secure":
        skip_without_tls()
    [(status, out, err)] = ends([hosts.launch(hosts.write_ssh(tmp_path), "50", security=security)])
    assert status == 0, err
    for rank in range(2):
        assert f"[{rank}] rank {rank} has played 50 rounds" in out


def test_a_rank_over_ssh_hears_its_arguments_and_variables(hosts: Hosts, tmp_path: Path) -> None:
    script = tmp_path / "a program"
    script.write_text('#!/bin/sh\necho "$BEELINE_RANK of $BEELINE_SIZE: $1|$2|$BEELINE_TOKEN"\nexit 3\n')
    script.chmod(0o755)
    [(status, out, err)] = ends([hosts.launch(hosts.write_ssh(tmp_path), "it's", "two words", program=script)])
    assert status == 3
    assert "of 2: it's|two words|" in out
    token = out.split("|")[2].splitlines()[0]
    assert len(token) >= 32
    assert "exited with code 3" in err


def test_ranks_over_ssh_end_with_their_launcher(hosts: Hosts, tmp_path: Path) -> None:
    launcher = hosts.launch(hosts.write_ssh(tmp_path), "1000000000")
    assert launcher.stdout is not None
    assert "has met" in launcher.stdout.readline()
    commands = hosts.processes()
    assert sum(str(RANK) in line for line in commands) >= 2
    secrets = [word for line in commands for word in line.split("\0") if "TOKEN=" in word]
    assert secrets == []
    launcher.kill()
    ends([launcher])
    assert eventually(lambda: not hosts.processes()), hosts.processes()


def test_the_end_of_the_launchers_host_ends_ranks_elsewhere(hosts: Hosts, tmp_path: Path) -> None:
    launcher = hosts.launch(hosts.write_ssh(tmp_path), "1000000000")
    assert launcher.stdout is not None
    assert "has met" in launcher.stdout.readline()
    hosts.cut()
    (status, _, err) = ends([launcher])[0]
    assert status != 0
    assert "rank 1" in err
    assert eventually(lambda: not hosts.processes()), hosts.processes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-n", "1", "--hosts", "a,b"], "2 hosts for 1 ranks"),
        (["-n", "2", "--hosts", "a,-oProxyCommand=x"], "is no host"),
        (["-n", "2", "--hosts", "host.invalid", "--trusted-network"], "host.invalid"),
        (["-n", "2", "--hosts", "a", "--threads"], "--threads"),
        (["-n", "2", "--ssh", "rsh"], "--hosts"),
    ],
)
def test_bad_hosts_are_refused(options: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "beeline", "run", *options, "true"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


def test_several_hosts_need_encryption_or_a_trusted_network() -> None:
    command = [sys.executable, "-m", "beeline", "run", "-n", "1", "--hosts", "127.0.0.1", "--ssh", "echo"]

    def run_with(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *options, "true"], capture_output=True, text=True, timeout=30, check=False)

    refused = run_with()
    assert refused.returncode == 2
    assert "whoever can reach the ranks' network ports could write to their memory: --secure" in refused.stderr
    trusted = run_with("--trusted-network")
    assert "127.0.0.1 sh -c" in trusted.stdout
    assert "BEELINE_SECURE" not in trusted.stdout
    assert trusted.stderr == ""
    skip_without_tls()
    assert "BEELINE_SECURE=" in run_with("--secure").stdout


def test_a_host_that_ssh_does_not_reach_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\necho "$1 $2: no route to $3" >&2\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    command = ["-m", "beeline", "run", "-n", "1", "--hosts", "127.0.0.1", "--trusted-network", "true"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 255
    assert "-o ConnectTimeout=8: no route to 127.0.0.1" in done.stderr
    assert "rank 0 on 127.0.0.1 (pid " in done.stderr
    assert "exited with code 255: ssh did not reach the host, or has lost it" in done.stderr


def test_a_host_that_does_not_answer_is_named_while_the_others_wait(tmp_path: Path) -> None:
    """Of two addresses in 127.0.0.0/8, one starts its rank; the other's ssh hangs."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\n[ "$1" = 127.0.0.1 ] || exec sleep 60\nshift; exec sh -c "$*"\n')
    ssh.chmod(0o755)
    command = [
        "-m", "beeline", "run", "-n", "2", "--device", "cpu", "--deadline", "60", "--ssh", str(ssh),
        "--hosts", "127.0.0.1,127.0.0.2", "--trusted-network", str(RANK), "20",
    ]  # fmt: skip
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True) as launcher:
        assert launcher.stderr is not None
        line = next(line for line in launcher.stderr if "warning" not in line)
        launcher.terminate()
    assert "no answer for 9 s from 127.0.0.2, where" in line
    assert "was to start rank 1" in line
    assert "the host answers" not in line


def run_split(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "beeline", *arguments, "--device", "cpu", "--split-nodes", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    skip_without_ucx(done.stderr)
    return done


BRIEF = ("--iterations", "10")  # otherwise about a second for each method


@pytest.mark.parametrize(
    ("app", "options", "methods"),
    [
        (
            "jacobi",
            ("--size", "16", *BRIEF),
            ["host", "stream", "proxy", "triggered", "device", "task", "proxy_device"],
        ),
        (
            "himeno",
            ("--size", "16x16x16", *BRIEF),
            ["in_kernel", "block_signals", "stream_kernels", "host_copy_engine", "host_staged", "persistent"],
        ),
        ("tree-search", (), ["task"]),
    ],
)
def test_an_application_on_two_nodes_of_this_machine(app: str, options: tuple[str, ...], methods: list[str]) -> None:
    done = run_split("app", app, "--method", ",".join(methods), "--ranks", "4", *options, "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    results = [line for line in lines if line["event"] == "result"]
    assert lines[0]["variables"]["BEELINE_SPLIT_NODES"] == "2"
    assert {result["method"] for result in results} == set(methods)
    assert all(result["verified"] for result in results)


def test_loads_and_stores_across_nodes_are_refused() -> None:
    done = run_split(
        "app", "himeno", "--method", "global_address_space", "--size", "16x16x16", "--ranks", "2", "--json"
    )
    assert done.returncode != 0
    assert "at refused: loads and stores do not reach rank" in done.stdout + done.stderr
    assert "an engine does (use put, get, signal or atomics)" in done.stdout + done.stderr


def test_more_nodes_than_ranks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEELINE_SPLIT_NODES", "3")
    with pytest.raises(beeline.InvalidArgumentError, match=r"3 nodes of a machine .* for a world of 2"):
        beeline.run(2, lambda world: world.rank, device="cpu")


def test_info_says_how_ranks_reach_each_other_and_why() -> None:
    options = ["--ranks", "4", "--device", "cpu", "--split-nodes", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "beeline", "info", *options, "--json"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    skip_without_ucx(done.stderr)
    assert done.returncode == 0, done.stderr
    paths = {(path["from"], path["to"]): path for path in json.loads(done.stdout)["paths"]}
    assert set(paths) == {(a, b) for a in range(4) for b in range(4) if a != b}
    assert paths[0, 1]["operations"] == "loads and stores"
    assert "one node" in paths[0, 1]["reason"]
    assert paths[0, 2]["operations"] == "commands to an engine"
    assert "rank 2 is on node 1, rank 0 on node 0: UCX" in paths[0, 2]["reason"]
    assert "memory keys" not in paths[0, 2]["reason"]


def test_info_says_which_puts_go_by_memory_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEELINE_MEMORY_KEYS", "always")
    done = subprocess.run(
        [sys.executable, "-m", "beeline", "info", "--ranks", "2", "--device", "cpu", "--split-nodes", "2", "--json"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    skip_without_ucx(done.stderr)
    assert done.returncode == 0, done.stderr
    for path in json.loads(done.stdout)["paths"]:
        assert "carries operations, gets and long puts by memory keys (" in path["reason"]
