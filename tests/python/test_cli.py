# SPDX-License-Identifier: Apache-2.0
"""The command line with fake programs behind it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import beeline
import pytest
from conftest import FAKES

COMMANDS = {
    (): ["info", "run", "bench", "app", "energy", "plot", "build-torch"],
    ("info",): ["SECTION", "--all", "--ranks", "--json"],
    ("run",): [
        *("-n", "--threads", "--device", "--deadline", "--check", "--keep-going", "--split-nodes", "--json", "PROGRAM"),
    ],
    ("bench",): ["latency", "bandwidth", "rate", "address-space", "collectives"],
    ("bench", "latency"): ["--methods", "--sizes", "--ranks", "--iterations", "--energy", "--json", "--output"],
    ("bench", "bandwidth"): ["--methods", "--sizes", "--ranks", "--iterations", "--json", "--output"],
    ("bench", "energy"): ["--set", "--window", "--budget", "--ranks", "--json", "--output"],
    ("bench", "launch"): ["--iterations", "--size", "--window", "--device", "--json", "--output"],
    ("bench", "files"): ["--sizes", "--folder", "--memory", "--rounds", "--turns", "--json", "--output"],
    ("bench", "floating"): ["--sizes", "--measurements", "--json", "--output"],
    ("bench", "objects"): ["--sizes", "--blocks", "--measurements", "--json", "--output"],
    ("bench", "gaspi"): ["--sizes", "--gpi2", "--turns", "--ranks", "--split-nodes", "--json", "--output"],
    ("bench", "rate"): ["--methods", "--operations", "--sizes", "--table", "--ranks", "--iterations", "--json"],
    ("bench", "address-space"): ["--operations", "--ranks", "--iterations", "--json", "--output"],
    ("bench", "collectives"): [
        "--methods", "--operations", "--sizes", "--type", "--blocks", "--launcher", "--ranks", "--json", "--output",
    ],
    ("energy",): ["COMMAND", "--output", "--picture", "--period", "--json"],
    ("plot",): ["RECORD", "--output", "-o", "--over", "--show"],
    ("build-torch",): ["--deadline", "--json"],
    ("app",): [
        "breadth-first", "fft", "global-reduction", "himeno", "jacobi", "merge-sort", "random-access", "ring-reduction",
        "spin-glass", "stencil", "tree-search",
    ],
    ("app", "breadth-first"): [
        "--scale", "--root", "--roots", "--ranks", "--method", "--validate", "--no-verify", "--official", "--json",
    ],
    ("app", "global-reduction"): ["--values", "--ranks", "--method", "--reductions", "--mpirun", "--json", "--output"],
    ("app", "himeno"): [
        "--size", "--preset", "--ranks", "--method", "--scaling", "--no-verify",
        "--json", "--output",
    ],
    ("app", "fft"): ["--size", "--devices", "--method", "--transforms", "--write", "--no-verify", "--json"],
    ("app", "jacobi"): ["--size", "--ranks", "--method", "--iterations", "--until", "--every", "--json", "--output"],
    ("app", "random-access"): [
        "--words", "--weak", "--ranks", "--method", "--divisor", "--mpirun", "--no-verify", "--json", "--output",
    ],
    ("app", "ring-reduction"): ["--size", "--ranks", "--method", "--reductions", "--no-verify", "--json", "--output"],
    ("app", "merge-sort"): ["--keys", "--bits", "--devices", "--method", "--sorts", "--no-verify", "--json"],
    ("app", "stencil"): ["--size", "--devices", "--method", "--steps", "--no-verify", "--json", "--output"],
    ("app", "spin-glass"): [
        "--size", "--weak", "--couplings", "--heat-bath", "--temperature", "--ranks", "--method", "--sweeps",
        "--no-verify", "--json", "--output",
    ],
    ("app", "tree-search"): ["--nodes", "--seed", "--ranks", "--method", "--searches", "--no-verify", "--json"],
}  # fmt: skip

BAD = {
    ("bench", "latency", "--sizes", "8,many"): 'beeline-bench: bad --sizes "many"; valid:',
    ("bench", "latency", "--ranks", "1025"): "--ranks",
    ("bench", "latency", "--device", "tpu"): "valid: auto, cpu, cuda:ID",
    ("run", "-n", "2", "--device", "cpu,1", "true"): "an entry for each rank",
    ("bench", "latency", "--output", "/no/such/folder/file"): "cannot be written",
    ("bench", "address-space", "--ranks", "1025"): "--ranks",
    ("bench", "latency", "--ranks", "1"): "--ranks",
    ("bench", "collectives", "--threads", "--launcher", "mpirun"): "mpirun starts processes: leave --threads",
    ("bench", "latency", "--table", "8"): "--table",
    ("bench", "throughput"): "throughput",
    ("app", "himeno", "--ranks", "1,zwei"): "'zwei' is no number of ranks",
    ("app", "himeno", "--ranks", "0"): "valid: 1 to 1024",
    ("app", "tree-search", "--method", "bulk,"): "'bulk,' holds an empty name",
    ("app", "himeno", "--scaling", "medium"): "strong",
    ("app", "himeno", "--scaling", "weak", "--ranks", "4"): "weak scaling compares numbers of ranks: give several",
    ("app", "himeno", "--preset", "strong", "-n", "8"): "strong scaling compares numbers of ranks: give several",
    ("app", "himeno", "--preset", "weak", "--size", "XS"): "leave --size and --scaling out",
    ("app", "himeno", "--preset", "strong", "--scaling", "weak"): "leave --size and --scaling out",
    ("app", "himeno", "--preset", "huge"): "table-5.6",
    ("app", "himeno", "--method", "magic"): "valid: host_staged, in_kernel, needs_gpu",
    ("app", "global-reduction", "--mpirun", "--threads"): "mpirun starts processes",
    ("app", "global-reduction", "--method", "magic"): "valid: mpi, in_kernel",
    ("app", "random-access", "--mpirun", "--threads"): "mpirun starts processes",
    ("app", "random-access", "--method", "magic"): "valid: mpi, bare, put",
    ("app", "ring-reduction", "--ranks", "1025"): "valid: 1 to 1024",
    ("app", "ring-reduction", "--method", "magic"): "valid: host, device",
    ("app", "spin-glass", "--method", "magic"): "valid: off, both",
    ("app", "tree-search", "--method", "magic"): "valid: bulk, task",
    ("app", "stencil", "--method", "magic"): "valid: proxy, unified",
    ("app", "merge-sort", "--method", "magic"): "valid: copied_keys, remote_reads",
    ("run", "-n", "0", "true"): "--ranks",
    ("run", "-n", "2", "--deadline", "-1", "true"): "--deadline",
    ("energy", "--output", "/no/such/folder/file", "--", "true"): "cannot be written",
    ("energy", "--picture", "power.txt", "--", "true"): "names that end in .png or .svg",
    ("energy", "--period", "0", "--", "true"): "--period",
    ("energy", "--output", "/dev/null"): "COMMAND",
    ("run",): "PROGRAM",
    ("fly",): "fly",
}  # fmt: skip


def json_lines(done: subprocess.CompletedProcess[str]) -> list[dict]:
    """Every line of standard output as an object; fails if a line is none."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def results_of(done: subprocess.CompletedProcess[str]) -> list[dict]:
    return [line for line in json_lines(done) if line["event"] == "result"]


