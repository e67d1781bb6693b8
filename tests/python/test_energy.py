# SPDX-License-Identifier: Apache-2.0
"""`beeline energy` and `beeline.energy`, with a stand-in for NVML and a powercap folder that a program changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from beeline.energy_record import read_record
from beeline.errors import InvalidArgumentError
from conftest import REPOSITORY
from processes import command_of, eventually, is_full, processes_with, state_of

try:
    from beeline import energy
except ImportError as problem:
    pytest.skip(str(problem), allow_module_level=True)

FAKE_NVML = REPOSITORY / "build" / "fake_nvml"
PROGRAMS = str(REPOSITORY / "build" / "bin")
RANGE_MICROJOULES = 10_000_000_000
# Uses 0.4 W for a second by moving the powercap folder's counter, and prints the microjoules. At such a power a late
# step on a busy machine is not taken for a jump.
WORK = """
import os, sys, time
from pathlib import Path
counter = Path(os.environ["BEELINE_POWERCAP"]) / "intel-rapl:0" / "energy_uj"
first, most = int(counter.read_text()), int((counter.parent / "max_energy_range_uj").read_text())
begin, used = time.monotonic(), 0
while time.monotonic() < begin + 1:
    used = int((time.monotonic() - begin) * 0.4e6)
    part = counter.with_name("part")
    part.write_text(str((first + used) % most))
    part.rename(counter)
    time.sleep(0.005)
print(used)
"""


@pytest.fixture
def powercap(tmp_path: Path) -> Path:
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "dram")):
        folder = tmp_path / "powercap" / zone
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "energy_uj").write_text("5000000\n")
        (folder / "max_energy_range_uj").write_text(f"{RANGE_MICROJOULES}\n")
    return tmp_path / "powercap"


@pytest.fixture
def metered(cli_process, tmp_path: Path):
    """Runs `beeline energy -- COMMAND`; returns its output and its record."""

    def run(*command: str, options: tuple[str, ...] = (), **environment: str):
        record = tmp_path / "record.jsonl"
        files = ("--output", str(record), "--picture", str(tmp_path / "power.png"))
        done = cli_process("energy", *files, *options, "--", *command, BEELINE_BIN=PROGRAMS, **environment)
        return done, read_record(record)

    return run


def until_it_is_known(run: Callable[[], tuple]) -> tuple:
    """Runs it again if the meter reports too large an error: on a busy machine a counter may be read too late for a
    window of a second."""
    for _ in range(5):
        done, record = run()
        if not any("has an error of" in (part["reason"] or "") for part in record.result["components"]):
            break
    return done, record


def part_of(record, name: str) -> dict:
    assert record.result is not None
    return next(one for one in record.result["components"] if one["name"] == name)


def test_a_program_is_metered(metered, powercap: Path, tmp_path: Path) -> None:
    settings = {"LD_LIBRARY_PATH": str(FAKE_NVML), "BEELINE_POWERCAP": str(powercap), "FAKE_NVML_WATTS": "250"}
    done, record = until_it_is_known(lambda: metered(sys.executable, "-c", WORK, **settings))
    assert done.returncode == 0, done.stderr
    used = int(done.stdout) / 1e6
    assert part_of(record, "cpu0")["joules"] == pytest.approx(used, rel=0.02), part_of(record, "cpu0")
    assert part_of(record, "dram0")["joules"] is None
    assert "stands still" in part_of(record, "dram0")["reason"]
    for gpu in ("gpu0", "gpu1"):
        part = part_of(record, gpu)
        assert part["joules"] == pytest.approx(250 * part["seconds"], rel=0.02)
        assert part["error"] <= 0.02
    assert record.result["exit_status"] == 0
    assert record.result["joules"] is not None
    assert record.result["cpu_seconds"] > 0
    assert {one["watts"] for one in record.samples["gpu0"]} == {250}
    assert (tmp_path / "power.png").stat().st_size > 1000
    assert "gpu1" in done.stderr


def test_counters_that_wrap(metered, powercap: Path) -> None:
    def run():
        (powercap / "intel-rapl:0" / "energy_uj").write_text(str(RANGE_MICROJOULES - 200_000))
        return metered(sys.executable, "-c", WORK, BEELINE_POWERCAP=str(powercap))

    done, record = until_it_is_known(run)
    assert part_of(record, "cpu0")["joules"] == pytest.approx(int(done.stdout) / 1e6, rel=0.02)


def test_a_machine_without_sources_says_so(metered, tmp_path: Path) -> None:
    done, record = metered("true", BEELINE_POWERCAP=str(tmp_path / "none"), LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 0
    assert record.result["joules"] is None
    assert "shows no RAPL zone of the cpu" in part_of(record, "cpu")["reason"]
    assert "no picture" in done.stderr
    assert record.environment["host"]["cores_online"] == os.cpu_count()


@pytest.mark.parametrize(
    ("program", "status", "name"),
    [
        ("exit 3", 3, "exit_status"),
        ("kill -9 $$", 137, "signal"),
        ("kill -TERM $$", 143, "signal"),
        (":", 0, "exit_status"),
    ],
)
def test_the_end_of_the_program_is_passed_on(metered, program: str, status: int, name: str) -> None:
    done, record = metered("sh", "-c", program)
    assert done.returncode == status
    assert record.result[name] == (status - 128 if name == "signal" else status)


def test_a_program_that_forks(metered) -> None:
    burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    done, record = metered("sh", "-c", f"({burn}) & ({burn}) & wait; echo over")
    assert done.stdout == "over\n"
    assert record.result["cpu_seconds"] > 0.02  # of the children, which the shell waited for


def test_what_a_program_leaves_running_is_not_waited_for(metered) -> None:
    done, record = metered("sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!")
    os.kill(int(done.stdout), signal.SIGKILL)  # it still runs
    assert record.result["seconds"] < 60


def test_signals_are_passed_on(tmp_path: Path) -> None:
    program = "trap 'echo heard; exit 5' TERM; echo ready; while :; do sleep 0.02; done"
    command = [sys.executable, "-m", "beeline", "energy", "--output", str(tmp_path / "r.jsonl")]
    command += ["--picture", str(tmp_path / "p.png"), "--", "sh", "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "heard\n"
    assert process.returncode == 5
    assert read_record(tmp_path / "r.jsonl").result["exit_status"] == 5


def test_a_signal_to_the_whole_group_reaches_the_program_once(tmp_path: Path) -> None:
    times = 3
    program = """
