# SPDX-License-Identifier: Apache-2.0
"""The C++ part of the back end (torch_native.cpp), compiled for the installed torch.

The part derives from torch's own classes, so each version of torch needs its own, and Beeline's packages contain none.
A program that makes a process group starts the compiler in the background, while its calls go through Python; programs
that start later load the result. If the compiler ends with the program, as under `beeline run`, the next program starts
it again. Some ranks may have the part and others not: the data between ranks are the same. A file lock, which ends with
the compiler, prevents the processes of a machine from compiling at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import logging
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch

SOURCE = Path(__file__).with_suffix(".cpp")
HEADERS = SOURCE.with_name("torch_native_work.hpp"), SOURCE.with_name("torch_table.hpp")
MODULE = "_beeline_torch"  # the module's name in the source
SWITCH = "BEELINE_TORCH_NATIVE"
COMMAND = "beeline build-torch"
DEADLINE_S = 600.0  # for one compilation: 25 s on an idle core
POLL_S = 0.1
REMEDY = f"Set XDG_CACHE_HOME to a folder of your own, or {SWITCH}=0"

# Gets the compiler's arguments. Leaves the finished part, or otherwise the compiler's output; neither if a signal ended
# the compiler, as when memory is short, because another attempt may succeed.
COMPILE = """
part=$1; shift
umask 022
rm -f "$part.failed"
"$@" -o "$part.new" >"$part.log" 2>&1
status=$?
if [ $status = 0 ]; then mv -f "$part.new" "$part"; rm -f "$part.log"; exit 0; fi
if [ $status -gt 128 ] || grep -q "terminated program" "$part.log"; then rm -f "$part.log" "$part.new"; exit $status; fi
mv -f "$part.log" "$part.failed"; exit 1
"""

_log = logging.getLogger("beeline")
_loaded: dict[Path, ModuleType] = {}
_reported: set[str] = set()
_compilers: list[subprocess.Popen[bytes]] = []


class Unavailable(Exception):
    """Why calls go through Python."""


class Broken(Unavailable):
    """As Unavailable, for a cause that the user did not choose, and can remove."""


def wanted() -> bool | None:
    """True: a missing part is an error; False: never use the part; None: use it once it is available."""
    value = os.environ.get(SWITCH, "")
    if value not in ("", "0", "1"):
        raise ValueError(f"{SWITCH}={value}: valid are 0 (calls go through Python) and 1 (never)")
    return None if value == "" else value == "1"


def caches() -> Path:
    """The folder of compiled parts. Raises Broken if there is none."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():  # the XDG specification says to ignore other paths
        return named
    try:
        return Path("~/.cache").expanduser()
    except RuntimeError:
        raise Broken(f"this user has no home directory. {REMEDY}") from None


def part() -> Path:
    """The path of the part for this torch, this Python and this version of the source. Raises Broken."""
    what = [torch.__version__, torch.version.git_version, torch.__file__, sysconfig.get_platform(), platform.libc_ver()]
    key = hashlib.sha256(
        "\n".join([*map(str, what), *(each.read_text() for each in (SOURCE, *HEADERS))]).encode()
    ).hexdigest()[:12]
    folder = f"torch-part-{torch.__version__}-{sys.implementation.cache_tag}-{key}"
    return caches() / "beeline" / folder / f"{MODULE}.so"


def is_there(place: Path) -> bool:
    """Whether the file exists; False also if this user has no access."""
    try:
        return place.exists()
    except OSError:
        return False


def compiler() -> list[str]:
    """The compiler. Raises Unavailable if there is none."""
    named = shlex.split(os.environ.get("CXX", ""))
    choices = [named] if named else [["c++"], ["g++"], ["clang++"]]
    for name, *arguments in choices:
        if found := shutil.which(name):
            return [found, *arguments]
    raise Unavailable(f"there is no C++ compiler ({', '.join(choice[0] for choice in choices)})")


def command() -> list[str]:
    """The command that compiles the part, without `-o`. Raises Unavailable without a compiler."""
    home = Path(torch.__file__).parent
    headers = [home / "include", home / "include" / "torch" / "csrc" / "api" / "include", sysconfig.get_path("include")]
    return [
        *(*compiler(), "-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-w"),
        *(f"-isystem{folder}" for folder in headers),
        *(str(SOURCE), f"-L{home / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10"),
    ]