def words(text: str) -> str:
    """The text without the frames and line breaks that Rich puts around messages."""
    return " ".join(re.sub(r"[│╭╮╰╯─┃]", " ", text).split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_names_every_option(cli, command):
    done = cli(*command, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for name in COMMANDS[command]:
        assert name in done.stdout


def test_every_help_is_shown_in_ascii(cli, monkeypatch):
    for command in COMMANDS:
        shown = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))
        done = cli(*command, "--help")
        assert done.returncode == 0, (command, done.stderr)
        assert b"Usage" in shown.getvalue()


def test_tables_and_errors_are_shown_in_ascii(cli_process):
    done = cli_process("info", "reach", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "who reaches whose memory" in done.stdout.lower()
    assert done.stdout.isascii()
    done = cli_process("app", "himeno", "--ranks", "2×2", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "is no number of ranks" in done.stderr
    done = cli_process("bench", "latency", PYTHONIOENCODING="ascii", FAKE_NAME="µ\u4e2d")
    assert done.returncode == 0, done.stderr
    assert "not measured: u?" in done.stdout


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_arguments_are_refused_on_standard_error(cli, arguments):
    done = cli(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert BAD[arguments] in words(done.stderr)
    given = ["--ranks" if one == "-n" else one for one in arguments if one.startswith("-") and one != "--"]
    assert BAD[arguments] == "COMMAND" or not given or any(one in words(done.stderr) for one in given)


def test_numbers_of_many_digits_are_refused(cli):
    done = cli("app", "ring-reduction", "--ranks", "9" * 5000)
    assert done.returncode == 2
    assert "Invalid value for '--ranks'" in words(done.stderr)


def test_version_is_that_of_the_library(cli, repository):
    assert cli("--version").stdout == f"beeline {beeline.__version__}\n"
    header = (repository / "include/beeline/core/version.h").read_text()
    numbers = re.findall(r"#define BEELINE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    assert ".".join(numbers) == beeline.__version__


def test_missing_program_is_named_with_what_to_do(cli, tmp_path):
    done = cli("info", BEELINE_BIN=str(tmp_path))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "beeline-info" in done.stderr
    assert "BEELINE_BIN" in done.stderr


def test_info_as_json_is_one_line(cli):
    done = cli("info", "--json")
    assert done.returncode == 0
    (report,) = json_lines(done)
    assert report["devices"][1]["uuid"] == "GPU-1"


def test_info_begins_with_ten_lines(cli):
    done = cli("info", BEELINE_LOG="error", COLUMNS="100")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert 8 <= len(lines) <= 12
    for text in (
        "Fake CPU, 2 cores", "2 × Fake GPU, 140.4 GiB", "compiled for 90a; driver 13.0", "in 1 of 2 directions",
        "GPU kernel to GPU memory: load, store, atomic", "1 of 2 are available", "no: libucp.so.0 is not here",
        "torchrun: rank 1 of 2", "set in the environment: BEELINE_LOG", "algorithms settings, or --all",
    ):  # fmt: skip
        assert text in done.stdout
    for text in ("GPU-1", "device/peer/ll", "most detailed log level"):
        assert text not in done.stdout


@pytest.mark.parametrize(
    ("section", "texts"),
    [
        ("devices", ["GPU-1"]),
        ("links", ["peer access, atomics"]),
        ("reach", ["load, store, atomic"]),
        ("algorithms", ["data and flag together", "no: no GPU of this kind"]),
        ("settings", ["most detailed log level"]),
    ],
)
def test_info_shows_the_sections_that_are_named(cli, section, texts):
    done = cli("info", section)
    assert done.returncode == 0
    assert all(text in done.stdout for text in texts)
    assert "Fake CPU" not in done.stdout


def test_info_refuses_an_unknown_section(cli):
    done = cli("info", "nonsense")
    assert done.returncode == 2
    assert "valid: machine, devices," in done.stderr


def test_info_shows_everything(cli):
    done = cli("info", "--all")
    assert done.returncode == 0
    for text in (
        "Fake GPU", "GPU-1", "peer access, atomics", "load, store, atomic", "device/peer/ll",
        "no: no GPU of this kind", "BEELINE_LOG", "Fake CPU", "140.4 GiB", "driver 13.0",
        "torchrun: rank 1 of 2, on several hosts", "no peer access; copies staged through host memory",
    ):  # fmt: skip
        assert text in done.stdout


def test_run_hands_everything_to_the_launcher(cli_process):
    options = ("-n", "3", "--threads", "--device", "cuda:0,1", "--deadline", "2.5", "--check")
    done = cli_process("run", *options, "env", "A_VARIABLE=--json")
    assert done.returncode == 0
    settings = dict(line.removeprefix("[0] ").split("=", 1) for line in done.stdout.splitlines())
    assert settings["BEELINE_SIZE"] == "3"
    assert settings["BEELINE_THREADS"] == "1"
    assert settings["BEELINE_DEVICE"] == "cuda:0,1"
    assert settings["BEELINE_DEADLINE_S"] == "2.5"
    assert settings["BEELINE_CHECK"] == "1"
    assert settings["A_VARIABLE"] == "--json"


def test_run_returns_the_programs_status(cli_process):
    assert cli_process("run", "-n", "2", "sh", "-c", "exit 7").returncode == 7


def test_run_asks_the_launcher_to_split_this_machine(cli_process):
    for options, expected in ([], "3"), (["--split-nodes", "2"], "2"), (["--split-nodes", "1"], "1"):
        done = cli_process("run", "-n", "4", *options, "env", BEELINE_SPLIT_NODES="3")
        assert f"[0] BEELINE_SPLIT_NODES={expected}" in done.stdout.splitlines()


def test_run_asks_the_launcher_to_keep_going(cli_process):
    for options, expected in ([], "False"), (["--keep-going"], "True"):
        done = cli_process("run", "-n", "2", *options, "env")
        assert f"[0] LAUNCHER_KEEPS_GOING={expected}" in done.stdout.splitlines()


def test_run_as_json(cli_process):
    done = cli_process("run", "-n", "2", "--json", "sh", "-c", "echo hello; echo '{\"x\": 1}'; exit 7")
    assert done.returncode == 7
    assert json_lines(done) == [{"x": 1}]
    assert "hello" in done.stderr


@pytest.mark.parametrize(("command", "unit"), [("latency", "us"), ("bandwidth", "GB/s"), ("rate", "Mmsg/s")])
def test_bench_as_json_prints_all_but_progress(cli, command, unit):
    done = cli("bench", command, "--sizes", "8,4K", "--ranks", "3", "--iterations", "5", "--json")
    assert done.returncode == 0
    environment, *results = json_lines(done)
    assert environment["event"] == "environment"
    assert [result["event"] for result in results] == ["result"] * 4
    assert {result["bytes"] for result in results} == {8, 4096}
    assert results[0]["unit"] == unit
    assert results[0]["ranks"] == 3
    assert results[0]["iterations"] == 5
    assert "a warning" in done.stderr
    assert "a line that is no event" in done.stderr


def test_bench_shows_a_table_and_what_is_missing(cli):
    done = cli("bench", "latency", "--sizes", "8,4K")
    assert done.returncode == 0
    for text in ("message, us, 2 ranks", "device/peer/ll", "8 B", "4 KiB", "1.25"):
        assert text in done.stdout
    assert "not measured: device/bulk/signal: no GPU of this kind" in done.stdout


@pytest.mark.parametrize(
    ("operation", "column", "value"), [("store", "threads", "4,096"), ("strided_load", "stride", "16")]
)
def test_bench_address_space_shows_what_was_swept(cli, operation, column, value):
    done = cli("bench", "address-space", "--operations", operation)
    assert done.returncode == 0
    for text in (f"{operation}, GB/s, 2 ranks", column, value, "1.25", "not measured: device/bulk/signal"):
        assert text in done.stdout


FAKE_NCU = """#!/bin/sh
[ "$1" = --query-metrics ] && echo "nvltx__bytes  Counter" && exit
while [ "$1" != --log-file ]; do shift; done
cat > "$2" <<END
==PROF== Connected to process 1
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","WarpAccess","nvltx__bytes.sum","byte","1,024"
END
shift 2
exec "$@"
"""


def test_bench_address_space_has_the_counts_of_the_hardware(cli, tmp_path, monkeypatch):
    (tmp_path / "ncu").write_text(FAKE_NCU)
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    counted = ("bench", "address-space", "--operations", "store_requests")
    found = results_of(cli(*counted, "--json"))
    (by_hardware,) = (one for one in found if one["method"] == "hardware/ncu")
    assert (by_hardware["median"], by_hardware["settings"]["counter"]) == (1024, "nvltx__bytes.sum")
    assert by_hardware["settings"]["stride"] == 16
    assert not [
        one for one in results_of(cli(*counted, "--device", "cpu", "--json")) if one["method"] == "hardware/ncu"
    ]
    (tmp_path / "ncu").write_text("#!/bin/sh\nexit 1\n")
    failed = cli(*counted)
    assert failed.returncode == 0
    assert "requests are not counted by the hardware: ncu knows none of the counters" in failed.stderr


def test_bench_rate_passes_on_the_table(cli):
    result = results_of(cli("bench", "rate", "--table", "16M", "--operations", "random_update", "--json"))[0]
    assert result["settings"]["values"]["table"] == 16 << 20
    assert result["operation"] == "random_update"


def test_bench_passes_on_the_methods(cli):
    done = cli("bench", "latency", "--methods", "device/peer/ll", "--json")
    _, result = json_lines(done)
    assert result["method"] == "device/peer/ll"


def test_bench_has_what_the_program_describes(cli):
    """A new option or a new command of the program needs no new line of Python."""
    described = {"FAKE_OPTION": "new-thing", "FAKE_COMMAND": "jitter"}
    text = words(cli("bench", "latency", "--help", **described).stdout)
    assert "--new-thing NAME Help on new-thing" in text
    assert "device/bulk/signal: bulk copies (needs peer access)" in text
    result = results_of(cli("bench", "latency", "--new-thing", "7", "--no-verify", "--json", **described))[0]
    assert (result["settings"]["values"]["new-thing"], result["settings"]["values"]["no-verify"]) == ("7", True)
    assert "jitter About jitter" in words(cli("bench", "--help", **described).stdout)
    assert results_of(cli("bench", "jitter", "--sizes", "4K", "--json", **described))[0]["bytes"] == 4096


def test_bench_refuses_before_anything_starts(cli):
    done = cli("bench", "latency", "--sizes", "many")
    assert done.stderr == 'beeline: beeline-bench: bad --sizes "many"; valid: what the fake likes\n'


def test_bench_says_which_program_is_missing(cli, tmp_path):
    done = cli("bench", "absent", "--sizes", "8")
    assert (done.returncode, done.stderr) == (1, "beeline: another program is not there\n")
    assert "absent Not built" in words(cli("bench", "--help").stdout)
    done = cli("bench", "latency", BEELINE_BIN=str(tmp_path))
    assert done.returncode == 1
    assert f"program beeline-bench is not in {tmp_path} (BEELINE_BIN)" in done.stderr
    asked = cli("bench", "latency", "--help", BEELINE_BIN=str(tmp_path))
    assert asked.returncode == 0
    assert "program beeline-bench is not in" in words(asked.stdout)
    assert cli("--help", BEELINE_BIN=str(tmp_path)).returncode == 0


@pytest.mark.parametrize("command", [("bench", "latency"), ("bench", "bandwidth"), ("app", "himeno")], ids=" ".join)
def test_records_are_appended_to_a_file_environment_first(cli, tmp_path, command):
    file = tmp_path / "records.jsonl"
    for _ in range(2):
        assert cli(*command, "--output", str(file)).returncode == 0
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record["event"] for record in records] == ["environment", "result", "result"] * 2


def test_wrong_data_is_a_failure(cli):
    done = cli("bench", "latency", FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert "wrong data" in done.stdout
    assert "did not arrive as it was sent" in done.stderr


def test_failing_program_is_a_failure(cli):
    done = cli("bench", "latency", "--json", FAKE_STATUS="3")
    assert done.returncode == 3
    json_lines(done)
    assert "exit status 3" in done.stderr


def test_himeno_runs_what_is_available(cli):
    done = cli("app", "himeno", "--size", "s", "--ranks", "2", "--json")
    assert done.returncode == 0
    environment, *results = json_lines(done)
    assert environment["event"] == "environment"
    assert [result["method"] for result in results] == ["host_staged", "in_kernel"]
    assert results[0]["size"] == [64, 64, 128]
    assert results[0]["verified"] is True
    assert "left out on 2 ranks: needs_gpu, device_launched: no GPU" in done.stderr


def test_himeno_shows_one_table(cli):
    done = cli("app", "himeno", "--size", "XS", "--iterations", "9")
    assert done.returncode == 0
    for text in (
        "Himeno 32×32×64 on cpu",
        "in_kernel",
        "25.0",
        "62.5",
        "87.5",
        "2,000",
        "yes",
        "whose float32 sum drifts",
    ):
        assert text in done.stdout


def test_himeno_without_verification(cli):
    options = ("app", "himeno", "--method", "in_kernel", "--no-verify")
    (result,) = results_of(cli(*options, "--json"))
    assert result["verified"] is None
    assert "gosa 0.0001 after 7 iterations\n" in cli(*options).stdout


def test_himeno_says_how_far_the_reference_followed(cli):
    done = cli("app", "himeno", "--iterations", "1011", FAKE_FOLLOWED="128")
    assert done.returncode == 0
    assert "yes (128 of 1011)" in done.stdout
    assert "gosa 0.0001 after 1,011 iterations, to which the reference, after 128, does not compare\n" in done.stdout


def test_a_negative_share_of_communication_is_noise(cli):
    done = cli("app", "himeno", FAKE_SHARE="-0.03125")
    assert "< noise" in done.stdout
    assert "-3.1" not in done.stdout
    assert "< noise: runs without communication" in done.stdout
    assert {one["communication_share"] for one in results_of(cli("app", "himeno", "--json"))} == {-0.03125}
    assert "noise" not in cli("app", "himeno", FAKE_SHARE="0.03125").stdout


def test_what_himeno_refuses_is_refused_once_for_each_number_of_ranks(cli):
    done = cli("app", "himeno", "--ranks", "2,4", FAKE_REFUSED_RANKS="2,4")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("himeno: too large") == 2
    done = cli("app", "himeno", "--json", "--ranks", "1,2", FAKE_REFUSED_RANKS="1")
    assert done.returncode == 2
    assert {one["ranks"] for one in results_of(done)} == {2}


@pytest.mark.parametrize(("command", "state"), [(("bench", "latency"), "clean"), (("app", "himeno"), "dirty")])
def test_the_commit_stands_below_the_table(cli, command, state):
    assert cli(*command, "--ranks", "2").stdout.splitlines()[-1] == f"commit c0ffee, {state}"


@pytest.mark.parametrize(
    ("group", "command"), [("bench", "latency"), ("bench", "bandwidth"), ("bench", "rate"), ("app", "himeno")]
)
def test_json_may_stand_before_the_command(cli, group, command):
    done = cli(group, "--json", command)
    assert done.returncode == 0
    assert results_of(done)


@pytest.mark.parametrize(("scaling", "extents"), [("weak", [64, 128, 256]), ("strong", [64, 64, 64])])
def test_himeno_scales(cli, scaling, extents):
    options = ("app", "himeno", "--size", "XS", "--ranks", "1,2,4", "--method", "in_kernel", "--scaling", scaling)
    results = results_of(cli(*options, "--json"))
    assert [result["ranks"] for result in results] == [1, 2, 4]
    assert [result["size"][2] for result in results] == extents
    table = cli(*options).stdout
    assert "2.00" in table
    assert "50.0" in table


@pytest.mark.parametrize(
    ("preset", "grids"), [("weak", [[128, 192, 64], [128, 192, 128]]), ("strong", [[128, 128, 192]] * 2)]
)
def test_himeno_presets_scale(cli, preset, grids):
    options = ("app", "himeno", "--preset", preset, "--ranks", "1,2", "--method", "in_kernel")
    assert [result["size"] for result in results_of(cli(*options, "--json"))] == grids
    assert "speed" in cli(*options).stdout


def test_himeno_preset_of_several_grids(cli):
    options = ("app", "himeno", "--preset", "table-5.6", "--ranks", "2", "--method", "in_kernel")
    sizes = [result["size"] for result in results_of(cli(*options, "--json"))]
    assert len(sizes) == 9
    assert sizes[0] == [256, 256, 256]
    assert sizes[-1] == [640, 640, 386]
    assert len(re.findall(r"^\S* *512×512×640 .*in_kernel", cli(*options).stdout, re.MULTILINE)) == 1


def test_himeno_runs_both_programs(cli):
    done = cli("app", "himeno", "--json", FAKE_GPU="1")
    assert [result["method"] for result in results_of(done)] == ["host_staged", "in_kernel", "device_launched"]
    done = cli("app", "himeno", "--json", "--method", "device_launched", FAKE_GPU="1")
    assert [result["method"] for result in results_of(done)] == ["device_launched"]


def test_himeno_says_why_device_launched_is_left_out(cli, tmp_path):
    assert "left out on 4 ranks: needs_gpu, device_launched: no GPU" in cli("app", "himeno").stderr
    for program in ("beeline-launch", "himeno"):
        (tmp_path / program).symlink_to(FAKES / program)
    done = cli("app", "himeno", BEELINE_BIN=str(tmp_path))
    assert done.returncode == 0
    assert "left out on 4 ranks: device_launched: the program himeno-device-launched is not here" in done.stderr


def test_himeno_goes_on_after_a_method_failed(cli):
    done = cli("app", "himeno", "--json", FAKE_BROKEN_METHOD="host_staged")
    assert done.returncode == 1
    assert [result["method"] for result in results_of(done)] == ["in_kernel"]
    assert "himeno: something broke" in done.stderr
    assert "exit status 3" in done.stderr


@pytest.mark.parametrize(("app", "wrong"), [("himeno", "host_staged, in_kernel"), ("global-reduction", "in_kernel")])
def test_an_app_with_a_wrong_result_fails(cli, app, wrong):
    done = cli("app", app, FAKE_WRONG_DATA="1")
    assert done.returncode == 1
    assert f"wrong result: {wrong}" in done.stderr


def test_himeno_refuses_an_unavailable_method(cli):
    done = cli("app", "himeno", "--method", "needs_gpu")
    assert done.returncode == 1
    assert "needs_gpu: no GPU" in done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_nobody_reads_is_no_traceback(unbuffered):
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
        reader.wait()
        environment = {**os.environ, "BEELINE_BIN": str(FAKES), "PYTHONUNBUFFERED": unbuffered}
        command = [sys.executable, "-m", "beeline", "info", "--json"]
        done = subprocess.run(
            command, stdout=reader.stdin, stderr=subprocess.PIPE, text=True, env=environment, check=False
        )
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", ["info --json", "app spin-glass"])
def test_output_to_a_full_disk_is_no_traceback(arguments):
    environment = {**os.environ, "BEELINE_BIN": str(FAKES)}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "beeline", *arguments.split()],
            stdout=full, stderr=subprocess.PIPE, text=True, env=environment, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "beeline: the output cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_is_told_where_stdout_is_closed():
    command = f"{sys.executable} -m beeline nonsense >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "No such command" in done.stderr


def test_run_knows_beelines_own_programs(cli_process):
    done = cli_process("run", "-n", "2", "--json", "beeline-info")
    assert done.returncode == 0
    assert json_lines(done)[0]["version"] == "0.1.0"
