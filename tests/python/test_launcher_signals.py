# SPDX-License-Identifier: Apache-2.0
"""beeline-launch with signals and readers: what it passes on, and that it ends in time and leaves no process behind."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from launching import FAILING_RANK, LAUNCHER, launch, shell
from processes import command_of, eventually, is_full, processes_with, state_of


class TestStandingReader:
    """No process reads the launcher's output, so that writing blocks."""

    @contextmanager
    def standing(self, *options: str, script: str = "exec yes") -> Iterator[subprocess.Popen[bytes]]:
        reader, writer = os.pipe()
        with subprocess.Popen(
            [LAUNCHER, "-n", "2", *options, "--", "sh", "-c", script], stdout=writer, stderr=writer
        ) as process:
            try:
                assert eventually(lambda: is_full(writer))
                yield process
            finally:
                process.kill()
                os.close(reader)
                os.close(writer)

    @pytest.mark.parametrize(
        ("number", "options"), [(signal.SIGTERM, ()), (signal.SIGINT, ("--json",)), (signal.SIGTERM, ("--threads",))]
    )
    def test_signals_end_the_job(self, number: signal.Signals, options: tuple[str, ...]) -> None:
        with self.standing(*options) as process:
            process.send_signal(number)
            assert process.wait(timeout=60) == 128 + number

    def test_a_death_ends_the_job(self, tmp_path: Path) -> None:
        go = tmp_path / "go"  # rank 1 dies once the output has stalled
        script = f"if [ $BEELINE_RANK = 1 ]; then until [ -e {go} ]; do sleep 0.02; done; exit 7; fi; exec yes"
        with self.standing(script=script) as process:
            go.touch()
            assert process.wait(timeout=60) == 7

    def test_after_a_right_end_output_waits_for_its_reader(self) -> None:
        with self.standing(script="seq 20000; seq 20000 >&2") as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)
            process.terminate()
            assert process.wait(timeout=60) == 128 + signal.SIGTERM