def start(priority: int) -> subprocess.Popen[bytes] | None:
    """Starts the compiler; None if another process runs it, or the part has become available meanwhile."""
    place, arguments = part(), command()
    try:
        place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = os.open(place.parent / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_there(place):
                return None
            # A session of its own, because Ctrl-C is for the program. The compiler holds the lock until it ends in any
            # way.
            process = subprocess.Popen(
                ["nice", "-n", str(priority), "sh", "-c", COMPILE, "sh", place, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[lock], start_new_session=True,
            )  # fmt: skip
            _compilers.append(process)
            # The compiler of a rank that is bound to a core would get no time there: it may use all cores.
            with contextlib.suppress(ProcessLookupError):  # it may have ended
                os.sched_setaffinity(process.pid, range(os.cpu_count() or 1))
            return process
        finally:
            os.close(lock)
    except BlockingIOError:
        return None
    except OSError as problem:
        raise Broken(f"{place.parent}: {problem}. {REMEDY}") from problem


def failure(since: float = 0.0) -> str | None:
    """Why the last compilation failed; None if it succeeded, or ended before `since`, in seconds since 1970."""
    output = part().with_suffix(".so.failed")
    try:
        if output.stat().st_mtime < since:
            return None
        lines = output.read_text(errors="replace").splitlines()
    except OSError:
        return None
    first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no output")
    return f"the compiler failed ({first.strip()}; all of it is in {output}). `{COMMAND}` tries again"


def build(deadline_s: float = DEADLINE_S) -> Path:
    """Compiles the part unless it exists, or waits for the process that compiles it. Raises Unavailable."""
    place, begun, limit = part(), time.time(), time.monotonic() + deadline_s
    lock = place.parent / "lock"
    process = None
    while not is_there(place):
        if process is None:
            process = start(priority=0)
        elif (status := process.poll()) is not None and not is_there(place):
            raise Broken(failure() or f"the compiler ended with status {status}")
        if process is None and (failed := failure(begun)):
            raise Broken(failed)
        if time.monotonic() >= limit:
            if process is not None:
                os.killpg(process.pid, signal.SIGKILL)
                raise Broken(f"the compiler took longer than {deadline_s:g} s")
            raise Broken(
                f"another process has held {lock} for {deadline_s:g} s: it compiles, or hangs"
                f" (`fuser -v {lock}` names it)"
            )
        time.sleep(POLL_S)
    return place


def begin() -> Unavailable:
    """Starts the compilation in the background, and returns the reason for using Python meanwhile."""
    if failed := failure():
        return Broken(failed)
    if start(priority=19) is not None:
        _log.warning(
            "beeline: compiling the C++ part of the torch back end for torch %s, in the background; this run goes "
            "without it. `%s` does it beforehand; %s=0: never", torch.__version__, COMMAND, SWITCH
        )  # fmt: skip
    return Unavailable(f"it is being compiled ({part()}); programs that start later have it")


def loaded(place: Path) -> ModuleType:
    """Loads the part. Raises Broken if it does not fit, or if users other than this one and root may have written
    it."""
    if place not in _loaded:
        for each in (place, place.parent):
            status = each.stat()
            if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
                raise Broken(f"{each} belongs to user {status.st_uid}, mode {status.st_mode & 0o777:o}. {REMEDY}")
        try:
            loader = importlib.machinery.ExtensionFileLoader(MODULE, str(place))
            spec = importlib.util.spec_from_file_location(MODULE, place, loader=loader)
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            module.use(import_module("beeline.library")._beeline._TORCH_TABLE)
        except ImportError as problem:
            raise Broken(f"{place} cannot be loaded: {problem}. Remove it, and it is compiled again") from problem
        _loaded[place] = module
    return _loaded[place]


def in_use() -> ModuleType | None:
    """The part, if this process has loaded it."""
    return next(iter(_loaded.values()), None)


def native_part() -> ModuleType:
    """Returns the part. Without it raises Unavailable, or ImportError if the part is required."""
    must = wanted()
    if must is False:
        raise Unavailable(f"{SWITCH}=0")
    try:
        if must:
            return loaded(build())
        if not is_there(part()):
            raise begin()
        return loaded(part())
    except Unavailable as reason:
        if must:
            raise ImportError(f"{SWITCH}=1: {reason}") from None
        raise


def report(reason: Unavailable) -> None:
    """Logs, once in a process, why calls go through Python, unless the user has chosen that."""
    if isinstance(reason, Broken) and str(reason) not in _reported:
        _reported.add(str(reason))
        _log.warning("beeline: calls of torch.distributed go through Python: %s", reason)
