"""Statements of a configuration function, followed one by one as far as they say plainly what they set."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from planner.configurations.forms.torchtitan.catalog import Recipe, models, recipes
from planner.configurations.forms.torchtitan.literals import UNSAID, value_of
from planner.domain.configuration import Setting, Spot

DEPTH = 8
"""Functions of the module that may call one another; more is a circle."""
RUNS = 1_000
"""Functions that are followed, one call after the other."""
CHECKPOINTS = {"SelectiveAC": "selective", "FullAC": "full", "MemoryBudgetAC": "memory_budget"}
"""Classes of activation checkpointing -> what the mode was called in TOML."""
TABLES = {"ParallelismConfig": "parallelism", "TrainingConfig": "training", "CompileConfig": "compile"}
"""Classes whose arguments are the keys of a table."""
MODE = "activation_checkpoint.mode"
WRITTEN_OUT = "llama_like"
"""Function of our own exports whose arguments are a model's sizes, under the names of Hugging Face configurations."""


@dataclass(slots=True)
class Draft:
    """A configuration while it is read."""

    base: dict[str, Any] = field(default_factory=dict)
    """What the recipe sets from which it starts."""
    settings: dict[str, Setting] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """A configuration, or a part of it, that a name stands for."""

    draft: Draft
    path: str = ""


class Reader:
    """The functions of one module."""

    def __init__(self, tree: ast.Module, origin: str) -> None:
        """Collect functions, imported models and constants of a module."""
        self.origin, self.runs = origin, 0
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.model = _imported_model(tree)
        self.constants: dict[str, Any] = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.constants[node.targets[0].id] = value_of(node.value, self.constants)

    def run(self, name: str, depth: int = 0) -> Draft | None:
        """Return the configuration that a function returns, None if it returns none."""
        self.runs += 1
        if depth > DEPTH or self.runs > RUNS:
            return None
        names: dict[str, Any] = dict(self.constants)
        for statement in self.functions[name].body:
            if isinstance(statement, ast.Return):
                found = self._meaning(statement.value, names, depth) if statement.value else None
                return found.draft if isinstance(found, Place) and not found.path else None
            self._follow(statement, names, depth)
        return None

    def _follow(self, statement: ast.stmt, names: dict[str, Any], depth: int) -> None:
        """Take in one statement."""
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._assign(statement.target, statement.value, names, depth)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._assign(statement.targets[0], statement.value, names, depth)
        elif isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Assert)) or _is_text(statement):
            return
        else:
            self._unfollowed(statement, names)

    def _assign(self, target: ast.expr, value: ast.expr, names: dict[str, Any], depth: int) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = self._meaning(value, names, depth)
        elif isinstance(target, ast.Attribute):
            place = self._place(target, names)
            if place is not None:
                self._set(place, self._meaning(value, names, depth), target)
        else:
            self._unfollowed(target, names)

    def _place(self, node: ast.expr, names: dict[str, Any]) -> Place | None:
        """Return what part of a configuration ``c.parallelism.x`` names."""
        if isinstance(node, ast.Attribute):
            above = self._place(node.value, names)
            return Place(above.draft, f"{above.path}.{node.attr}".strip(".")) if above else None
        found = names.get(node.id) if isinstance(node, ast.Name) else None
        return found if isinstance(found, Place) else None

    def _meaning(self, node: ast.expr, names: dict[str, Any], depth: int) -> Any:
        """Return what an expression stands for: a plain value, a place, a call whose class is known, or `UNSAID`."""
        place = self._place(node, names)
        if place is not None:
            written = place.draft.settings.get(place.path)
            return written.value if written else place
        if not isinstance(node, ast.Call):
            return value_of(node, names)
        name = _called(node)
        if name in self.functions and name != WRITTEN_OUT:
            draft = self.run(name, depth + 1)
            return Place(draft) if draft is not None else UNSAID
        if name in recipes():
            return Place(_started(recipes()[name], name, Spot(self.origin, node.lineno, node.col_offset + 1)))
        if name == "Trainer":
            draft = Draft()
            self._arguments(Place(draft), node, names, depth)
            return Place(draft)
        known = name in {*CHECKPOINTS, *TABLES, "model_registry", WRITTEN_OUT}
        return node if known else UNSAID

    def _arguments(self, place: Place, call: ast.Call, names: dict[str, Any], depth: int) -> None:
        """Set every keyword of a call below `place`."""
        for keyword in call.keywords:
            if keyword.arg is None:
                place.draft.notes.append(f"{self.origin}:{call.lineno}: arguments behind ** were not read")
                continue
            below = Place(place.draft, f"{place.path}.{keyword.arg}".strip("."))
            self._set(below, self._meaning(keyword.value, names, depth), keyword)

    def _set(self, place: Place, meaning: Any, where: ast.expr | ast.keyword) -> None:
        """Write a setting down, or that it is not known."""
        spot, draft = Spot(self.origin, where.lineno, where.col_offset + 1), place.draft
        if place.path == "activation_checkpoint":
            meaning = "none" if meaning is None else meaning
            place = Place(draft, MODE)
        if isinstance(meaning, ast.Call):
            self._construct(place, meaning, spot)
        elif meaning is UNSAID or isinstance(meaning, Place):
            if place.path == "model_spec":
                _forget_model(draft)
            draft.settings.pop(place.path, None)
            if not _is_object(place.path):
                draft.notes.append(
                    f"{spot.file}:{spot.line}: {place.path} is found out by running it, and was not read"
                )
        else:
            name = "activation_checkpoint" if place.path == MODE else place.path
            draft.settings[place.path] = Setting(name=name, value=meaning, spot=spot)

    def _construct(self, place: Place, call: ast.Call, spot: Spot) -> None:
        """Set what a constructor with known arguments stands for."""
        name, draft = _called(call), place.draft
        if name in CHECKPOINTS:
            draft.settings[MODE] = Setting(name="activation_checkpoint", value=CHECKPOINTS[name], spot=spot)
        elif name == WRITTEN_OUT:
            _forget_model(draft)
            self._arguments(Place(draft, "model"), call, dict(self.constants), DEPTH)
        elif name == "model_registry":
            flavor = value_of(call.args[0], self.constants) if call.args else UNSAID
            _forget_model(draft)
            if isinstance(flavor, str) and self.model:
                draft.base.update({"model.name": self.model})
                draft.settings["model.flavor"] = Setting(name="model_spec", value=flavor, spot=spot)
            else:
                draft.notes.append(f"{spot.file}:{spot.line}: which model model_registry makes was not read")
        else:
            for key in [key for key in (*draft.settings, *draft.base) if key.startswith(f"{TABLES[name]}.")]:
                draft.settings.pop(key, None)
                draft.base.pop(key, None)
            self._arguments(Place(draft, TABLES[name]), call, dict(self.constants), DEPTH)

    def _unfollowed(self, node: ast.AST, names: dict[str, Any]) -> None:
        """Note a statement that decides at run time, and forget the names and settings that it may change."""
        line = getattr(node, "lineno", 0)
        drafts = {id(found.draft): found.draft for found in names.values() if isinstance(found, Place)}
        for draft in drafts.values():
            draft.notes.append(f"{self.origin}:{line}: this statement decides while it runs, and was not read")
        for target in _targets(node):
            place = self._place(target, names)
            if place is not None and isinstance(target, ast.Attribute):
                place.draft.settings.pop(place.path, None)
            elif isinstance(target, ast.Name):
                names[target.id] = UNSAID


