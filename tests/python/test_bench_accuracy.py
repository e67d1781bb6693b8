# SPDX-License-Identifier: Apache-2.0
"""`beeline bench accuracy`, `overlap` and `calls`: references, errors and times of host ranks, and refusals."""

from __future__ import annotations

import importlib.util
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from beeline.description import call_of
from beeline.ranks import names

np = pytest.importorskip("numpy")
try:
    import beeline.library  # noqa: F401
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

references = pytest.importorskip("beeline.ranks.references")
PROGRAMS = str(Path(__file__).resolve().parents[2] / "build" / "bin")
Record = dict[str, Any]


def measured(run, tmp_path: Path, *arguments: str) -> list[Record]:
    output = tmp_path / "record.jsonl"
    done = run("bench", *arguments, "--device", "cpu", "--output", str(output), BEELINE_BIN=PROGRAMS)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in output.read_text().splitlines()]


@pytest.mark.parametrize("type_name", ["float16", "bfloat16", "float32", "float64"])
def test_what_is_encoded_is_the_next_number(type_name: str) -> None:
    values = np.random.default_rng(3).standard_normal(1000)
    decoded = references.decode(references.encode(values, type_name), type_name)
    assert (abs(decoded - values) <= references.last_place(values, type_name) / 2).all()


@pytest.mark.parametrize(
    ("type_name", "number", "place"),
    [("float32", 1.0, 2.0**-23), ("float32", 0.99, 2.0**-24), ("bfloat16", 3.0, 2.0**-6), ("float16", 0.0, 2.0**-24),
     ("float16", 1e-6, 2.0**-24), ("float64", 8.0, 2.0**-49)],
)  # fmt: skip
def test_the_last_place(type_name: str, number: float, place: float) -> None:
    assert references.last_place(np.array([number], np.longdouble), type_name)[0] == place


def test_errors_are_counted_in_units_of_the_magnitude() -> None:
    vectors = [np.array([1.0, 3.0], "float32"), np.array([2.0**-24, -3.0], "float32")]
    exact = references.reduced(vectors, "float32", "sum")
    assert [Fraction(float(value)) for value in exact.value] == [1 + Fraction(1, 2**24), 0]
    figures = references.errors(np.array([1.0, 2.0**-21], "float32"), exact, "float32")
    assert (figures["max_ulp"], figures["mean_ulp"]) == (1.0, 0.75)  # half of 2^-23; 2^-21 is one unit of 6
    assert figures["correctly_rounded"] == 0.5
    assert figures["max_relative"] == pytest.approx(2.0**-24)


@pytest.mark.parametrize("type_name", names.INTEGERS)
@pytest.mark.parametrize("reduction", ["sum", "average", "product"])
def test_integers_wrap(type_name: str, reduction: str) -> None:
    vectors = [references.draw(5, rank, 50, type_name, reduction, "bits") for rank in range(3)]
    bits = np.dtype(type_name).itemsize * 8

    def wrapped(number: int, width: int, signed: bool) -> int:
        number &= (1 << width) - 1
        return number - (1 << width) if signed and number >> (width - 1) else number

    expected, signed = [], not type_name.startswith("u")
    for one, two, three in zip(*(vector.tolist() for vector in vectors), strict=True):
        whole = wrapped(one * two * three if reduction == "product" else one + two + three, 64, signed)
        if reduction == "average":
            whole = abs(whole) // 3 * (1 if whole >= 0 else -1)
        expected.append(wrapped(whole, bits, signed))
    assert references.reduced(vectors, type_name, reduction).value.tolist() == expected


