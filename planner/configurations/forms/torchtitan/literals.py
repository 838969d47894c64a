"""Values of Python expressions that say them plainly: literals, arithmetic on whole numbers, lists of numbered names.

Nothing is ever executed: an expression is looked at, and what it does not say by itself is `UNSAID`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final


class _Unsaid:
    """What an expression means that only running it would tell."""

    def __repr__(self) -> str:
        return "UNSAID"


UNSAID: Final = _Unsaid()
MOST = 10_000
"""Entries that a list may have, and letters that a text may; more are no configuration."""
NUMBER_MOST = 10**12

_ARITHMETIC: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
}


def value_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return what an expression says, `UNSAID` if it does not by itself.

    Args:
        node: the expression.
        names: values of the names that are known.
    """
    read = _READERS.get(type(node))
    return read(node, names) if read else UNSAID


def _constant(node: ast.Constant, _names: Mapping[str, Any]) -> Any:
    plain = node.value is None or isinstance(node.value, (bool, int, float, str))
    return node.value if plain else UNSAID


def _name(node: ast.Name, names: Mapping[str, Any]) -> Any:
    return names.get(node.id, UNSAID)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _negated(node: ast.UnaryOp, names: Mapping[str, Any]) -> Any:
    value = value_of(node.operand, names)
    if isinstance(node.op, ast.USub) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return -value
    return not value if isinstance(node.op, ast.Not) and isinstance(value, bool) else UNSAID


def _joined(node: ast.BinOp, names: Mapping[str, Any]) -> Any:
    left, right = value_of(node.left, names), value_of(node.right, names)
    if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
        return [*left, *right] if len(left) + len(right) <= MOST else UNSAID
    work = _ARITHMETIC.get(type(node.op))
    if work is None or not (_whole(left) and _whole(right)):
        return UNSAID
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right == 0:
        return UNSAID
    result = work(left, right)
    return result if abs(result) <= NUMBER_MOST else UNSAID


def _list(node: ast.List | ast.Tuple, names: Mapping[str, Any]) -> Any:
    found: list[Any] = []
    for element in node.elts:
        inner = value_of(element.value if isinstance(element, ast.Starred) else element, names)
        if inner is UNSAID or (isinstance(element, ast.Starred) and not isinstance(inner, list)):
            return UNSAID
        found += inner if isinstance(element, ast.Starred) else [inner]
        if len(found) > MOST:
            return UNSAID
    return found


def _text(node: ast.JoinedStr, names: Mapping[str, Any]) -> Any:
    parts: list[str] = []
    for part in node.values:
        plain = isinstance(part, ast.FormattedValue) and part.conversion == -1 and part.format_spec is None
        value = value_of(part.value if isinstance(part, ast.FormattedValue) else part, names)
        if (isinstance(part, ast.FormattedValue) and not plain) or not isinstance(value, (int, str)):
            return UNSAID
        parts.append(str(value))
    return "".join(parts) if sum(map(len, parts)) <= MOST else UNSAID


def _comprehension(node: ast.ListComp | ast.GeneratorExp, names: Mapping[str, Any]) -> Any:
    """Return ``[... for name in range(...)]``, and nothing more general."""
    (first, *others) = node.generators
    if others or first.ifs or not isinstance(first.target, ast.Name):
        return UNSAID
    numbers = _range(first.iter, names)
    if numbers is None or len(numbers) > MOST:
        return UNSAID
    found = list(_each(node.elt, first.target.id, numbers, names))
    return UNSAID if any(value is UNSAID for value in found) else found


def _each(element: ast.expr, name: str, numbers: range, names: Mapping[str, Any]) -> Iterator[Any]:
    for number in numbers:
        yield value_of(element, {**names, name: number})


def _range(node: ast.expr, names: Mapping[str, Any]) -> range | None:
    is_range = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"
    if not is_range or not isinstance(node, ast.Call) or node.keywords or not 1 <= len(node.args) <= 3:
        return None
    bounds = [value_of(argument, names) for argument in node.args]
    if not all(_whole(bound) for bound in bounds) or (len(bounds) == 3 and bounds[2] == 0):
        return None
    return range(*bounds)


_READERS: Mapping[type[ast.expr], Callable[[Any, Mapping[str, Any]], Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.List: _list,
    ast.Tuple: _list,
    ast.UnaryOp: _negated,
    ast.BinOp: _joined,
    ast.JoinedStr: _text,
    ast.ListComp: _comprehension,
    ast.GeneratorExp: _comprehension,
}
"""Kind of expression -> what reads it."""