def _started(recipe: Recipe, name: str, spot: Spot) -> Draft:
    """Return the configuration that a recipe of torchtitan's own makes."""
    flavor = Setting(name=name, value=recipe.flavor, spot=spot)
    draft = Draft(base={"model.name": recipe.model, **recipe.values}, settings={"model.flavor": flavor})
    if recipe.converted:
        draft.notes.append(f"{name} computes products in 8 bits (float8); it is read as if it did in bf16")
    return draft


def _forget_model(draft: Draft) -> None:
    for key in [key for key in draft.settings if key.startswith("model.")]:
        draft.settings.pop(key)
    draft.base.pop("model.name", None)


def _called(call: ast.Call) -> str:
    """Return the name of what is called, ``FullAC`` of ``ac.FullAC.Config()``."""
    node = call.func
    if isinstance(node, ast.Attribute) and node.attr == "Config":
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _imported_model(tree: ast.Module) -> str:
    """Return the model of torchtitan from whose package a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torchtitan.models."):
            name = (node.module or "").split(".")[2]
            if name in models("0.3"):
                return name
    return ""


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """Yield everything that is assigned inside of a statement."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Assign, ast.Delete)):
            yield from inner.targets
        elif isinstance(inner, (ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
            yield inner.target


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_object(path: str) -> bool:
    """Return whether a path is that of an object which says nothing of the plan, such as the optimizer."""
    return path.partition(".")[0] in OBJECTS


OBJECTS = (
    "optimizer",
    "lr_scheduler",
    "loss",
    "dataloader",
    "tokenizer",
    "validator",
    "override",
    "metrics",
    "checkpoint",
    "profiler",
    "comm",
    "debug",
)