import signal, sys
heard = 0
def count(*_):
    global heard
    heard += 1
    print("heard", flush=True)
signal.signal(signal.SIGINT, count)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(heard))
print("ready", flush=True)
while True:
    signal.pause()
"""
    command = [sys.executable, "-m", "beeline", "energy", "--output", str(tmp_path / "r.jsonl")]
    command += ["--picture", str(tmp_path / "p.png"), "--", sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(times):
            os.killpg(process.pid, signal.SIGINT)
            assert process.stdout.readline() == "heard\n"
            time.sleep(0.5)  # a second one would arrive by now
        process.send_signal(signal.SIGINT)  # this signal was not sent to the group
        assert process.stdout.readline() == "heard\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == ""
    assert process.returncode == times + 1


@contextmanager
def metering(tmp_path: Path, *program: str, **settings) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-m", "beeline", "energy", "--output", str(tmp_path / "r.jsonl")]
    command += ["--picture", str(tmp_path / "p.png"), "--", *program]
    with subprocess.Popen(command, text=True, **settings) as process:
        yield process


def test_a_reader_that_stands_does_not_keep_the_meter_from_its_end(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with metering(tmp_path, "yes", stdout=writer, stderr=writer) as process:
        assert eventually(lambda: is_full(writer))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    os.close(reader)
    os.close(writer)


def test_with_sigchld_ignored_or_signals_blocked_all_is_as_ever(tmp_path: Path) -> None:
    def inherit() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})

    with metering(tmp_path, "sh", "-c", "exit 5", preexec_fn=inherit) as process:
        assert process.wait(timeout=60) == 5


def test_a_shell_that_is_ended_leaves_nothing_running(tmp_path: Path) -> None:
    mark = f"MARK_{uuid.uuid4().hex}"
    program, environment = "echo ready; sleep 300; echo over", {**os.environ, "MARK": mark}
    with metering(tmp_path, "sh", "-c", program, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline() == "ready\n"
        assert eventually(lambda: any(command_of(pid) == b"sleep\x00300\x00" for pid in processes_with(mark)))
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60)[0] == ""  # nobody holds the pipe
    assert process.returncode == 128 + signal.SIGTERM


def test_kill_9_of_the_meter_ends_the_program(tmp_path: Path) -> None:
    with metering(tmp_path, "sh", "-c", "echo $$; exec sleep 300", stdout=subprocess.PIPE) as process:
        number = int(process.stdout.readline())
        process.kill()
    assert eventually(lambda: state_of(number) in ("", "Z"))


def test_a_counter_that_is_a_pipe_is_not_waited_for(powercap: Path) -> None:
    counter = powercap / "intel-rapl:0" / "energy_uj"
    counter.unlink()
    os.mkfifo(counter)
    meter = energy.Meter(gpus=[], powercap=str(powercap))
    (cpu,) = [part for part in meter.stop(meter.start()).components if part.component.name == "cpu0"]
    assert "energy_uj" in cpu.reason


def test_a_gpu_that_is_lost_leaves_the_other(metered, tmp_path: Path) -> None:
    lost = str(tmp_path / "lost")
    done, record = metered("touch", lost, LD_LIBRARY_PATH=str(FAKE_NVML), FAKE_NVML_LOST=lost)
    assert done.returncode == 0
    assert part_of(record, "gpu1")["reason"] == "gpu1: total-energy counter: GPU is lost (NVML 15)"
    assert part_of(record, "gpu0")["seconds"] > 0
    assert "lost" not in part_of(record, "gpu0")["reason"]


def test_json_on_standard_output_is_the_record(metered, tmp_path: Path) -> None:
    done, record = metered("echo", "said", options=("--json",), LD_LIBRARY_PATH=str(FAKE_NVML))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert lines[-1] == record.result
    assert "said" in done.stderr


@pytest.mark.parametrize(
    ("redirected", "words"),
    [
        ("--output /dev/full {}", "/dev/full is cut short: No space left on device"),
        ("--json {} > /dev/full", "standard output is cut short: No space left on device"),
        ("--json {} | head -1 > /dev/null; exit ${{PIPESTATUS[0]}}", ""),
        ("{} 2>&-", ""),
    ],
)
def test_the_program_ends_and_counts_whatever_cannot_be_written(tmp_path: Path, redirected: str, words: str) -> None:
    ended = tmp_path / "ended"
    program = f"-- sh -c 'sleep 0.5; touch {ended}; exit 5'"
    line = f"{sys.executable} -m beeline energy --picture p.png {redirected.format(program)}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5
    assert ended.exists()
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_programs_that_do_not_run(metered, cli_process, tmp_path: Path) -> None:
    files = ("--output", str(tmp_path / "r.jsonl"), "--picture", str(tmp_path / "p.png"))
    done = cli_process("energy", *files, "--", "no-such-program", BEELINE_BIN=PROGRAMS)
    assert (done.returncode, "no-such-program is no program" in done.stderr) == (127, True)
    (tmp_path / "garbage").write_text("\x7fELF")
    (tmp_path / "garbage").chmod(0o755)
    done = cli_process("energy", *files, "--", str(tmp_path / "garbage"), BEELINE_BIN=PROGRAMS)
    assert (done.returncode, "cannot be run: Exec format error" in done.stderr) == (126, True)


RECORD = [
    {"event": "environment", "arguments": ["x"], "components": [
        {"kind": "gpu", "name": "gpu0", "device": "GPU-0", "tick_s": 0.1, "range_joules": None}]},
    {"event": "sample", "time_s": 0.0, "component": "gpu0", "joules": 0.0, "watts": 100.0},
    {"event": "sample", "time_s": 0.1, "component": "gpu0", "joules": 10.0, "watts": 100.0},
    {"event": "result", "components": [{"name": "gpu0", "joules": 10.0}]},
]  # fmt: skip


def write_record(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_a_record_that_is_cut_short_is_read_as_far_as_it_goes(cli, tmp_path: Path) -> None:
    path = write_record(tmp_path / "r.jsonl", *map(json.dumps, RECORD))
    assert read_record(path).result is not None
    path.write_text(path.read_text()[:-20])
    record = read_record(path)
    assert record.result is None
    assert len(record.samples["gpu0"]) == 2
    done = cli("plot", str(path), "-o", str(tmp_path / "p.svg"), "--json")
    assert json.loads(done.stdout)["curves"] == ["gpu0"]
    assert "ends before its program did" in done.stderr
    assert ">gpu0<" in (tmp_path / "p.svg").read_text()


def test_a_byte_order_mark_is_no_part_of_a_record(cli, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in RECORD), encoding="utf-8-sig")
    assert read_record(path).result == RECORD[-1]
    assert cli("plot", str(path), "-o", str(tmp_path / "p.svg")).returncode == 0


def test_a_record_without_its_first_line_cannot_be_drawn(cli, tmp_path: Path) -> None:
    path = write_record(tmp_path / "r.jsonl", *map(json.dumps, RECORD[1:]))
    done = cli("plot", str(path), "-o", str(tmp_path / "p.svg"))
    assert done.returncode == 1
    assert "the line of the environment, which comes first, is missing" in done.stderr


def test_a_record_tells_the_energy_of_any_part_of_it(tmp_path: Path) -> None:
    """100 W, and 300 W from 20 to 40 s, from a counter that advances every 100 ms."""
    samples = []
    for step in range(1200):
        tick = step // 2 / 10
        joules = 100 * tick + 200 * min(max(tick - 20, 0), 20)
        samples.append({"event": "sample", "time_s": step / 20, "component": "gpu0", "joules": joules, "watts": None})
    record = read_record(write_record(tmp_path / "r.jsonl", *map(json.dumps, [RECORD[0], *samples])))
    for begin, end, watts in ((2, 18, 100), (22, 38, 300), (10, 50, 200)):
        (part,) = energy.replay(record, begin, end).components
        assert part.watts == pytest.approx(watts, rel=0.02), part.reason
    assert "would do" in energy.replay(record, 5, 6).components[0].reason


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "holds no record"),
        ([RECORD[0], "{broken"], ":2: no JSON object"),
        ([RECORD[0], {**RECORD[1], "component": "gpu7"}], "component 'gpu7' is not in the environment"),
        ([RECORD[0], RECORD[2], RECORD[1]], ":3: no line of a record of `beeline energy` (time_s goes back to 0.0)"),
        (
            RECORD[1:],
            ":1: no line of a record of `beeline energy` (the line of the environment, which comes first, is missing)",
        ),
        ([RECORD[0], {"event": "sample"}], ":2: object missing required field `time_s`"),
        (
            [{**RECORD[0], "components": [{"name": "gpu0"}]}],
            "field 'components[0]': object missing required field `kind`",
        ),
        ([{**RECORD[0], "arguments": [1]}], ":1: field 'arguments[0]': expected `str`, got `int`"),
        ([RECORD[0], {"event": "result", "components": [{"name": "gpu0"}]}], "object missing required field `joules`"),
        ([RECORD[0], {"event": "result", "components": 5}], ":2: field 'components': expected `array`, got `int`"),
    ],
)
def test_broken_records_are_refused(tmp_path: Path, lines: list, words: str) -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path = write_record(tmp_path / "r.jsonl", *texts)
    with pytest.raises(InvalidArgumentError) as refused:
        read_record(path)
    assert words in str(refused.value)


def test_the_meter_in_python(powercap: Path) -> None:
    meter = energy.Meter(gpus=["GPU-none"], powercap=str(powercap))
    assert [one.name for one in meter.components] == ["gpu0", "cpu0", "dram0"]
    assert meter.components[1].range_joules == RANGE_MICROJOULES / 1e6
    window = meter.start()
    measured = meter.stop(window)
    gpu = measured.components[0]
    assert (gpu.joules, gpu.watts) == (None, None)
    assert gpu.reason
    assert measured.joules("gpu") is None
    assert measured.cpu_seconds >= 0
    with pytest.raises(InvalidArgumentError, match="valid: gpu, cpu, dram"):
        measured.joules("disk")
    with pytest.raises(InvalidArgumentError, match="at least 1 ms"):
        meter.sample_every(0)


WATTS = 0.4  # as low as in WORK
Curve = Callable[[float], float]


def constant(seconds: float) -> float:
    return WATTS * seconds


@contextmanager
def drawing(powercap: Path, joules_at: Curve) -> Iterator[None]:
    """The counter of the CPU package follows the curve."""
    over = threading.Event()
    counter = powercap / "intel-rapl:0" / "energy_uj"

    def draw() -> None:
        begin = time.monotonic()
        while not over.wait(0.002):
            part = counter.with_name("part")
            part.write_text(str(int(joules_at(time.monotonic() - begin) * 1e6)))
            part.rename(counter)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def results_on_host_ranks(powercap: Path, program: str, *arguments: str) -> list[dict]:
    command = [f"{PROGRAMS}/beeline-launch", "-n", "2", "--threads", "--device", "cpu", "--json", "--"]
    done = subprocess.run(
        [*command, f"{PROGRAMS}/{program}", *arguments], capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "BEELINE_POWERCAP": str(powercap)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if line["event"] == "result"]


def test_a_window_that_the_deadline_would_end_is_refused_before_anything_runs() -> None:
    command = [f"{PROGRAMS}/beeline-launch", "-n", "2", "--device", "cpu", "--deadline", "30", "--"]
    command += [f"{PROGRAMS}/himeno", "--energy", "26"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "a window of 26 s, for which ranks wait: BEELINE_DEADLINE_S=30 has to be over 31" in done.stderr


def launched(powercap: Path, program: str, *arguments: str, joules_at: Curve = constant) -> list[dict]:
    """The results of a program on two host ranks that are threads, while the package's counter follows `joules_at`."""
    with drawing(powercap, joules_at):
        return results_on_host_ranks(powercap, program, *arguments)