def test_sums_of_host_ranks(cli_process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three ranks: sums are wrong by two roundings at most; sums of 16 bits only by the last rounding."""
    monkeypatch.setenv("BEELINE_BIN", PROGRAMS)
    algorithms = [name for name in call_of("accuracy").values["methods"] if name.startswith("stream/")]
    arguments = ["--ranks", "3", "--elements", "5000", "--methods", ",".join(algorithms)]
    environment, *results = measured(cli_process, tmp_path, "accuracy", *arguments)
    assert environment["arguments"][:3] == ["beeline-bench", "accuracy", "--methods"]
    assert environment["ranks"] == 3
    assert len(results) == len(algorithms) * (4 * 5 + 5 * 3)
    digests: dict[tuple[str, str, str], set[int]] = {}
    absent = [one for one in results if not one["available"]]
    lines = {"stream/ll128_one_shot", "stream/ll128_two_shot"}
    assert {one["method"] for one in absent} == lines | {"stream/across_nodes", "stream/two_shot_across_nodes"}
    assert all("only GPUs store whole lines" in one["reason"] for one in absent if one["method"] in lines)
    for one in (result for result in results if result["available"]):
        assert one["verified"], one
        assert one["same_bits_on_all_ranks"]
        if one["method"] != names.TREE:
            digests.setdefault((one["type"], one["reduction"], one["data"]), set()).add(one["digest"])
        if one["type"] in names.INTEGERS:
            assert one["wrong"] == 0
        elif one["type"] in ("float16", "bfloat16"):
            assert one["max_ulp"] < 0.51
            assert one["correctly_rounded"] > 0.99
        else:
            assert 0 < one["mean_ulp"] < one["max_ulp"] < 2.5
    assert all(len(each) == 1 for each in digests.values()), "what combines in the order of ranks has the same bits"


def test_absent_peers_say_why(cli_process, tmp_path: Path) -> None:
    arguments = ["--ranks", "2", "--types", "float16", "--reductions", "product", "--elements", "8"]
    _, *results = measured(cli_process, tmp_path, "accuracy", *arguments, "--methods", "nccl/stream,mpi/host")
    assert [(one["method"], one["reason"]) for one in results] == [
        ("nccl/stream", "ranks are not on GPUs"),
        ("mpi/host", "ranks were not started by mpirun, as MPI's are"),
    ]


def test_host_ranks_have_no_product_of_matrices_beside(cli_process, tmp_path: Path) -> None:
    environment, *results = measured(cli_process, tmp_path, "overlap", "--blocks", "8,16", "--size", "1M")
    assert environment["arguments"][1] == "overlap"
    assert [(one["method"], one["settings"]["blocks"]) for one in results] == [
        ("stream/automatic", None), ("stream/two_shot", 8), ("stream/two_shot", 16), ("stream/bulk", 8),
        ("stream/bulk", 16), ("stream/copy_engine", None), ("nccl/stream", None),
    ]  # fmt: skip
    assert {one["reason"] for one in results} == {"ranks are not on GPUs"}
    assert all(one["median"] is None for one in results)


def gpus() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


@pytest.mark.skipif(gpus() < 2, reason="torch with two GPUs is needed")
def test_products_of_matrices_beside_all_reduces(cli_process, tmp_path: Path) -> None:
    output = tmp_path / "record.jsonl"
    arguments = ["--size", "16M", "--matrix", "4096", "--blocks", "8", "--rounds", "1", "--output", str(output)]
    done = cli_process("bench", "overlap", *arguments, BEELINE_BIN=PROGRAMS)
    assert done.returncode == 0, done.stderr
    _, *results = [json.loads(line) for line in output.read_text().splitlines()]
    assert "nccl/stream" in {one["method"] for one in results}
    for one in results:
        assert one["verified"], one
        assert one["matmul_beside_tflops"] > 0
        assert one["allreduce_beside_us"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["accuracy", "--types", "float8"], 'bad --types "float8"; valid: all, float32, float64, float16'),
        (["accuracy", "--reductions", "sum,mean"], 'bad --reductions "mean"; valid: all, sum'),
        (["accuracy", "--methods", "tree"], 'bad --methods "tree"; valid: all, stream/ll_one_shot'),
        (["accuracy", "--ranks", "0"], "valid: 1 to 1024"),
        (["overlap", "--methods", "stream/tree"], 'bad --methods "stream/tree"; valid: all, stream/automatic'),
        (["overlap", "--size", "8,16"], 'bad --size "8,16"; valid: 16 to 16G bytes, a multiple of 16'),
        (["overlap", "--blocks", "0"], 'bad --blocks "0"; valid: 1 to 1024'),
    ],
)
def test_what_is_refused(cli, arguments: list[str], message: str) -> None:
    done = cli("bench", *arguments, BEELINE_BIN=PROGRAMS)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_blocking_calls_from_python(cli_process, tmp_path: Path) -> None:
    """Without mpirun, mpi4py says why it is not available; the methods that it is a peer of have times."""
    arguments = ["--launcher", "beeline", "--sizes", "1,4096", "--methods"]
    _, *results = measured(cli_process, tmp_path, "calls", *arguments, "python/messages,python/signals,mpi4py/host")
    lacking = [one for one in results if not one["available"]]
    assert {one["reason"] for one in lacking} == {"ranks were not started by mpirun, as MPI's are"}
    assert {one["operation"]: one["peer_of"] for one in lacking} == {
        "message": "python/messages", "allreduce": "python/collectives", "barrier": "python/world",
        "allreduce_value": "python/world",
    }  # fmt: skip
    times = {(one["method"], one["bytes"]): one["median"] for one in results if one["available"]}
    assert set(times) == {(method, size) for method in ("python/messages", "python/signals") for size in (1, 4096)}
    assert all(0 < time < 1e6 for time in times.values())


def test_only_the_operations_that_are_asked_for(cli_process, tmp_path: Path) -> None:
    """Operations that were not asked for allocate nothing: a host rank's heap has no room for vectors of 1 GB."""
    methods = "python/messages,python/signals,python/collectives"
    arguments = ["--sizes", "8,1G", "--operations", "barrier,allreduce_value", "--methods", f"{methods},python/world"]
    _, *results = measured(cli_process, tmp_path, "calls", *arguments)
    assert [(one["operation"], one["method"]) for one in results] == [
        ("barrier", "python/world"), ("allreduce_value", "python/world"),
    ]  # fmt: skip


def test_eager_calls_of_torch(cli_process, tmp_path: Path) -> None:
    """Without torch each method says so; NCCL says why host ranks lack it; the times of the others are split."""
    methods = {f"torch_eager/{name}" for name in ("beeline", "gloo", "nccl")}
    arguments = ["--sizes", "8,20K", "--type", "float32", "--methods", ",".join(methods)]
    environment, *results = measured(cli_process, tmp_path, "calls", *arguments)
    assert environment["event"] == "environment"
    assert {one["method"] for one in results} == methods
    reasons = {(one["method"], one["reason"]) for one in results if not one["available"]}
    if importlib.util.find_spec("torch") is None:
        assert reasons == {(method, "torch is not installed") for method in methods}
        return
    assert reasons == {("torch_eager/nccl", "NCCL is for GPUs")}
    times = {(one["operation"], one["method"], one["bytes"]): one for one in results if one["available"]}
    operations = ("allreduce", "allgather", "reduce_scatter", "alltoall")
    assert set(times) == {
        (operation, method, size) for operation in operations for method in methods for size in (8, 20 << 10)
        if method != "torch_eager/nccl"
    }  # fmt: skip
    for (_, method, size), one in times.items():
        assert one["verified"], one
        assert 0 < one["call_us"] < 1e6, one  # of its batches' medians: may exceed the median of the times
        assert 0 < one["median"] < 1e6, one
        assert one["single_us"] > 0
        assert one["first_us"] > 0
        assert one["transfer_us"] is None
        own = method == "torch_eager/beeline"
        assert (one["launch_us"] is not None) == own
        assert one["last_transfer"] == (("packets" if size == 8 else "staged") if own else None)
