# SPDX-License-Identifier: Apache-2.0
"""`beeline bench files`, over its program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from launching import PROGRAMS


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BEELINE_")}
    environment = kept | {"BEELINE_BIN": str(PROGRAMS)}
    command = [sys.executable, "-m", "beeline", "bench", "files", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100, check=False)


def test_each_variant_is_measured_beside_its_peers(tmp_path: Path) -> None:
    record, folder = tmp_path / "files.jsonl", tmp_path / "folder"
    folder.mkdir()
    done = bench("--sizes", "1M", "--rounds", "1", "--turns", "2", "--folder", str(folder), "--output", str(record))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in record.read_text().splitlines()]
    assert events[0]["event"] == "environment"
    results = [one for one in events if one["event"] == "result"]
    measured = {(one["settings"]["file"], one["method"]) for one in results if one["available"]}
    variants = {"hpe/automatic", "hpe/user", "hpe/pinned", "hpe/double_buffered", "hpe/direct"}
    assert measured >= {(state, one) for state in ("cold", "cached", "existing", "new", "durable") for one in variants}
    assert all(one["verified"] for one in results if one["method"] in variants)
    assert all(len(one["samples"]) == 2 for one in results if one["method"] in variants)
    of_fio = [one for one in results if one["method"] == "fio"]
    assert of_fio[0]["available"] == (shutil.which("fio") is not None)
    assert any(one["method"] == "kvikio" for one in results)
    assert all(one["reason"] for one in results if not one["available"])
    assert "file read, memory of the host, GB/s" in done.stdout
    assert not list(folder.iterdir())


def test_bad_options_are_refused() -> None:
    for option, value, words in (
        ("--sizes", "1000", "multiple of 4096"),
        ("--memory", "disk", "valid: host, device"),
        ("--states", "cold,warm", "'warm'"),
        ("--methods", "cufile", "'cufile'"),
        ("--folder", "/proc/none", "No such file or directory"),
    ):
        done = bench(option, value)
        assert done.returncode != 0
        assert words in " ".join(done.stderr.replace("│", " ").split())  # in a box, whose lines are short


def test_a_signal_keeps_what_was_measured_before(tmp_path: Path) -> None:
    programs, began, record = tmp_path / "programs", tmp_path / "began", tmp_path / "files.jsonl"
    programs.mkdir()
    for program in PROGRAMS.iterdir():
        (programs / program.name).symlink_to(program)
    row = {
        "event": "result", "schema_version": 1, "operation": "file_read", "method": "hpe/automatic", "bytes": 4096,
        "ranks": 1, "available": True, "reason": None, "unit": "GB/s", "median": 1.5, "relative_deviation": 0.0,
        "verified": True, "samples": [1.5], "settings": {"memory": "host", "file": "cold"},
    }  # fmt: skip
    measuring = programs / "beeline-bench-files"
    measuring.unlink(missing_ok=True)
    script = f"[ $3 = 4096 ] && echo '{json.dumps(row)}' && exit\ntouch {began}\nexec sleep 60\n"
    measuring.write_text(f"#!/bin/sh\n{script}")
    measuring.chmod(0o755)
    command = [sys.executable, "-m", "beeline", "bench", "files", "--sizes", "4K,8K", "--memory", "host"]
    environment = {**os.environ, "BEELINE_BIN": str(programs)}
    with subprocess.Popen([*command, "--output", str(record)], env=environment, stderr=subprocess.PIPE) as running:
        end = time.monotonic() + 60
        while not began.exists() and running.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        running.terminate()
        assert running.wait(timeout=30) != 0
    results = [json.loads(line) for line in record.read_text().splitlines()]
    assert [one["median"] for one in results if one.get("method") == "hpe/automatic"] == [1.5]


KVIKIO = """
import contextlib, json, sys, types

class CuFile:
    def __init__(self, path, mode):
        self.file = open(path, {"r": "rb", "r+": "r+b", "w": "wb"}[mode])
        self.fileno, self.read, self.write = self.file.fileno, self.file.readinto, self.file.write
    def __enter__(self):
        return self
    def __exit__(self, *failure):
        self.file.close()

@contextlib.contextmanager
def set(settings):
    print(json.dumps(settings), file=sys.stderr)
    yield

defaults = sys.modules["kvikio.defaults"] = types.ModuleType("kvikio.defaults")
defaults.set = set
"""


def test_kvikio_is_measured_with_one_thread_and_with_several(tmp_path: Path) -> None:
    (tmp_path / "kvikio.py").write_text(KVIKIO)
    program = Path(__file__).parents[2] / "bench" / "peers" / "kvikio" / "measure.py"
    command = [sys.executable, str(program), str(tmp_path), "host", "4096,8192", "2", "cold,cached,durable"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    measured = {(one["method"], one["settings"]["file"], one["bytes"]) for one in results if len(one["samples"]) == 2}
    methods = ("kvikio", "kvikio/4_threads", "kvikio/8_threads")
    assert measured == {(m, file, n) for m in methods for file in ("cold", "cached", "durable") for n in (4096, 8192)}
    used = {(one["num_threads"], one["auto_direct_io_read"]) for one in map(json.loads, done.stderr.splitlines())}
    assert used == {(1, False), (4, False), (4, True), (8, False), (8, True)}