def test_a_benchmark_is_metered(powercap: Path) -> None:
    arguments = ["--methods", "device/peer/ll", "--sizes", "64", "--iterations", "200", "--energy", "300"]
    metered = [one for one in launched(powercap, "beeline-bench", "latency", *arguments) if one["unit"] == "nJ/word"]
    (one,) = [one for one in metered if one["method"] == "device/peer/ll"]
    cpu = one["energy"]["components"]["cpu"]
    assert cpu["watts"] == pytest.approx(WATTS, rel=0.5)
    assert cpu["idle_watts"] == pytest.approx(WATTS, rel=0.5)
    seconds = one["energy"]["seconds"]  # of one word
    assert cpu["joules"] == pytest.approx(cpu["watts"] * seconds, rel=0.2)  # each is a mean over the windows
    assert one["median"] == pytest.approx(WATTS * 1e9 * seconds, rel=0.7)
    assert (one["energy"]["wait_policy"], one["energy"]["wait_period_us"]) == ("automatic", 50)
    assert "power" not in one["energy"]
    assert one["energy"]["components"]["gpu"]["reason"] == "no rank has one"
    assert "stands still" in one["energy"]["components"]["dram"]["reason"]
    assert one["energy"]["cpu_cores"] > 0


def test_without_a_source_everything_is_timed_and_says_what_is_missing(tmp_path: Path) -> None:
    arguments = ["--methods", "device/peer/ll", "--sizes", "64", "--iterations", "200", "--energy", "100"]
    (time, *_, energy) = results_on_host_ranks(tmp_path / "none", "beeline-bench", "latency", *arguments)
    assert time["median"] > 0
    assert (energy["unit"], energy["median"], energy["available"]) == ("nJ/word", None, False)
    assert energy["reason"].startswith("gpu: no rank has one; cpu: ")
    arguments = ["--size", "XS", "--method", "host_staged", "--iterations", "5", "--energy", "0.1"]
    (run,) = results_on_host_ranks(tmp_path / "none", "himeno", *arguments)
    assert (run["mflop_per_joule"], run["energy"]["components"]["cpu"]["joules"]) == (None, None)
    assert "shows no RAPL zone of the cpu" in run["energy"]["components"]["cpu"]["reason"]
    assert run["energy"]["seconds"] > 0
    assert run["mflops"] > 0


