# SPDX-License-Identifier: Apache-2.0
"""Generates the reference of the package `beeline` from the docstrings of `help(beeline.NAME)`: see tools/reference."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

INTRODUCTION = """# Reference of Python

Written by `tools/reference` from the docstrings that `help(beeline.World)` and so on show; a test compares the two.
Sizes are in elements unless a name or a text says bytes; times are in seconds. Every call that waits raises a class of
`beeline.Error` at the world's deadline. Programs: [from Python](collectives.md#from-python),
[tutorial](tutorial.md#12-python-and-torch), [energy](energy.md).
"""
# Sections: title, file from which names are imported, and files that define them.
SECTIONS = (
    ("beeline", "library.py", ("_beeline.pyi", "library.py")),
    ("Exceptions of beeline", "errors.py", ("errors.py",)),
    ("beeline.energy", "energy.py", ("_beeline.pyi", "energy_record.py", "energy.py")),
    ("beeline.torch_backend", "torch_backend.py", ("torch_backend.py",)),
)
Definition = ast.ClassDef | ast.FunctionDef


def exported(module: ast.Module) -> list[str]:
    """The names in the module's __all__, in its order."""
    for statement in module.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return list(ast.literal_eval(statement.value))
    raise ValueError("the module has no __all__")


def is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__len__")


def decorators(function: ast.FunctionDef) -> set[str]:
    return {ast.unparse(each) for each in function.decorator_list}


def signature(function: ast.FunctionDef) -> str:
    """The signature as help() shows it, without `self`."""
    arguments = ast.unparse(function.args).removeprefix("self").removeprefix(", ").removeprefix("/").removeprefix(", ")
    returns = f" -> {ast.unparse(function.returns)}" if function.returns and ast.unparse(function.returns) else ""
    return f"{function.name}({arguments}){returns}"


def text_of(definition: ast.AST) -> str:
    """The docstring as Markdown. An indented line is code after an empty line; otherwise it continues a parameter."""
    out: list[str] = []
    in_code, before = False, ""
    for line in (ast.get_docstring(definition) or "").splitlines():
        is_code = line.startswith("    ") and (in_code or not before)
        if in_code and line and not is_code:
            out[-1] = "```\n"  # replaces the empty line that ends the code
        if is_code and not in_code:
            out.append("```python")
        in_code = is_code or (in_code and not line)
        out.append(line.removeprefix("    ") if in_code else parameter(line.replace("::", ":")))
        before = line
    return "\n".join([*out, "```"] if in_code else out)


def parameter(line: str) -> str:
    """Makes `name  text` an item of a list, and indents the lines that continue it."""
    name, gap, text = line.partition("  ")
    if line.startswith(" "):
        return "  " + line.strip()
    return f"- `{name}`: {text.strip()}" if gap and text and " " not in name else line


def members(definition: ast.ClassDef) -> Iterator[str]:
    for member in definition.body:
        if not isinstance(member, ast.FunctionDef) or not is_public(member.name):
            continue
        is_property = "property" in decorators(member)
        title = member.name if is_property else signature(member)
        kind = "property " if is_property else "static " if "staticmethod" in decorators(member) else ""
        yield f"#### {kind}`{title}`\n\n{text_of(member)}\n"


def python_reference(package: Path) -> tuple[str, list[str]]:
    """The document, and the names that lack a docstring."""
    parts, problems = [INTRODUCTION], []
    for title, names_from, files in SECTIONS:
        parts.append(f"## {title}\n")
        trees = [ast.parse((package / file).read_text(encoding="utf-8")) for file in files]
        defined = {one.name: one for tree in trees for one in tree.body if isinstance(one, Definition)}
        module = ast.parse((package / names_from).read_text(encoding="utf-8"))
        for name in exported(module):
            definition = defined[name]
            if not ast.get_docstring(definition):
                problems.append(f"{title}: {name} has no docstring")
            is_class = isinstance(definition, ast.ClassDef)
            parts.append(f"### {name if is_class else f'`{signature(definition)}`'}\n\n{text_of(definition)}\n")
            if is_class and title != "beeline.torch_backend":
                parts += members(definition)
    return "\n".join(parts), problems
