# SPDX-License-Identifier: Apache-2.0
"""The command line `beeline`."""

from __future__ import annotations

import errno
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from beeline import __version__, options
from beeline.commands import (
    build_torch,
    energy,
    info,
    plot,
    run,
    training_projection,
)  # fmt: skip
from beeline.commands.applications import Applications
from beeline.commands.benchmarks import Benchmarks
from beeline.errors import InvalidArgumentError
from beeline.jobs import Interrupted, interruptible, reset_signals
from beeline.outlet import Outlet
from beeline.programs import CliError
from beeline.texts import encode_all

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a file takes no more
READER_S = 1  # for a reader of standard error that reads nothing
HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    help="Communication of GPUs and CPUs: put, get, signals and collectives, in kernels and on streams.",
    no_args_is_help=True, add_completion=False, context_settings=HELP, pretty_exceptions_enable=False,
)  # fmt: skip
apps = typer.Typer(
    cls=Applications,
    help="Run an application with each method of communication.",
    no_args_is_help=True,
    context_settings=HELP,
)
benchmarks = typer.Typer(
    cls=Benchmarks,
    help="Measure methods: latency, bandwidth, rates, collectives, energy.",
    no_args_is_help=True,
    context_settings=HELP,
)


def add_command(group: typer.Typer, function: Callable[..., None], **settings: Any) -> None:
    """Its help is its docstring, with the lines of each paragraph joined: a terminal breaks them at its own width."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    group.command(help=text, context_settings=HELP | settings)(function)


add_command(app, info.info)
# Arguments after PROGRAM belong to PROGRAM, options included.
add_command(app, run.run, allow_interspersed_args=False)
add_command(app, energy.energy, allow_interspersed_args=False)
add_command(app, plot.plot)
add_command(app, build_torch.build_torch)
app.add_typer(benchmarks, name="bench")
app.add_typer(apps, name="app")
add_command(apps, training_projection.training_projection)


def print_version(wanted: bool) -> None:
    if wanted:
        print(f"beeline {__version__}")
        raise typer.Exit


@benchmarks.callback()
@apps.callback()
def group(context: typer.Context, as_json: options.Json = False) -> None:
    """Options before the command's name are the command's."""
    if as_json:
        context.default_map = {name: {"as_json": True} for name in context.command.list_commands(context)}


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    if sys.stderr is None:  # it is closed: output there is lost
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until this process ends
    for stream in (sys.stdout, sys.stderr):
        encode_all(stream)
    reset_signals()
    try:
        with interruptible():
            try:
                app()
            except (SystemExit, CliError):
                if sys.stdout is not None:  # closed
                    sys.stdout.flush()  # so that a closed reader is noticed here, and not when Python ends
                raise
    except CliError as error:
        print(f"beeline: {error}", file=sys.stderr)
        sys.exit(error.status)
    except InvalidArgumentError as error:  # a record was not valid
        print(f"beeline: {error}", file=sys.stderr)
        sys.exit(1)
    except Interrupted as interrupted:
        said = Outlet(sys.stderr.fileno())
        said.write(f"beeline: ended by {interrupted}\n")
        said.finish(READER_S)
        os._exit(128 + interrupted.number)  # the buffer of standard output may have no reader
    except BrokenPipeError:
        drop_rest_of_output()
        sys.exit(1)
    except OSError as error:
        if error.errno not in FULL:
            raise
        drop_rest_of_output()
        print(f"beeline: the output cannot be written: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def drop_rest_of_output() -> None:
    """Python writes the rest of the buffer when it ends."""
    if sys.stdout is not None:  # closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
