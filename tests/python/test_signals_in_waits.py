# SPDX-License-Identifier: Apache-2.0
"""Signals that arrive while a call blocks: their handlers run, and an exception that a handler raises ends the call."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import REPOSITORY

pytest.importorskip("numpy")
try:
    import beeline.library  # noqa: F401
except ImportError as reason:
    pytest.skip(str(reason), allow_module_level=True)

LAUNCHER = REPOSITORY / "build" / "bin" / "beeline-launch"
DEADLINE_S = 100

# Two ranks that are threads; rank 0 is Python's main thread, where handlers run. Its call blocks until rank 1 calls,
# too, which it does when `may_come` is set.
RANKS = """
import signal, sys, threading, time
import numpy as np
import beeline
from beeline.library import _beeline

ranks, may_come = _beeline._ThreadRanks(2), threading.Event()

class Rank:
    def __init__(self, rank):
        self.world = ranks.join(rank, "cpu", None, None)
        self.peer = 1 - rank
        self.team = self.world.make_team([0, 1])
        self.collectives = beeline.Collectives(self.world)
        self.of_team = beeline.Collectives(self.team)
        self.messages = beeline.Messages(self.world)
        self.staged = beeline.StagedChannel(self.world)
        self.signals = beeline.Signals(self.world, 1)
        self.vector, self.some = np.ones(4, np.float32), np.zeros(4, np.float32)
        self.stream = self.world.make_stream()

    def allreduce_on_stream(self):
        self.collectives.allreduce(self.some, self.vector, stream=self.stream)

failure = []

def run_other():
    other = Rank(1)
    may_come.wait()
    try:
        exec(sys.argv[2], {**globals(), "rank": other})
        other.world.leave()
    except beeline.Error as error:
        failure.append(str(error))

def raise_interrupt(*_):
    raise KeyboardInterrupt("of the handler")

thread = threading.Thread(target=run_other, daemon=True)
thread.start()
rank = Rank(0)
exec(sys.argv[1])
rank.world.leave()  # nothing where it has failed
thread.join()
"""
INTERRUPT_CALL = """
{begin}
start = time.monotonic()
signal.signal(signal.SIGALRM, raise_interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    {call}
    sys.exit("not interrupted")
except KeyboardInterrupt:
    late = time.monotonic() - start - 0.1
"""
GOES_ON = "\nassert not rank.world.failed\nmay_come.set()\n{call}\nassert rank.some[3] == {expected}\nprint(late)"
ALLREDUCE = "rank.collectives.allreduce(rank.some, rank.vector)"
IS_ABORTED = """
assert {team}.failed
may_come.set()
while not failure:
    time.sleep(0.01)
rank.world.abort("all is seen")
assert "rank 0: a signal ended its call" in failure[0], failure
print(late)
"""


def output_of(rank_0: str, rank_1: str) -> str:
    environment = {**os.environ, "BEELINE_DEADLINE_S": str(DEADLINE_S)}
    done = subprocess.run(
        [sys.executable, "-c", RANKS, rank_0, rank_1], capture_output=True, text=True, env=environment, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_soon(output: str) -> None:
    assert float(output) < DEADLINE_S / 10  # some 50 ms on an idle machine


@pytest.mark.parametrize(
    ("call", "of_rank_1", "begin"),
    [
        ("rank.world.barrier()", "rank.world.barrier()", ""),
        ("rank.team.barrier()", "rank.team.barrier()", ""),
        ("rank.world.barrier(timeout=50)", "rank.world.barrier()", ""),
        ("rank.signals.wait(0, 1)", "rank.signals.signal(0, 1, 0)", ""),
        ("rank.staged.receive(rank.some, 1)", "rank.staged.send(rank.vector, 0)", ""),
        ("rank.messages.receive(rank.some, 1, timeout=50)", "rank.messages.send(rank.vector, 0)", ""),
        ("rank.collectives.allreduce(rank.some, rank.vector, timeout=50)", ALLREDUCE, ""),
        ("rank.world.synchronize(rank.stream)", ALLREDUCE, "rank.allreduce_on_stream()"),
        ("event.wait()", ALLREDUCE, "rank.allreduce_on_stream(); event = rank.stream.record()"),
    ],
)
def test_what_can_go_on_does_as_after_a_time_out(call: str, of_rank_1: str, begin: str) -> None:
    expected = {ALLREDUCE: 2}.get(of_rank_1, int(".send" in of_rank_1))  # of rank 1's call
    rank_0 = INTERRUPT_CALL.format(begin=begin, call=call) + GOES_ON.format(call=call, expected=expected)
    assert_soon(output_of(rank_0, of_rank_1))


@pytest.mark.parametrize(
    ("call", "team"),
    [
        ("rank.collectives.allreduce(rank.vector)", "rank.world"),
        ("rank.collectives.allreduce(rank.vector, algorithm='ll_one_shot', blocks=2)", "rank.world"),
        ("rank.of_team.allreduce(rank.vector)", "rank.team"),
        ("rank.messages.receive(rank.some, rank.peer)", "rank.world"),
        ("rank.world.allreduce(1)", "rank.world"),
        ("rank.team.allgather(b'')", "rank.team"),
        ("rank.world.allgather(b'')", "rank.world"),
        ("rank.world.allocate(8)", "rank.world"),
        ("rank.world.leave()", "rank.world"),
    ],
)
def test_what_cannot_be_left_aborts_its_team(call: str, team: str) -> None:
    rank_0 = INTERRUPT_CALL.format(begin="", call=call) + IS_ABORTED.format(team=team)
    assert_soon(output_of(rank_0, f"{team}.barrier()"))


def test_joining_a_world_is_left() -> None:
    program = """
import os, signal, time
import beeline
def raise_interrupt(*_):
    raise KeyboardInterrupt("of the handler")
if os.environ["BEELINE_RANK"] == "0":
    signal.signal(signal.SIGALRM, raise_interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    beeline.World.create()
time.sleep(60)
"""
    command = [str(LAUNCHER), "-n", "2", "--deadline", f"{DEADLINE_S}", "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "[0] KeyboardInterrupt: of the handler\n" in done.stderr


def test_a_handler_that_raises_nothing_runs_and_the_call_goes_on() -> None:
    rank_0 = """
signal.signal(signal.SIGALRM, lambda *_: may_come.set())
signal.setitimer(signal.ITIMER_REAL, 0.1)
rank.collectives.allreduce(rank.vector)
print(rank.vector[3])
"""
    assert output_of(rank_0, "rank.collectives.allreduce(rank.vector)") == "2.0\n"


def test_a_handler_cannot_block_in_another_calls_wait() -> None:
    rank_0 = """
signal.signal(signal.SIGALRM, lambda *_: rank.team.barrier())
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    rank.world.barrier()
except beeline.InvalidArgumentError as error:
    print(error)
may_come.set()
rank.world.barrier()
"""
    assert "the handler of a signal cannot block where another call waits" in output_of(rank_0, "rank.world.barrier()")
