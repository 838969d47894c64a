"""The rules of the house that no linter knows: who may use what, how long things are, what is written beside them."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "planner").rglob("*.py"))

LINES_MAX = 300
"""[lines] of a module"""
STATEMENTS_MAX = 40
"""[statements] of a function"""

THIRD_PARTY = {
    "ortools": {"program"},
    "yaml": {"loader"},
    "tomli": {"configurations"},
    "rich": {"report", "cli"},
    "typer": {"cli"},
    "pydantic": {"specs", "importers"},
    "pydantic_core": {"specs", "importers"},
    "numpy": {"accuracy", "calibration", "candidates", "placement", "program", "simulate", "costs", "units"},
}
"""Package -> the parts of the planner that may import it. What is not listed may be imported nowhere."""

LAZY = {"ortools", "numpy"}
"""Imported inside functions only, except in the parts that are themselves imported late."""

LATE = {"candidates", "placement", "program"}
"""The parts that nothing needs before a search starts, or before a plan is placed."""

OPEN_SETS = (
    "architectures",
    "outlines",
    "layers",
    "schedules",
    "parallelism",
    "checks",
    "importers",
    "machines",
)
"""Folders whose members never import one another; import-linter holds targets and forms to the same."""

SHARED = {"base", "packing"}
"""Members that the others may import, beside those whose names start with an underscore."""

PRINTERS = {"cli", "report"}
"""The parts that may print."""

HEAVY = ("ortools", "pandas", "numpy")
"""What --help and a refused spec must not wait for."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def part(path: Path) -> str:
    """Return the part of the planner that a module belongs to, as in ``program``."""
    return [*name(path).split("."), ""][1]


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(path: Path) -> list[Function]:
    return [node for node in ast.walk(tree(path)) if isinstance(node, Function)]