def test_idle_power_is_that_of_right_before_each_load(powercap: Path) -> None:
    arguments = ["--method", "host_staged,stream_kernels", "--size", "XS", "--iterations", "5", "--energy", "0.3"]
    # The power grows with the third power of time, so that late steps on a busy machine do not matter.
    runs = launched(powercap, "himeno", *arguments, joules_at=lambda seconds: 0.0125 * seconds**4)
    first, second = (one["energy"]["components"]["cpu"]["idle_watts"] for one in runs)
    assert second > first > 0


@pytest.mark.parametrize(
    ("program", "arguments", "unit"),
    [
        ("himeno", ["--size", "XS", "--method", "host_staged", "--iterations", "5"], "mflop_per_joule"),
        ("global-reduction", ["--values", "64", "--method", "in_kernel", "--reductions", "5"], "reductions_per_joule"),
        ("jacobi", ["--size", "8", "--method", "device", "--iterations", "5"], "updates_per_joule"),
        ("random-access", ["--words", "1K", "--method", "put"], "updates_per_joule"),
        ("spin-glass", ["--size", "8", "--method", "device", "--sweeps", "5"], "updates_per_joule"),
        ("ring-reduction", ["--size", "1K", "--method", "host", "--reductions", "5"], "reductions_per_joule"),
    ],
)
def test_applications_tell_what_a_joule_does(powercap: Path, program: str, arguments: list[str], unit: str) -> None:
    (one,) = launched(powercap, program, *arguments, "--energy", "1")
    cpu = one["energy"]["components"]["cpu"]
    assert cpu["reason"] is None
    assert 0 < cpu["watts"] < 1.6 * WATTS  # less if the thread that raises the counter waits for a core
    assert one[unit] == pytest.approx(1 / cpu["joules"])
    points = one["energy"]["power"]["cpu0"]
    assert [time for time, _ in points] == sorted(time for time, _ in points)
    assert len(points) > 1  # five, but fewer on a busy machine
    (plain,) = launched(powercap, program, *arguments)
    assert (plain[unit], plain["energy"]) == (None, None)
