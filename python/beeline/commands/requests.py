# SPDX-License-Identifier: Apache-2.0
"""`beeline bench address-space`: beside the memory requests that the program counts, those that the GPU's counters
count, if Nsight Compute is here."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from beeline.commands.bench import measure
from beeline.description import PROGRAM, Call
from beeline.display import ResultView
from beeline.jobs import Event, running
from beeline.programs import CliError, World, find_program, launch_command
from beeline.ranks.records import result

PROFILER = "ncu"
# Part of the kernel's name, as a template's argument. The kernel is launched once for each row, in the rows' order.
KERNEL = "WarpAccess"
# Instructions and sectors of the first-level cache, requests and sectors of the second-level cache, bytes on links: a
# GPU has some of them.
COUNTERS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "lts__t_requests_srcunit_tex.sum", "lts__t_sectors_srcunit_tex.sum", "lts__t_requests_aperture_peer.sum",
    "lts__t_sectors_aperture_peer.sum", "nvltx__bytes.sum", "nvlrx__bytes.sum",
)  # fmt: skip


def address_space(call: Call, view: ResultView, world: World) -> None:
    measure(call, view, world)
    rows = [one for one in view.results if is_counted(one)]
    if not rows or world.device == "cpu" or not shutil.which(PROFILER):
        return
    try:
        counted = count(rows, view, world)
    except CliError as problem:
        view.show_line(f"requests are not counted by the hardware: {problem}")
        return
    for one in counted:
        view.add(one)


def is_counted(one: Event) -> bool:
    return str(one.get("operation")).endswith("_requests") and one.get("median") is not None


def count(rows: list[Event], view: ResultView, world: World) -> list[Event]:
    """Runs these operations once more, profiled: a result for each row and counter."""
    operations = ",".join(dict.fromkeys(str(one["operation"]) for one in rows))
    counters = known_counters()
    if not counters:
        raise CliError(f"{PROFILER} knows none of the counters on this machine")
    command = launch_command(world, find_program(PROGRAM), ["address-space", "--operations", operations])
    view.set_progress(f"{PROFILER}: {operations}")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "launches.csv"
        which = ["--target-processes", "all", "--kernel-name-base", "demangled", "--kernel-name", f"regex:{KERNEL}"]
        how = [*which, "--metrics", ",".join(counters)]
        with running([PROFILER, *how, "--csv", "--log-file", str(log), *command], view.show_line) as events:
            for _ in events:
                pass
        launches = read_launches(log.read_text())
    if len(launches) != len(rows):
        raise CliError(f"{PROFILER} has counted {len(launches)} launches of {len(rows)}")
    return [
        result(str(row["operation"]), f"hardware/{PROFILER}", int(row["bytes"]), int(row["ranks"]))
        | {"unit": "requests", "median": value, "samples": [value], "settings": row["settings"] | {"counter": counter}}
        for row, launch in zip(rows, launches, strict=True)
        for counter, value in launch.items()
    ]


def known_counters() -> list[str]:
    done = subprocess.run([PROFILER, "--query-metrics"], capture_output=True, text=True, check=False)
    known = set(re.findall(r"^\w+", done.stdout, re.MULTILINE))
    return [one for one in COUNTERS if one.partition(".")[0] in known]


def read_launches(text: str) -> list[dict[str, float]]:
    """The counters of each launch, in the order of the launches."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    launches: dict[str, dict[str, float]] = {}
    for line in csv.DictReader(lines):
        value = line["Metric Value"].replace(",", "")
        launches.setdefault(line["ID"], {})[line["Metric Name"]] = float(value)
    return list(launches.values())