class TestStandardInput:
    def run(self, script: str, *options: str, text: str, ranks: int = 2) -> str:
        command = [LAUNCHER, "-n", str(ranks), *options, "--", "sh", "-c", script]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return "".join(sorted(done.stdout.splitlines(keepends=True)))

    def test_rank_0_gets_it(self) -> None:
        text = "".join(f"{number}\n" for number in range(50000))  # more than a pipe holds
        assert self.run("wc -l", text=text) == "[0] 50000\n[1] 0\n"
        assert self.run("wc -l", "--stdin", "all", text=text) == "[0] 50000\n[1] 50000\n"
        assert self.run("wc -l", "--stdin", "none", text=text) == "[0] 0\n[1] 0\n"

    def test_what_nobody_reads_holds_up_nothing(self) -> None:
        assert self.run("echo over", text="line\n" * 50000, ranks=1) == "[0] over\n"

    def test_a_terminal_is_read_for_rank_0(self) -> None:
        process, terminal = pty.fork()
        if process == 0:
            os.execv(LAUNCHER, [LAUNCHER, "-n", "2", "--no-prefix", "--", "sh", "-c", "read x; echo got .$x."])
        os.write(terminal, b"42\n")
        assert eventually(lambda: os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None)
        output = b""
        with contextlib.suppress(OSError):  # raised at the end by a terminal without a writer
            while some := os.read(terminal, 1000):
                output += some
        os.waitpid(process, 0)
        os.close(terminal)
        assert b"got .42." in output
        assert b"got .." in output, "rank 1 has none"

    def test_it_is_passed_on_at_once(self) -> None:
        with subprocess.Popen(
            [LAUNCHER, "-n", "1", "--", "sh", "-c", "read x; echo got $x; read y"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            process.stdin.write("42\n")
            process.stdin.flush()
            assert process.stdout.readline() == "[0] got 42\n"


class TestNothingIsLeft:
    FAMILY = "sh -c 'sleep 300 & sleep 300' & sleep 300"
    DAEMONS = "setsid sh -c 'setsid sleep 300 & exec sleep 300' & setsid sleep 300 & exec sleep 300"

    @staticmethod
    def job_of(launcher: int, mark: str) -> int:
        """The launcher's second process, which starts the ranks."""
        for pid in processes_with(mark):
            with contextlib.suppress(OSError):  # the process has ended
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                if parent == launcher and Path(f"/proc/{pid}/exe").resolve().name == "beeline-launch":
                    return pid
        raise AssertionError("no second process")

    def start(self, script: str, mark: str, ranks: int = 2) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [LAUNCHER, "-n", str(ranks), "--", "sh", "-c", script],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "MARK": mark},
            preexec_fn=os.setpgrp,  # a stopped group that loses its shell gets signals
        )  # fmt: skip

    @pytest.mark.parametrize("family", [FAMILY, DAEMONS])
    @pytest.mark.parametrize("victim", ["guardian", "job"])
    def test_kill_9_of_the_launcher_ends_ranks_and_their_children(self, victim: str, family: str) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        with self.start(family, mark) as process:
            assert eventually(lambda: len(processes_with(mark)) >= 2 + 2 * 4), "launcher's two processes, 2 families"
            if victim == "guardian":
                process.kill()
            else:
                os.kill(self.job_of(process.pid, mark), signal.SIGKILL)
            process.wait()
            assert eventually(lambda: processes_with(mark) == [])
            process.communicate(timeout=60)  # no process holds the output open

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_signals_to_the_launcher_end_the_job(self, number: signal.Signals) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        with self.start(
            f"trap 'echo caught; exit 1' {number.name[3:]}; echo up; {self.FAMILY} & wait", mark
        ) as process:
            assert process.stdout is not None
            assert {process.stdout.readline() for _ in range(2)} == {"[0] up\n", "[1] up\n"}
            process.send_signal(number)
            output, errors = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert output.count("caught") == 2
        assert f"the job was ended by {number.name}" in errors
        assert processes_with(mark) == []

    def test_what_signals_mean_that_programs_use_is_up_to_them(self) -> None:
        numbers = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGWINCH]
        program = f"""
import signal, time
noted = []
for number in {[int(each) for each in numbers]}:
    signal.signal(number, lambda number, frame: noted.append(print(signal.Signals(number).name, flush=True)))
print("up", flush=True)
while len(noted) < {len(numbers)}:
    time.sleep(0.02)
"""
        with subprocess.Popen(
            [LAUNCHER, "-n", "2", "--no-prefix", "--", sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
        ) as process:
            assert [process.stdout.readline() for _ in range(2)] == ["up\n"] * 2
            for number in numbers:
                process.send_signal(number)
                assert [process.stdout.readline() for _ in range(2)] == [f"{number.name}\n"] * 2
            assert process.wait(timeout=60) == 0

    def test_signals_reach_ranks_on_other_hosts(self, tmp_path: Path) -> None:
        ssh = tmp_path / "ssh"
        ssh.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        ssh.chmod(0o755)
        script = "trap 'echo noted' USR1; trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.02; done"
        with subprocess.Popen(
            [LAUNCHER, "-n", "2", "--hosts", "127.0.0.1,127.0.0.2", "--trusted-network", "--ssh", str(ssh), "--",
             "sh", "-c", script],
            stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert {process.stdout.readline() for _ in range(2)} == {"[0] up\n", "[1] up\n"}
            process.send_signal(signal.SIGUSR1)
            assert {process.stdout.readline() for _ in range(2)} == {"[0] noted\n", "[1] noted\n"}
            process.terminate()
            assert set(process.stdout) == {"[0] saved\n", "[1] saved\n"}
        assert process.returncode == 128 + signal.SIGTERM

    def test_a_job_is_suspended_and_goes_on(self, tmp_path: Path) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        go = tmp_path / "go"
        with self.start(f"echo up; until [ -e {go} ]; do sleep 0.02; done; echo over", mark) as process:
            assert {process.stdout.readline() for _ in range(2)} == {"[0] up\n", "[1] up\n"}
            process.send_signal(signal.SIGTSTP)
            assert eventually(lambda: state_of(process.pid) == "T")
            assert eventually(lambda: sum(state_of(pid) == "T" for pid in processes_with(mark)) >= 1 + 2)
            go.touch()
            process.send_signal(signal.SIGCONT)
            output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert output.count("over") == 2

    def test_ranks_save_together_before_the_end(self) -> None:
        program = """
import signal, sys, time, beeline
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
with beeline.World.create() as world:
    print("up", flush=True)
    while not world.allreduce(len(told), "maximum"):
        time.sleep(0.02)
    time.sleep(0.3)
    while sys.argv[1] == "too long" and world.rank == 1 and not world.failed:
        time.sleep(0.02)
    world.barrier()
    print("saved", flush=True)
"""
        for how, grace, saved in ("soon", "30", 2), ("too long", "1", 0):
            command = [LAUNCHER, "-n", "2", "--device", "cpu", "--grace", grace, "--", sys.executable, "-c", program]
            with subprocess.Popen(
                [*command, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process:
                assert {process.stdout.readline() for _ in range(2)} == {"[0] up\n", "[1] up\n"}
                process.terminate()
                output, errors = process.communicate(timeout=60)
            assert (process.returncode, output.count("saved")) == (128 + signal.SIGTERM, saved), errors
            assert "the job was ended by SIGTERM" in errors

    def test_ctrl_c_in_a_wait_shows_the_users_line_last(self, tmp_path: Path) -> None:
        program = tmp_path / "program.py"
        program.write_text(
            "import beeline, time\n"
            "with beeline.World.create() as world:\n"
            "    print('up', flush=True)\n"
            "    time.sleep(300) if world.rank == 1 else world.barrier()\n"
        )
        with subprocess.Popen(
            [LAUNCHER, "-n", "2", "--device", "cpu", "--", sys.executable, str(program)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert {process.stdout.readline() for _ in range(2)} == {"[0] up\n", "[1] up\n"}
            time.sleep(0.2)  # until rank 0 waits
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        frames = [line for line in errors.splitlines() if line.startswith('[0]   File "')]
        assert frames
        assert all(str(program) in line for line in frames), errors
        assert "[0] KeyboardInterrupt\n" in errors

    def test_a_second_signal_does_not_wait(self) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        with self.start("trap 'echo caught' INT; echo up; while :; do sleep 0.1; done", mark) as process:
            assert process.stdout is not None
            assert {process.stdout.readline() for _ in range(2)} == {"[0] up\n", "[1] up\n"}
            process.send_signal(signal.SIGINT)
            assert {process.stdout.readline() for _ in range(2)} == {"[0] caught\n", "[1] caught\n"}
            time.sleep(0.3)  # a second signal within 0.2 s counts as the first one
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 128 + signal.SIGINT
        assert re.search(r"ranks 0, 1 did not end within [012](\.\d+)? s and were terminated", errors), (
            "it takes 3 s alone"
        )
        assert processes_with(mark) == []

    @pytest.mark.parametrize("child", ["sleep 300", "setsid sleep 300", "setsid sh -c '(sleep 300 &)'"])
    def test_children_of_a_rank_that_ended_well(self, child: str) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        result = shell(f"{child} & exit 0", MARK=mark)
        assert result.returncode == 0
        assert processes_with(mark) == []

    @pytest.mark.parametrize("proc", ["of the host", "none"])
    def test_without_a_proc_of_its_own_nothing_is_left(self, proc: str) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        hide = "mount -t tmpfs none /proc &&" if proc == "none" else ""
        inner = f"{hide} {LAUNCHER} -n 2 -- sh -c 'setsid sleep 300 & exit 0'; echo $?; exec sleep 300"
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inner]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "MARK": mark}
        ) as process:
            line = process.stdout.readline()
            if not line and "unshare" in process.stderr.read():
                pytest.skip("no namespaces here")
            commands = [command_of(pid) for pid in processes_with(mark)]
            process.kill()
        assert line == "0\n"
        left = sum(command.startswith(b"sleep") for command in commands)
        assert left <= 1, "that of the namespace's first process, if it is that far"

    def test_64_ranks(self) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        result = launch("-n", "64", "--", FAILING_RANK, "64", "never", MARK=mark)
        assert result.returncode == 0, result.stderr
        assert processes_with(mark) == []