def place(path: Path, node: ast.stmt | ast.expr | ast.excepthandler) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def imports(nodes: Iterator[ast.AST], path: Path) -> Iterator[tuple[ast.stmt, str]]:
    """Return every import statement among `nodes` with the absolute name of what it imports."""
    package = name(path).split(".") if path.name == "__init__.py" else name(path).split(".")[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield node, source
            if source.startswith("planner"):
                yield from ((node, f"{source}.{alias.name}") for alias in node.names)


def for_annotations(path: Path) -> list[ast.If]:
    """Return the blocks that only the type checker reads."""
    return [
        node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Whether a handler only tidies up: it ends in a plain ``raise``."""
    return isinstance(handler.body[-1], ast.Raise) and handler.body[-1].exc is None


def public(nodes: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """Return the public functions, classes and methods of `nodes`, with their dotted names."""
    for node in nodes:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{prefix}{node.name}.")


def statements(function: Function) -> int:
    """Return the number of statements of a function; its docstring and inner functions' bodies count as well."""
    return sum(isinstance(node, ast.stmt) for node in ast.walk(function)) - 1


every_module = pytest.mark.parametrize("path", MODULES, ids=name)


@every_module
def test_third_party_packages_are_used_where_the_table_says(path: Path) -> None:
    """A third-party package is imported by the parts in the table and no others."""
    wrong = []
    for node, source in imports(ast.walk(tree(path)), path):
        package = source.split(".")[0]
        if package == "planner" or package in sys.stdlib_module_names:
            continue
        if part(path) not in THIRD_PARTY.get(package, set()):
            allowed = ", ".join(sorted(THIRD_PARTY.get(package, set()))) or "nothing"
            wrong.append(
                f"{place(path, node)}: {package} may be imported by {allowed}, not by {part(path) or 'planner'}"
            )
    assert not wrong, "\n".join(wrong)


@every_module
def test_heavy_packages_are_imported_where_used(path: Path) -> None:
    """OR-Tools and numpy are imported inside functions, except in the parts that are imported late."""
    if part(path) in LATE:
        return
    late = [*functions(path), *for_annotations(path)]
    inside = {id(node) for outer in late for node in ast.walk(outer)}
    wrong = [
        f"{place(path, node)}: import {source} inside the function that uses it"
        for node, source in imports((node for node in ast.walk(tree(path)) if id(node) not in inside), path)
        if source.split(".")[0] in LAZY
    ]
    assert not wrong, "\n".join(wrong)


@every_module
def test_a_module_is_one_idea(path: Path) -> None:
    """No module is longer than 300 lines."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LINES_MAX, (
        f"{path.relative_to(ROOT)} has {lines} lines, {LINES_MAX} are allowed: it holds two ideas"
    )


@every_module
def test_a_function_fits_on_a_screen(path: Path) -> None:
    """No function has more than 40 statements."""
    wrong = [
        f"{place(path, function)}: {function.name} has {statements(function)} statements, {STATEMENTS_MAX} are allowed"
        for function in functions(path)
        if statements(function) > STATEMENTS_MAX
    ]
    assert not wrong, "\n".join(wrong)


@every_module
def test_what_is_public_is_documented(path: Path) -> None:
    """Every module, and every public class, function and method in it, has a docstring."""
    module = tree(path)
    wrong = [] if ast.get_docstring(module) else [f"{path.relative_to(ROOT)}:1: the module has no docstring"]
    wrong += [
        f"{place(path, node)}: {title} has no docstring"
        for title, node in public(module.body)
        if not ast.get_docstring(node)
    ]
    assert not wrong, "\n".join(wrong)


@every_module
def test_functions_are_annotated(path: Path) -> None:
    """Every parameter and every result has its type."""
    wrong = []
    for function in functions(path):
        given = function.args
        parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        bare = [p.arg for p in parameters if p.annotation is None and p.arg not in {"self", "cls"}]
        bare += [] if function.returns else ["return"]
        if bare:
            wrong.append(f"{place(path, function)}: {function.name} has no type for {', '.join(bare)}")
    assert not wrong, "\n".join(wrong)


@every_module
def test_members_of_an_open_set_are_strangers(path: Path) -> None:
    """A member of an open set imports no other member; only the table in ``__init__`` knows them all."""
    folder = part(path)
    if folder not in OPEN_SETS or path.name == "__init__.py":
        return
    wrong = []
    own = path.relative_to(ROOT / "planner" / folder).parts[0].removesuffix(".py")
    for node, source in imports(ast.walk(tree(path)), path):
        pieces = source.split(".")
        other = pieces[2] if pieces[:2] == ["planner", folder] and len(pieces) > 2 else ""
        member = (ROOT / "planner" / folder / f"{other}.py").exists() or (ROOT / "planner" / folder / other).is_dir()
        if other and member and other != own and not other.startswith("_") and other not in SHARED:
            wrong.append(f"{place(path, node)}: {folder}.{path.stem} imports {folder}.{other}")
    assert not wrong, "\n".join(wrong)


@every_module
def test_only_the_command_line_and_reports_print(path: Path) -> None:
    """Nothing below report writes to the terminal."""
    if part(path) in PRINTERS:
        return
    wrong = [
        f"{place(path, node)}: print() below report; return the value instead"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not wrong, "\n".join(wrong)


@every_module
def test_no_exception_is_caught_blindly(path: Path) -> None:
    """No bare except; ``except Exception`` only in cli, where a bug becomes exit code 70; tidying up is free."""
    blind = {"BaseException"} if part(path) == "cli" else {"BaseException", "Exception"}
    wrong = []
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.ExceptHandler) or raises_again(node):
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(kind is None or (isinstance(kind, ast.Name) and kind.id in blind) for kind in caught):
            wrong.append(f"{place(path, node)}: name the exception that is meant")
    assert not wrong, "\n".join(wrong)


@every_module
def test_names_for_export_exist(path: Path) -> None:
    """``__all__`` names only what the module has; the linter sorts it."""
    module = tree(path)
    listed: list[str] = []
    known: set[str] = {file.stem for file in path.parent.iterdir()} if path.name == "__init__.py" else set()
    typed = [node for test in module.body if isinstance(test, ast.If) for node in test.body]  # of TYPE_CHECKING
    for node in [*module.body, *typed]:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            known |= names
            if "__all__" in names and node.value is not None:
                listed = ast.literal_eval(node.value)
        elif isinstance(node, Function | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            known |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    unknown = sorted(set(listed) - known)
    assert not unknown, f"{path.relative_to(ROOT)}: __all__ names {', '.join(unknown)}, which the module does not have"


def test_the_command_line_starts_without_heavy_packages() -> None:
    """Importing planner.cli imports neither OR-Tools nor pandas nor numpy, so that --help is quick."""
    script = f"import sys, planner.cli; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "", f"planner.cli imports {done.stdout.strip()}: import it where it is used"
