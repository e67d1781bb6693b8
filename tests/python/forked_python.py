# SPDX-License-Identifier: Apache-2.0
"""Replaces `python`: forks one process that has imported the programs' modules, such as torch, which takes seconds.

python forked_python.py serve SOCKET MODULE...: imports the modules, says "ready", and forks until its input ends.
python forked_python.py run SOCKET PROGRAM ARGUMENT...: as `python PROGRAM ARGUMENT...`, or `-c TEXT` for PROGRAM, with
this process's environment, folder and standard files. Ends as the fork does; if it is killed, so is the fork.
"""

import contextlib
import os
import signal
import socket
import sys

LONGEST = 1 << 17  # bytes of a request


def run(place: str, arguments: list[str]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(place)
        variables = [f"{name}={value}" for name, value in os.environ.items()]
        folder = os.getcwd()  # noqa: PTH109 each start would import pathlib
        request = "\0".join([folder, str(len(arguments)), *arguments, *variables])
        socket.send_fds(connection, [os.fsencode(request)], [0, 1, 2])
        answer = connection.recv(64)
    if not answer:
        sys.exit("forked_python.py: the process that forks has ended")
    status = int(answer)
    if status < 0:  # it ended by a signal
        os.kill(os.getpid(), -status)
    os._exit(status)


def serve(place: str) -> list[str]:
    """Returns only in forks: the program and its arguments."""
    import select

    os.setpgid(0, 0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen(128)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            reap()
            if sys.stdin in ready:
                os.killpg(0, signal.SIGKILL)  # also the processes that it has forked
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    with connection:
        request, files, _, _ = socket.recv_fds(connection, LONGEST, 3)
        fork = os.fork()
        if fork != 0:
            watch(fork, connection)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    folder, count, *texts = os.fsdecode(request).split("\0")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(text.split("=", 1) for text in texts[int(count) :])
    return texts[: int(count)]


def reap() -> None:
    """Reaps ended processes; their CPU time then counts as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def watch(fork: int, connection: socket.socket) -> None:
    """Runs between a fork and the process that requested it."""
    import select

    end = os.pidfd_open(fork)
    ready, _, _ = select.select([end, connection], [], [])
    if connection in ready:  # the process that asked was killed
        os.kill(fork, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(str(status).encode())
    os._exit(0)


def execute(program: str, arguments: list[str]) -> None:
    """Runs the program in this module, which is __main__, as a program's module is."""
    from pathlib import Path

    if program == "-c":
        text, *arguments = arguments
        sys.path[0] = ""
    else:
        text = Path(program).read_text(encoding="utf-8")
        sys.path[0] = str(Path(program).parent)
    sys.argv = [program, *arguments]
    exec(compile(text, program, "exec", dont_inherit=True), globals())


if __name__ == "__main__":
    role, socket_path, *rest = sys.argv[1:]
    if role == "run":
        run(socket_path, rest)
    import importlib

    for module in rest:
        importlib.import_module(module)
    program, *rest = serve(socket_path)
    execute(program, rest)
