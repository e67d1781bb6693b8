# SPDX-License-Identifier: Apache-2.0
"""beeline-launch as users see it: output, exit codes, deaths of ranks, and no process left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from launching import ENDING_RANK, FAILING_RANK, LAUNCHER, PROGRAMS, Result, launch, shell
from processes import eventually, processes_with, state_of


def test_too_few_files_may_be_open() -> None:
    """The launcher's error names the exhausted resource, and what to do."""
    command = ["sh", "-c", f"ulimit -n 24; exec {LAUNCHER} -n 16 -- true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Too many open files; raise the limit (ulimit -n)" in done.stderr


class TestOutput:
    def test_lines_carry_their_rank_and_keep_their_stream(self) -> None:
        result = shell("echo out; echo err >&2", ranks=3)
        assert result.returncode == 0
        assert sorted(result.stdout.splitlines()) == ["[0] out", "[1] out", "[2] out"]
        assert sorted(result.stderr.splitlines()) == ["[0] err", "[1] err", "[2] err"]

    def test_no_prefix(self) -> None:
        assert shell("echo out", "--no-prefix").stdout == "out\nout\n"

    @pytest.mark.parametrize("parts", ['f"{text} {i}\\n",', 'text, f" {i}\\n"'], ids=["whole", "in pieces"])
    def test_lines_of_ranks_do_not_mix(self, parts: str) -> None:
        """If the rest of a line is late, another rank's line ends its first piece."""
        program = f"""
import os
text = "x" * 300
for i in range(2000):
    for part in ({parts}):
        os.write(1, part.encode())
"""
        lines = launch("-n", "3", "--", sys.executable, "-c", program).stdout.splitlines()
        expected = [f"{'x' * 300} {i}" for i in range(2000)]
        for rank in range(3):
            own = [line[4:] for line in lines if line.startswith(f"[{rank}] ")]
            assert "".join(own) == "".join(expected)
            assert len(own) == 2000 or parts.startswith("text")

    def test_long_lines_and_a_missing_newline(self) -> None:
        result = shell(f"{sys.executable} -c 'import sys; sys.stdout.write(\"y\" * 1000000)'", ranks=1)
        assert result.stdout == "[0] " + "y" * 1000000 + "\n"

    def test_output_after_the_last_rank_has_ended_is_not_lost(self) -> None:
        script = f"{sys.executable} -c 'print(\"z\" * 60000)'; exit 0"
        assert len(shell(script, ranks=8).stdout.splitlines()) == 8

    def test_the_beginning_of_a_line_does_not_wait_for_its_end(self) -> None:
        script = """printf 'first? '; printf 'second? ' >&2; sleep 300"""
        with subprocess.Popen(
            [LAUNCHER, "-n", "1", "--", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert os.read(process.stdout.fileno(), 100) == b"[0] first? "
            assert os.read(process.stderr.fileno(), 100) == b"[0] second? "
            process.terminate()

    def test_a_line_that_has_begun_is_ended_before_that_of_another_rank(self, tmp_path: Path) -> None:
        script = f"""
            until_there() {{ until [ -e {tmp_path}/$1 ]; do sleep 0.02; done; }}
            if [ $BEELINE_RANK = 0 ]; then printf begun; until_there printed; echo ' and ended'; exit; fi
            until_there begun; echo between"""
        with subprocess.Popen(
            [LAUNCHER, "-n", "2", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True
        ) as process:
            begun = "[0] begun"
            assert process.stdout.read(len(begun)) == begun
            (tmp_path / "begun").touch()
            assert process.stdout.readline() == "\n"
            assert process.stdout.readline() == "[1] between\n"
            (tmp_path / "printed").touch()
            assert process.stdout.read() == "[0]  and ended\n"

    def test_json_passes_only_json_lines(self) -> None:
        script = """echo "{\\"rank\\": $BEELINE_RANK}"; echo text; echo '{broken'; echo 7; echo '{"err": 1}' >&2"""
        result = shell(script, "--json")
        assert sorted(json.loads(line)["rank"] for line in result.stdout.splitlines()) == [0, 1]
        assert {"[0] text", "[1] {broken", "[0] 7", '[1] {"err": 1}'} <= set(result.stderr.splitlines())

    def test_ends_when_nobody_reads(self) -> None:
        command = f"{LAUNCHER} -n 2 -- sh -c 'while echo line; do :; done' | head -1; exit ${{PIPESTATUS[0]}}"
        result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30, check=False)
        assert result.returncode == 128 + signal.SIGPIPE
        assert "nobody reads its output" in result.stderr

    def test_ends_when_its_output_cannot_be_written(self) -> None:
        command = f"{LAUNCHER} -n 2 -- sh -c 'while echo line; do :; done' > /dev/full"
        result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30, check=False)
        assert result.returncode == 1
        assert "the job was ended because its output cannot be written: No space left on device" in result.stderr


class TestEnvironment:
    def test_ranks_as_processes(self) -> None:
        script = "env | grep -E '^(BEELINE|CUDA_M|CUDA_DEVICE)' | sort"
        result = shell(script, "--device", "cpu", "--deadline", "2.5", ranks=2, BEELINE_THREADS="1", BEELINE_RANK="9")
        ranks = [[line[4:] for line in result.stdout.splitlines() if line.startswith(f"[{rank}]")] for rank in (0, 1)]
        first, second = (dict(line.split("=", 1) for line in lines) for lines in ranks)
        assert first.pop("BEELINE_RANK") == "0"
        assert second.pop("BEELINE_RANK") == "1"
        assert first == second
        assert len(first.pop("BEELINE_TOKEN")) == 32
        assert first.pop("BEELINE_RENDEZVOUS").startswith("127.0.0.1:")
        assert first == {
            "BEELINE_SIZE": "2",
            "BEELINE_THREADS": "0",
            "BEELINE_DEVICE": "cpu",
            "BEELINE_DEADLINE_S": "2.5",
            "CUDA_MODULE_LOADING": "EAGER",
            "CUDA_DEVICE_MAX_CONNECTIONS": "32",
        }

    def test_a_setting_that_no_rank_takes_is_refused_once(self) -> None:
        refused = shell("echo started", BEELINE_HEAP_BYTES="much")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.count('BEELINE_HEAP_BYTES="much": expected bytes, at least 0') == 1
        refused = shell("echo started", BEELINE_SPLIT_NODES="3")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "BEELINE_SPLIT_NODES: 3 nodes for 2 ranks" in refused.stderr

    def test_the_device_of_the_users_variable_stays(self) -> None:
        assert shell("echo $BEELINE_DEVICE", ranks=1, BEELINE_DEVICE="cpu").stdout == "[0] cpu\n"
        given = shell("echo $BEELINE_DEVICE", "--device", "auto", ranks=1, BEELINE_DEVICE="cpu")
        assert given.stdout == "[0] auto\n"
        refused = shell("true", BEELINE_DEVICE="tpu")
        assert refused.returncode == 2
        assert 'BEELINE_DEVICE: invalid_argument: device "tpu"' in refused.stderr

    def test_ranks_find_the_variables_of_torch(self) -> None:
        script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT .$TORCHELASTIC_RUN_ID"
        listen = "import socket, sys; socket.create_server(('127.0.0.1', int(sys.argv[1])))"  # as torch's store does
        script += f'; if [ $RANK = 0 ]; then exec {sys.executable} -c "{listen}" $MASTER_PORT; fi'  # kept for it
        outer = {"RANK": "7", "MASTER_ADDR": "elsewhere", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "outer"}
        result = shell(script, **outer)
        assert result.returncode == 0, result.stderr
        lines = sorted(result.stdout.splitlines())
        port = lines[0].split()[6]
        assert lines == [f"[{rank}] {rank} 2 {rank} 2 127.0.0.1 {port} ." for rank in (0, 1)]
        own = shell("echo $MASTER_ADDR $MASTER_PORT", ranks=1, MASTER_ADDR="localhost", MASTER_PORT="29501")
        assert own.stdout == "[0] localhost 29501\n"

    def test_inherited_signals_are_reset(self) -> None:
        def inherit() -> None:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does: a rank inherits this
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})

        script = "grep -E '^Sig(Blk|Ign)' /proc/self/status; exit 5"
        done = subprocess.run(
            [LAUNCHER, "-n", "1", "--no-prefix", "--", "sh", "-c", script], capture_output=True, text=True,
            timeout=20, check=False, preexec_fn=inherit,
        )  # fmt: skip
        assert done.returncode == 5
        blocked, ignored = (int(line.split()[1], 16) for line in done.stdout.splitlines())
        assert blocked == 0
        for_users = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)  # may be, as here
        assert ignored & ~sum(1 << (each - 1) for each in for_users) == 1 << (signal.SIGHUP - 1)

    def test_ranks_whose_collective_calls_differ_end_with_both(self) -> None:
        program = """
import beeline, numpy
with beeline.World.create() as world:
    beeline.Collectives(world).allreduce(numpy.ones(100 if world.rank == 0 else 90, "float32"))
"""
        result = launch("-n", "2", "--device", "cpu", "--", sys.executable, "-c", program)
        assert result.returncode != 0
        for rank, count in (0, 100), (1, 90):
            assert f"rank {rank} calls allreduce(sum, float32, {count} elements) by ll_" in result.stderr, result.stderr
        report = result.stderr[result.stderr.index("beeline-launch:") :]
        assert "InvalidArgumentError: invalid_argument: rank " in report
        assert "AbortedError" not in report  # of the rank that was aborted by the other

    def test_the_options_come_before_the_variables(self) -> None:
        script = "echo $BEELINE_DEADLINE_S $BEELINE_SPLIT_NODES"
        variables = {"BEELINE_DEADLINE_S": "5", "BEELINE_SPLIT_NODES": "2"}
        assert sorted(shell(script, **variables).stdout.splitlines()) == ["[0] 5 2", "[1] 5 2"]
        given = shell(script, "--deadline", "2.5", "--split-nodes", "1", **variables)
        assert sorted(given.stdout.splitlines()) == ["[0] 2.5 1", "[1] 2.5 1"]

    def test_each_job_has_its_own_token(self) -> None:
        assert shell("echo $BEELINE_TOKEN").stdout != shell("echo $BEELINE_TOKEN").stdout

    def test_ranks_as_threads_are_one_process_without_prefix(self) -> None:
        result = shell("echo $BEELINE_SIZE $BEELINE_THREADS .$BEELINE_RANK.$BEELINE_RENDEZVOUS.", "--threads", ranks=5)
        assert result.stdout == "5 1 ...\n"

    def test_what_the_user_has_set_stays(self) -> None:
        result = shell("echo $CUDA_MODULE_LOADING", "--threads", CUDA_MODULE_LOADING="LAZY")
        assert result.stdout == "LAZY\n"

    def test_bind(self) -> None:
        assert shell("echo $BEELINE_RENDEZVOUS", "--bind", "127.0.0.2", ranks=1).stdout.startswith("[0] 127.0.0.2:")

    def test_bind_to_ipv6(self) -> None:
        ipv6 = Path("/proc/net/if_inet6")
        if not ipv6.exists() or " lo\n" not in ipv6.read_text():
            pytest.skip("the loop-back device has no address of IPv6")
        for address in "::1", "[::1]":
            result = shell("echo $BEELINE_RENDEZVOUS", "--bind", address, ranks=1)
            assert result.stdout.startswith("[0] [::1]:"), result.stderr


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            (["-n", "0", "true"], "0"),
            (["-n", "1025", "true"], "1 to 1024"),
            (["-n", "65", "true"], "65 ranks on a node, which has 64 at most"),
            (["-n", "130", "--split-nodes", "2", "true"], "65 ranks on a node"),
            (["-n", "2", "--split-nodes", "3", "true"], "3 nodes for 2 ranks"),
            (["-n", "2", "--stdin", "1", "true"], "--stdin"),
            (["--hosts", ",", "-n", "2", "--secure", "true"], "--hosts: '' is no host"),
            (["-n", "2", "--hosts", "", "--secure", "true"], "--hosts: '' is no host"),
            (["-n", "3", "--hosts", "a,,b", "--secure", "true"], "--hosts: '' is no host"),
            (["-n", "2", "--hosts", "a,", "--secure", "true"], "--hosts: '' is no host"),
            (["-n", "2", "--hosts", "a,b", "--stdin", "all", "true"], "--hosts starts get no standard input"),
            (["-n", "two", "true"], "two"),
            (["true"], "--ranks is required"),
            (["-n", "2"], "PROGRAM is required"),
            (["-n", "2", "no-such-program"], "cannot run no-such-program: no such program in PATH"),
            (["-n", "2", "./no-such-program"], "cannot run ./no-such-program: No such file"),
            (["-n", "2", "/tmp"], "cannot run /tmp: Is a directory"),
            (["-n", "2", "--device", "gpu", "true"], 'device "gpu": expected auto, cpu'),
            (["-n", "3", "--device", "cuda:0,1,cpu", "true"], 'device "cuda:0,1,cpu": expected auto, cpu'),
            (["--device", "cuda:0,cpu", "-n", "3", "true"], "a list of 2 devices for 3 ranks"),
            (["-n", "2", "--deadline", "0", "true"], "--deadline"),
            (["-n", "2", "--deadline", "nan", "true"], "--deadline: nan is no number"),
            (["-n", "2", "--grace", "NaN", "true"], "--grace: NaN is no number"),
            (["-n", "2", "--bind", "no such address", "true"], '"no such address" is no address'),
            (["-n", "2", "--bind", "127.0.0.1:99999", "true"], "'99999' is no port; valid: 0 to 65535"),
            (["-n", "2", "--bind", "[::1]7", "true"], '"[::1]7" is no address'),
            (["-n", "2", "--bind", "192.0.2.1", "true"], "cannot listen on 192.0.2.1"),
        ],
    )
    def test_bad_input_is_refused_before_anything_starts(self, arguments: list[str], reason: str) -> None:
        result = launch(*arguments)
        assert result.returncode == 2
        assert reason in result.stderr
        assert not result.stdout

    def test_a_port_in_use(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            result = launch("-n", "2", "--bind", address, "true")
        assert result.returncode == 2
        assert f"cannot listen on {address}: Address already in use" in result.stderr

    @pytest.mark.parametrize(("mode", "reason"), [(0o644, "Permission denied"), (0o755, "Exec format error")])
    def test_a_file_that_is_no_program(self, tmp_path: Path, mode: int, reason: str) -> None:
        program = tmp_path / "program"
        program.write_text("no machine code")
        program.chmod(mode)
        result = launch("-n", "2", str(program))
        assert result.returncode == 2
        assert f"cannot run {program}: {reason}" in result.stderr


class TestDeaths:
    def test_exit_code_and_last_lines(self) -> None:
        # The launcher reads two pipes: it has read the first before the second has any data.
        script = "seq -f 'line %g' 20; sleep 0.5; echo bye >&2; sleep 0.3; exit $((BEELINE_RANK * 40))"
        result = shell(script, ranks=2)
        assert result.returncode == 40
        report = result.stderr[result.stderr.index("beeline-launch:") :]
        assert "rank 1 (pid " in report
        assert "exited with code 40" in report
        assert "line 9\n" not in report
        assert all(f"    {line}\n" in report for line in ["line 12", "line 20", "bye"])

    @pytest.mark.parametrize(
        ("how", "code", "reason"),
        [
            ("kill", 137, "was killed by signal 9 (SIGKILL)"),
            ("segfault", 139, "was killed by signal 11 (SIGSEGV)"),
            ("exit", 1, "exited with code 0 without leaving the world"),
            ("throw", 3, "exited with code 3"),
            ("abort", 3, "rank 2 aborted: on purpose"),
        ],
    )
    def test_the_rank_that_failed_first_is_named(self, how: str, code: int, reason: str) -> None:
        result = launch("-n", "5", "--", FAILING_RANK, "2", how)
        assert "did not end within" not in result.stderr, "the others end by the news, not by the grace period"
        assert result.returncode == code
        report = result.stderr[result.stderr.index("beeline-launch:") :]
        assert report.startswith("beeline-launch: rank 2 (pid ")
        assert reason in report
        assert f"    about to fail: {how}\n" in report
        others = [line for line in result.stderr.splitlines() if line[:4] in ("[0] ", "[1] ", "[3] ", "[4] ")]
        assert len(others) == 4
        assert all("rank 2" in line for line in others)

    def test_the_rank_is_quoted_whose_error_caused_the_others(self) -> None:
        failed = "wait on rank 2 in kernel K: expected == 1, observed 0, after 1.000 s"
        script = f"""
            case $BEELINE_RANK in
              0) sleep 0.3; echo "beeline error: deadline: rank 0: {failed}"; exit 7 ;;
              *) echo "beeline error: aborted: rank $BEELINE_RANK: because of rank 0: {failed} (deadline)"; exit 1 ;;
            esac"""
        result = shell(script, ranks=3)
        assert result.returncode == 7
        report = result.stderr[result.stderr.index("beeline-launch:") :]
        assert re.match(r"beeline-launch: rank 0 \(pid \d+\) exited with code 7\n  its last lines:\n", report)
        assert report.endswith(f"    beeline error: deadline: rank 0: {failed}\n")

    def test_a_rank_with_little_address_space_is_named(self) -> None:
        script = f"if [ $BEELINE_RANK = 1 ]; then ulimit -v 4000000; fi; exec {ENDING_RANK} 1 nothing"
        result = shell(script, "--device", "cpu")
        assert result.returncode != 0
        assert result.stderr.count("rank 1 could not make its part: no address range for 2 slots") >= 2, result.stderr

    def test_a_rank_that_ends_before_it_joins_is_noticed_at_once(self) -> None:
        program = "import os, beeline\nif os.environ['BEELINE_RANK'] == '0': beeline.World.create()"
        result = launch("-n", "2", "--device", "cpu", "--deadline", "600", "--", sys.executable, "-c", program)
        assert result.returncode == 1
        assert "rank 1 ended before it joined the world" in result.stderr
        assert re.search(r"beeline-launch: rank 1 \(pid \d+\) exited with code 0 before it joined", result.stderr)

    def test_ranks_that_ignore_the_end_are_killed(self) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        script = "if [ $BEELINE_RANK = 1 ]; then exit 7; fi; trap '' TERM; while :; do sleep 0.1; done"
        start = time.monotonic()
        result = shell(script, ranks=3, MARK=mark)
        assert time.monotonic() - start > 4, "3 s of grace, then SIGTERM, then after 2 s SIGKILL"
        assert result.returncode == 7
        assert "ranks 0, 2 did not end within 3 s and were terminated" in result.stderr
        assert processes_with(mark) == []

    def test_a_stopped_rank_ends_with_the_deadline_of_the_others(self) -> None:
        result = launch("-n", "3", "--device", "cpu", "--deadline", "3", "--", ENDING_RANK, "1", "stop")
        assert result.returncode == 1
        assert "barrier on rank 1" in result.stderr
        assert "  rank 1 had been stopped by a signal, and was killed\n" in result.stderr
        assert "did not end within" not in result.stderr, "the job does not wait for it"

    def test_an_error_that_all_ranks_hear_of_has_few_lines_of_each(self) -> None:
        ranks = 12
        result = launch("-n", f"{ranks}", "--device", "cpu", "--deadline", "3", "--", ENDING_RANK, "1", "stop")
        for rank in set(range(ranks)) - {1}:
            lines = [line for line in result.stderr.splitlines() if line.startswith(f"[{rank}] ")]
            assert len(lines) <= 6, lines  # the first failure, the end of a rank, and ranks that waited, too
            assert "\n".join(lines).count("at that time:") <= 1

    def test_a_stopped_rank_does_not_hold_up_the_end_by_a_signal(self) -> None:
        mark = f"MARK_{uuid.uuid4().hex}"
        with subprocess.Popen(
            [LAUNCHER, "-n", "2", "--", "sh", "-c", "if [ $BEELINE_RANK = 1 ]; then kill -STOP $$; fi; exec sleep 60"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "MARK": mark},
        ) as process:  # fmt: skip
            assert eventually(lambda: any(state_of(pid) == "T" for pid in processes_with(mark)))
            process.terminate()
            _, errors = process.communicate(timeout=60)
        assert "  rank 1 had been stopped by a signal, and was killed\n" in errors
        assert "did not end within" not in errors
        assert process.returncode == 128 + signal.SIGTERM

    @pytest.mark.parametrize(
        ("options", "variables"), [(("--deadline", "0.5"), {}), ((), {"BEELINE_DEADLINE_S": "0.5"})]
    )
    def test_a_stopped_rank_is_not_waited_for_once_the_others_have_ended(
        self, options: tuple[str, ...], variables: dict[str, str]
    ) -> None:
        script = "if [ $BEELINE_RANK = 1 ]; then kill -STOP $$; fi"
        start = time.monotonic()
        result = shell(script, *options, **variables)
        assert time.monotonic() - start < 30, "the deadline is not the usual one, 30 s"
        assert result.returncode == 128 + signal.SIGKILL
        assert "  rank 1 had been stopped by a signal, and was killed\n" in result.stderr

    def test_a_stopped_rank_that_goes_on_is_waited_for(self) -> None:
        goes_on = "until grep -q '^State:.T' /proc/$$/status; do sleep 0.1; done; sleep 0.5; kill -CONT $$"
        script = f"if [ $BEELINE_RANK = 1 ]; then ({goes_on}) & kill -STOP $$; fi; sleep 0.5; echo ended"
        result = shell(script, "--deadline", "30")
        assert (result.returncode, result.stdout.count("ended")) == (0, 2), result.stderr

    @pytest.mark.parametrize(
        ("how", "code", "call"), [("exit 0", 1, "exit(0)"), ("exit 3", 3, "exit(3)"), ("quick_exit 0", 1, "quick_exit")]
    )
    def test_a_thread_that_calls_exit_is_no_success(self, how: str, code: int, call: str) -> None:
        result = launch("-n", "3", "--threads", "--device", "cpu", "--", ENDING_RANK, "1", how)
        assert result.returncode == code
        assert f"beeline error: rank 1 called {call} while ranks 0, 1, 2 of its process had not ended" in result.stderr

    @pytest.mark.parametrize("how", ["exit 0", "quick_exit 0"])
    def test_threads_that_call_exit_at_once_are_no_success(self, how: str) -> None:
        result = launch("-n", "8", "--threads", "--device", "cpu", "--", ENDING_RANK, "-1", how)
        assert result.returncode == 1
        assert result.stderr.count("of its process had not ended") == 2  # by one rank, and in the launcher's report

    @pytest.mark.parametrize("options", [[], ["--threads"]])
    def test_a_fork_of_a_rank_takes_no_part(self, options: list[str]) -> None:
        result = launch("-n", "2", *options, "--device", "cpu", "--", ENDING_RANK, "1", "fork")
        assert result.returncode == 0, result.stderr
        assert "the child has ended" in result.stdout
        assert re.search(r"a fork of rank 1: .*process \d+ is a fork of process \d+, which is rank 1", result.stderr)

    def test_objects_may_outlive_their_world(self) -> None:
        result = launch("-n", "2", "--device", "cpu", "--", ENDING_RANK, "1", "keep")
        assert (result.returncode, result.stdout.count("kept")) == (0, 2), result.stderr
        assert result.stdout.count("the world of this stream has ended") == 2

    def test_threads_tell_all_errors_the_culprits_first(self) -> None:
        result = launch("-n", "4", "--threads", "--device", "cpu", "--", ENDING_RANK, "2", "throw")
        assert result.returncode == 1
        errors = result.stderr.split("beeline-launch: ")[0].removeprefix("beeline").split("\nbeeline")
        assert errors[0] == "[2] error: thrown on purpose"
        follower = re.compile(
            r" error: (?:peer_died: rank|ranks) ([\d, ]+): (?:peer_died: )?(rank 2 aborted: thrown on purpose(?:.|\n)*)"
        )
        heads = [follower.match(each) for each in errors[1:]]
        assert all(heads), errors
        assert sorted(rank for head in heads for rank in head[1].split(", ")) == ["0", "1", "3"]
        assert len({head[2].strip() for head in heads}) == len(heads), "equal errors are one"

    def test_exit_after_the_ranks_is_as_good_as_ever(self) -> None:
        result = launch("-n", "3", "--threads", "--device", "cpu", "--", ENDING_RANK, "1", "exit afterwards")
        assert (result.returncode, result.stderr) == (0, "")

    def test_a_program_of_threads_that_dies(self) -> None:
        result = shell("echo last words; kill -SEGV $$", "--threads")
        assert result.returncode == 139
        assert "beeline-launch: the program (pid " in result.stderr
        assert "    last words\n" in result.stderr


class TestKeepGoing:
    SURVIVING_RANK = str(PROGRAMS / "surviving-rank")

    def run(self, how: str, victim: int, *options: str) -> Result:
        deadline = "5" if how == "hang" else "40"
        arguments = ["-n", "4", "--device", "cpu", "--deadline", deadline, *options]
        return launch(*arguments, "--", self.SURVIVING_RANK, str(victim), how)

    @pytest.mark.parametrize("victim", [0, 2])
    @pytest.mark.parametrize(
        ("how", "report"),
        [
            ("kill", "was killed by signal 9 (SIGKILL); the others may go on"),
            ("throw", "exited with code 1; rank {victim} aborted: thrown on purpose; the others may go on"),
            ("hang", "was killed by signal 9 (SIGKILL); the others may go on"),
        ],
    )
    def test_the_others_go_on_without_a_rank_that_fails(self, how: str, report: str, victim: int) -> None:
        start = time.monotonic()
        result = self.run(how, victim, "--keep-going")
        assert result.returncode == 0, result.stderr
        assert time.monotonic() - start < 30, "those that fail by themselves are not waited for"
        survivors = [rank for rank in range(4) if rank != victim]
        expected = {f"[{rank}] went on as rank {place} of 3;" for place, rank in enumerate(survivors)}
        assert {line.partition(";")[0] + ";" for line in result.stdout.splitlines()} == expected
        assert all(f"rank {victim} has failed: rank {victim} " in line for line in result.stdout.splitlines())
        assert f"beeline-launch: rank {victim} (pid " in result.stderr
        assert report.format(victim=victim) in result.stderr

    def test_without_the_option_a_death_ends_the_job(self) -> None:
        result = self.run("kill", 2)
        assert result.returncode == 128 + signal.SIGKILL

    def test_all_that_fail_are_a_failure(self) -> None:
        result = launch("-n", "3", "--keep-going", "--", "sh", "-c", "exit $((3 + BEELINE_RANK))")
        assert result.returncode in (3, 4, 5)
        assert result.stderr.count("the others may go on") == 3

    def test_a_rank_that_leaves_nothing_but_status_0_has_failed(self) -> None:
        result = launch("-n", "3", "--keep-going", "--", ENDING_RANK, "1", "_exit 0")
        assert result.returncode == 1
        assert "rank 1 (pid " in result.stderr
        assert "exited with code 0 without leaving the world" in result.stderr

    def test_threads_cannot_fail_one_by_one(self) -> None:
        result = launch("-n", "3", "--keep-going", "--threads", "--", "true")
        assert result.returncode == 2
        assert "--threads excludes --keep-going" in result.stderr
