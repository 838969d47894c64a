"""Problems of a spec in the user's words: pydantic's findings with their place, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from planner.errors import Problem, SpecError
from planner.loader import Document, Path

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    Record = TypeVar("Record", bound=BaseModel)

_MISSING = "is missing; add it"

LONGEST_WORD = 100
"""Characters from which on a word is no slip of another; likeness takes the product of both lengths."""
SHORT_PART, LONG_PART = 4, 8
"""Letters of a part of a word from which one letter, and two, may be a slip."""
_JOINTS = re.compile(r"[-_.]+")
Found = tuple[Path, str]
"""Where something is wrong, and what."""

_TAGS = {"<block>", "<name>"}
"""What pydantic puts into a path where a value may be a block or a name."""
_UNIT = re.compile(r"_(gib|kib|gbyte_per_s|gbit_per_s|us|tflops|ms|s|hours)$")
_WRONG_UNIT = re.compile(
    r"_(tflop_per_s|gbyte_per_s|gbit_per_s|gbytes_per_s|gbits_per_s|gb_per_s|gb_s|gbps|gbs|mbps|tbps|gbytes?|gbits?|gb|gib|"
    r"kb|kib|mb|mib|tb|tib|bytes?|usec|us|ms|ns|seconds?|secs?|s|hours?|hrs?|h|pflops|gflops|tflops|flops)$",
    re.IGNORECASE,
)


def shown(value: object) -> str:
    """Return `value` short enough for a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def near_words(word: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return those of `known` that `word` may be a slip of, the likest first; none of a text too long for one."""
    return get_close_matches(word, list(known), n=most, cutoff=cutoff) if len(word) <= LONGEST_WORD else []


def is_slip(word: str, right: str, known: Iterable[str] = ()) -> bool:
    """Return whether `word` is surely `right` with a slip of the pen, and no name of somebody's own.

    All parts between hyphens, underscores and dots are the same but one, which has one letter too many, too few, other
    or changed with its neighbour (two where it is long), and is no part of one of the `known` words: ``--patch-size``
    is no slip of ``--batch-size`` where ``--patch-dim`` is known.
    """
    if len(word) > LONGEST_WORD:
        return False
    if re.sub(_JOINTS, "", word.lower()) == re.sub(_JOINTS, "", right.lower()):
        return True
    parts, wanted = re.split(_JOINTS, word.lower()), re.split(_JOINTS, right.lower())
    odd = [(one, other) for one, other in zip(parts, wanted, strict=False) if one != other]
    if len(parts) != len(wanted) or len(odd) != 1 or not odd[0][0].isalpha():
        return False
    one, other = odd[0]
    used = any(one in re.split(_JOINTS, name.lower()) for name in known)
    most = 1 if len(other) < LONG_PART else 2
    return not used and min(len(one), len(other)) >= SHORT_PART and _edits(one, other) <= most


def _edits(one: str, other: str) -> int:
    """Return how many letters must be added, left out, replaced or changed with their neighbour to get `other`."""
    before: list[int] = []
    last: list[int] = [*range(len(other) + 1)]
    for i, letter in enumerate(one):
        row = [i + 1]
        for j, wanted in enumerate(other):
            row.append(min(last[j + 1] + 1, row[j] + 1, last[j] + int(letter != wanted)))
            if i and j and letter == other[j - 1] and one[i - 1] == wanted:
                row[-1] = min(row[-1], before[j - 1] + 1)
        before, last = last, row
    return last[-1]


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean X?``, or the known words where none is near."""
    words = list(dict.fromkeys(known))
    lower = {name.lower(): name for name in words}
    near = near_words(word.lower(), lower, most=2)
    near = near or [name for name in lower if name.startswith(word.lower()[:4])][:4]
    if near:
        return f"; did you mean {' or '.join(lower[name] for name in near)}?"
    return f"; known: {', '.join(words[:24])}{', ...' if len(words) > 24 else ''}" if words else ""


def unknown_key(key: str, known: Sequence[str]) -> str:
    """Return the message about an unknown key, with the right unit where only that is wrong."""
    quantity = _quantity(key)
    right = sorted(name for name in known if _UNIT.search(name) and _UNIT.sub("", name) in {quantity, key})
    if right:
        sheet = {"gib": " (2^30 bytes)", "bit": " (network sheets mean bits)"}
        note = sheet["gib"] if right[0].endswith("_gib") else sheet["bit"] if len(right) > 1 else ""
        return f"unknown key {key}: write {' or '.join(right)}{note}"
    return f"unknown key {key}{nearest(key, known)}"


def _quantity(key: str) -> str:
    """Return `key` without its unit, ``memory`` of ``memory_gb``."""
    return _WRONG_UNIT.sub("", key.lower().replace("-", "_"))


def validate(
    record: type[Record],
    document: Document,
    *,
    base: Path = (),
    semantics: Callable[[Any], Iterable[Found]] = lambda _: (),
) -> Record:
    """Return the record that a document holds.

    Args:
        record: class of the record.
        document: the text's value and places.
        base: where in the document the record stands.
        semantics: finds what no single field can tell; it gets the value as written, whatever its shape.

    Raises:
        SpecError: with all problems, the document's own included, in the order of the text.

    """
    value = document.value
    for part in base:
        value = value[part]
    result, found = checked(record, value)
    found += [item for item in semantics(value) if item[0] not in {path for path, _ in found}]
    problems = [document.problem((*base, *path), message) for path, message in found]
    taken = {problem.place for problem in document.problems}
    problems = [*document.problems, *(problem for problem in problems if problem.place not in taken)]
    if result is None or problems:
        raise SpecError(sorted(dict.fromkeys(problems), key=_line))
    return result


def checked(record: type[Record], value: object) -> tuple[Record | None, list[Found]]:
    """Return the record of a plain value, or None with all that is wrong."""
    from pydantic import ValidationError

    if not isinstance(value, dict):
        return None, [((), f"should be a mapping of keys to values, not {shown(value)}")]
    try:
        return record.model_validate(value), []
    except ValidationError as error:
        found = [_found(record, detail) for detail in error.errors(include_url=False)]
        unknown = {(path[:-1], word) for path, message in found if "unknown key" in message for word in message.split()}
        return None, [item for item in found if item[1] != _MISSING or (item[0][:-1], item[0][-1]) not in unknown]


def _line(problem: Problem) -> int:
    match = re.match(r"[^ ]*?:(\d+)(?: |$)", problem.place)
    return int(match[1]) if match else 0


def _found(record: type[BaseModel], detail: ErrorDetails) -> Found:
    """Translate one finding of pydantic."""
    path = tuple(part for part in detail["loc"] if part not in _TAGS)
    if detail["type"] == "extra_forbidden":
        *outer, key = detail["loc"]
        inside = tuple(part for part in outer if part not in _TAGS)
        return (*inside, key), unknown_key(str(key), _known_keys(record, inside))
    return path, _message(detail)


def _message(detail: ErrorDetails) -> str:
    """Return what is wrong with a value, and what would be right."""
    kind, context, given = detail["type"], detail.get("ctx", {}), shown(detail["input"])
    if kind in {"missing", "value_error"}:
        return str(context.get("error", _MISSING))
    if kind in {"too_short", "too_long"}:
        bound = f"at least {context['min_length']}" if kind == "too_short" else f"at most {context['max_length']}"
        return f"should have {bound} entries, not {context['actual_length']}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'|(\d+)", context["expected"])
        return (
            f"should be {context['expected'].replace(chr(39), '')}, not {given}{_near_choice(detail['input'], choices)}"
        )
    wanted = {
        "int_type": "a whole number",
        "int_from_float": "a whole number",
        "float_type": "a number",
        "string_type": "text",
        "bool_type": "true or false",
        "list_type": "a list",
        "dict_type": "a mapping of keys to values",
        "model_type": "a mapping of keys to values",
        "model_attributes_type": "a mapping of keys to values",
        "finite_number": "a finite number",
        "greater_than": f"more than {context.get('gt')}",
        "greater_than_equal": f"at least {context.get('ge')}",
        "less_than": f"less than {context.get('lt')}" + (" (or a percentage)" if context.get("lt") == 1 else ""),
        "less_than_equal": f"at most {context.get('le')}",
        "string_too_short": "text that is not empty",
    }.get(kind)
    if wanted is None:
        return f"{detail['msg'][:1].lower()}{detail['msg'][1:]}, not {given}"
    return f"should be {wanted}, not {given}{_quotes_remedy(kind, detail['input'])}"


def _near_choice(given: object, choices: list[tuple[str, str]]) -> str:
    near = near_words(str(given).lower(), [word or number for word, number in choices])
    return f"; did you mean {near[0]}?" if near else ""


def _quotes_remedy(kind: str, given: object) -> str:
    """Return the remedy where quotes are what is wrong."""
    if kind == "string_type" and isinstance(given, (int, float)):
        return "; put it in quotes"
    is_number = isinstance(given, str) and re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?", given)
    return "; remove the quotes" if kind in {"int_type", "float_type"} and is_number else ""


def _known_keys(record: type[BaseModel], path: Path) -> list[str]:
    """Return the keys that the record at `path` may have."""
    at = _record_at(record, path)
    return [field.alias or name for name, field in at.model_fields.items()] if at else []


def _record_at(record: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """Return the class of the record at `path`, None where there is none."""
    at: type[BaseModel] | None = record
    for part in path:
        if at is None:
            return None
        if isinstance(part, int):
            continue
        fields = {field.alias or name: field for name, field in at.model_fields.items()}
        at = _record_in(fields[part].annotation) if part in fields else None
    return at


def _record_in(annotation: Any) -> type[BaseModel] | None:
    """Return the first record class inside an annotation."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _record_in(inner))), None)
