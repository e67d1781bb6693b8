# SPDX-License-Identifier: Apache-2.0
"""Texts that must agree: the command line's help, the programs' own help, and the library's docstrings."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from beeline import options
from beeline.cli import app
from beeline.commands.applications import HANDLERS
from beeline.description import commands, description_of
from conftest import FAKES, REPOSITORY, Run

PROGRAMS = REPOSITORY / "build" / "bin"
BENCH = PROGRAMS / "beeline-bench"
needs_programs = pytest.mark.skipif(not BENCH.exists(), reason="build/bin has no programs")
needs_help = pytest.mark.skipif(not (PROGRAMS / "himeno").exists(), reason="build/bin has no applications")


def command_of(*path: str) -> Any:
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.get_command(command.make_context(name, [], resilient_parsing=True), name)
    return command


@dataclass(frozen=True)
class Option:
    """The help's text on an option."""

    text: str
    default: str | None
    limits: tuple[float, float] | None


def options_of(command: Any) -> dict[str, Option]:
    """A command's options by name, without the dashes."""
    found: dict[str, Option] = {}
    for parameter in inspect.signature(inspect.unwrap(command.callback), eval_str=True).parameters.values():
        (about,) = parameter.annotation.__metadata__
        names = (about.default, *(about.param_decls or ()))  # inside Annotated, `default` is the first name
        name = next((name for name in names if str(name).startswith("--")), None)
        if name is None:  # an argument
            continue
        default = None if parameter.default in (None, False) else str(parameter.default)
        found[name.removeprefix("--")] = Option(
            about.help,
            about.show_default if isinstance(about.show_default, str) else default,
            None if about.min is None or about.max is None else (float(about.min), float(about.max)),
        )
    return found


def help_of(program: str) -> dict[str, Option]:
    """A program's options by name, from its --help."""
    done = subprocess.run([PROGRAMS / program, "--help"], capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Option] = {}
    for block in re.split(r"^  (?=-)", done.stdout.partition("\nOptions:")[2], flags=re.MULTILINE)[1:]:
        head, _, text = re.sub(r"\n +", "  ", block.strip()).partition("  ")
        name, default, limits = (
            re.search(pattern, head) for pattern in (r"--([\w-]+)", r"=(\S+)", r"in \[(\S+) - (\S+)\]")
        )
        assert name is not None, block
        text, _, without = " ".join(text.split()).partition("; without it, ")
        found[name[1]] = Option(
            text,
            without.partition(";")[0] or (default[1] if default else None),
            (float(limits[1]), float(limits[2])) if limits else None,
        )
    return {name: one for name, one in found.items() if name != "help"}


def all_commands(path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    command = command_of(*path)
    if not hasattr(command, "list_commands"):
        yield path
        return
    for name in command.list_commands(command.make_context("beeline", [], resilient_parsing=True)):
        yield from all_commands((*path, name))


@pytest.fixture
def real_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("BEELINE_BIN", str(PROGRAMS))
    description_of.cache_clear()
    yield
    description_of.cache_clear()


# Options that `beeline run` explains better than beeline-launch.
IN_OTHER_WORDS = {"ranks", "threads", "bind", "json", "stdin"}


@needs_programs
def test_run_and_the_launcher_have_the_same_options() -> None:
    ours, theirs = options_of(command_of("run")), help_of("beeline-launch")
    assert set(ours) == set(theirs) - {"no-prefix"}  # --json and --threads leave it out
    for name, option in theirs.items():
        if name == "no-prefix":
            continue
        assert ours[name].limits == option.limits, name
        assert (option.text in ours[name].text) == (name not in IN_OTHER_WORDS), name


@needs_programs
def test_the_defaults_of_run_are_those_of_a_world() -> None:
    plain = {name: text for name, text in os.environ.items() if not name.startswith("BEELINE_")}
    told = subprocess.run(
        [PROGRAMS / "beeline-info"], capture_output=True, text=True, timeout=60, check=True, env=plain
    )
    values = {one["variable"]: one["value"] for one in json.loads(told.stdout)["configuration"]}
    ours = {name: one.default for name, one in options_of(command_of("run")).items()}
    assert ours["deadline"] == f"BEELINE_DEADLINE_S, or {values['BEELINE_DEADLINE_S']}"
    assert ours["split-nodes"] == f"BEELINE_SPLIT_NODES, or {values['BEELINE_SPLIT_NODES']}"
    assert ours["device"] == f"BEELINE_DEVICE, or {values['BEELINE_DEVICE']}"
    launcher = help_of("beeline-launch")
    assert all(launcher[name].default == ours[name] for name in ("deadline", "split-nodes"))


@needs_help
@pytest.mark.usefixtures("real_programs")
@pytest.mark.parametrize("name", HANDLERS)
def test_an_application_has_the_options_of_its_program(name: str) -> None:
    ours, theirs = options_of(command_of("app", name)), help_of(name)
    assert set(theirs) - set(ours) == {"list", "describe"}
    started = {"ranks", "devices", "threads", "device", "split-nodes", "mpirun", "json", "output"}  # the launcher's
    studied = {"preset", "scaling", "official"}  # they run the program several times, or another one
    assert set(ours) - set(theirs) <= started | studied
    for option in set(theirs) - {"list", "describe"}:
        assert ours[option].default == theirs[option].default or f"it, {theirs[option].default}" in ours[option].text
        assert ours[option].text.lower().startswith(theirs[option].text.lower()), option


REFUSED = {
    ("himeno", "--size", "XXL"): "valid: XS, S, M, L, XL",
    ("himeno", "--size", "64x64"): "or XxYxZ",
    ("himeno", "--size", "100000x100000x100000"): "3 to 32768",
    ("himeno", "--size", "3x3x3", "--ranks", "1,2"): "each rank needs at least one",
    ("himeno", "--size", "3x3x20000", "--ranks", "1,2", "--scaling", "weak"): "makes 40000 points along z",
    ("himeno", "--iterations", "1000000001"): "1000000000",
    ("global-reduction", "--values", "1K,0"): "'0' is no number of values; valid: 1 to 1024G, like",
    ("global-reduction", "--values", "2048G"): "valid: 1 to 1024G",
    ("global-reduction", "--values", "4,"): "'' is no number of values",
    ("jacobi", "--size", "16,5x"): "--size: '5x' is no size; valid: N (N x N points for each rank)",
    ("jacobi", "--size", "9x3", "--ranks", "1,4"): "each rank needs at least one",
    ("jacobi", "--every", "5"): "--every requires --until",
    ("jacobi", "--until", "nan"): "is no change; valid: numbers above 0",
    ("random-access", "--words", "1K,1000"): "'1000' is no size of a table; valid: powers of two from 1K to 1024G",
    ("random-access", "--words", "1024G"): "half of the memory that a rank has",
    ("random-access", "--words", "1024G", "--weak"): "are more than 1024G words",
    ("ring-reduction", "--size", "6"): "--size",
    ("ring-reduction", "--size", "9" * 5000): "--size",
    ("spin-glass", "--size", "64x3x8"): "'64x3x8' is no size; valid: N or XxYxZ, even numbers of sites from 2 to 4096",
    ("spin-glass", "--size", "4x4x2", "--ranks", "1,4"): "each rank needs at least one",
    ("spin-glass", "--couplings", "strong"): "valid: plus_minus, gaussian",
    ("tree-search", "--searches", "0"): "--searches",
    ("fft", "--size", "4,"): "'' is no number of elements",
    ("fft", "--size", "1000"): "'1000' is no number of elements; valid: powers of two from 2 to 4G",
    ("fft", "--size", "4", "--devices", "1,4"): "each device needs at least 2",
    ("merge-sort", "--keys", "1K,0"): "'0' is no number of keys; valid: 1 to 64G",
    ("merge-sort", "--keys", "3", "--devices", "1,4"): "each device needs at least one",
    ("stencil", "--size", "16,5x7"): "--size: '5x7' is no size; valid: N (N x N x N points) or XxYxZ",
    ("stencil", "--size", "9x9x15", "--devices", "1,4"): "each device needs at least 4",
    ("breadth-first", "--scale", "27"): "10 to 26",
    ("breadth-first", "--scale", "10", "--root", "1024"): "--root: 1024 is no vertex of a graph of scale 10",
    ("breadth-first", "--root", "1", "--roots", "2"): "--root excludes --roots",
    ("breadth-first", "--scale", "10", "--roots", "2000"): "--roots: a graph of scale 10 has 1024 vertices",
}


@needs_help
@pytest.mark.parametrize("arguments", REFUSED, ids=lambda one: " ".join(one)[:40])
def test_what_an_application_refuses_is_refused_before_anything_starts(cli: Run, arguments: tuple[str, ...]) -> None:
    done = cli("app", *arguments, BEELINE_BIN=str(PROGRAMS))
    assert done.returncode == 2
    assert done.stdout == ""
    assert REFUSED[arguments] in done.stderr


@needs_programs
@pytest.mark.usefixtures("real_programs")
def test_measurements_are_what_their_program_describes() -> None:
    """Names, defaults and texts have one source; this compares the help that is made of them."""
    for name, described in commands().items():
        shown = command_of("bench", name)
        assert described["summary"] in shown.help
        ours = options_of(shown)
        for option in described["options"]:
            assert ours[option["name"]].text == option["help"], f"{name} --{option['name']}"
            assert ours[option["name"]].default == option["default"], f"{name} --{option['name']}"


def test_every_command_and_option_has_a_help_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEELINE_BIN", str(FAKES))
    description_of.cache_clear()
    for path in all_commands():
        command = command_of(*path)
        assert command.help, path
        for one in command.params:
            assert one.help, (path, one.name)
    description_of.cache_clear()


def test_a_commands_help_is_its_functions_docstring() -> None:
    """The docstring has whole paragraphs, which a terminal wraps at its own width."""
    for path in [("app", "training-projection"), ("run",), ("info",), ("energy",), ("plot",), ("build-torch",)]:
        command = command_of(*path)
        docstring = inspect.getdoc(inspect.unwrap(command.callback)) or ""
        paragraphs = [" ".join(each.split()) for each in docstring.split("\n\n")]
        assert command.help.split("\n\n") == paragraphs, path


def docstrings(path: Path) -> dict[str, str]:
    """Docstrings of the stub's classes and members: help() shows them; the extension need not be built."""
    found: dict[str, str] = {}
    for one in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(one, ast.ClassDef):
            found[one.name] = ast.get_docstring(one) or ""
            for member in one.body:
                if isinstance(member, ast.FunctionDef):
                    found[f"{one.name}.{member.name}"] = ast.get_docstring(member) or ""
    return {name: " ".join(text.split()) for name, text in found.items()}


STUB = docstrings(REPOSITORY / "python" / "beeline" / "_beeline.pyi")


def test_what_the_library_says_of_a_world_is_what_run_takes() -> None:
    """The kinds of device, the variables and the unit are the same."""
    said, run = STUB["World.create"], options_of(command_of("run"))
    for kind in re.findall(r"'([\w:]+)'", re.search(r"device .*?;", said)[0]):  # type: ignore[index]
        assert kind in run["device"].text
        assert options.check_device(kind.replace("ID", "0"))
    assert f"deadline_s end of every wait, in seconds; None: {run['deadline'].default}" in said
    assert run["deadline"].text.startswith("Seconds ")


@needs_programs
@pytest.mark.usefixtures("real_programs")
def test_measurements_name_operations_types_and_reductions_as_the_library_does() -> None:
    of_collectives, of_accuracy = options_of(command_of("bench", "collectives")), commands()["accuracy"]["options"]
    names = of_collectives["operations"].text.partition(", with commas")[0].split(", ")
    assert [name for name in names if f"Collectives.{name}" not in STUB] == []
    texts = {one["name"]: one["help"].removesuffix(", or all").split(", ") for one in of_accuracy}
    types = re.search(r"reductions take (.*?)(?:, sums|\. )", STUB["Collectives"])
    assert types is not None
    assert texts["types"] == re.split(r", | and ", types[1])
    assert [name for name in texts["reductions"] if f"'{name}'" not in STUB["Collectives"]] == []


def test_the_meter_counts_what_the_command_says(cli: Run) -> None:
    said = " ".join(cli("energy", "--help").stdout.split())
    for source in ("NVML", "RAPL"):
        assert source in said
        assert source in STUB["Meter"]
    kinds = set(re.findall(r"'(\w+)'", STUB["Component.kind"]))
    assert kinds == {"gpu", "cpu", "dram"}
    assert [kind for kind in kinds if kind.upper() not in said] == []
