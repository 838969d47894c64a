"""Lists the keys that the configuration classes of a framework know: what our catalogs of keys are held against."""

from __future__ import annotations

import dataclasses
import typing


def of_dataclass(cls: type, name: str = "") -> dict[str, dict[str, object]]:
    """Every table of a dataclass, dotted, with its keys: type as written, choices of a Literal, default."""
    tables: dict[str, dict[str, object]] = {name: {}}
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        hint = _bare(hints[field.name])
        if dataclasses.is_dataclass(hint):
            tables |= of_dataclass(hint, f"{name}.{field.name}".strip("."))
        else:
            tables[name][field.name] = {"type": _type(hint), "choices": _choices(hint), "default": _default(field)}
    return {table: keys for table, keys in tables.items() if keys or table != name}


def of_pydantic(cls: type, name: str = "") -> dict[str, dict[str, object]]:
    """As of_dataclass, of a pydantic model; a key has the aliases that a configuration may write instead."""
    tables: dict[str, dict[str, object]] = {name: {}}
    for key, field in cls.model_fields.items():
        models = [
            part for part in (field.annotation, *typing.get_args(field.annotation)) if hasattr(part, "model_fields")
        ]
        for model in models:
            tables |= of_pydantic(model, f"{name}.{field.alias or key}".strip("."))
        tables[name][field.alias or key] = {
            "type": _type(field.annotation),
            "choices": _choices(field.annotation),
            "default": plain(field.get_default(call_default_factory=True)) if not field.is_required() else "required",
            "deprecated": bool((field.json_schema_extra or {}).get("deprecated")),
        }
    return tables


def plain(value: object) -> object:
    """A value as JSON has it; an enum by its value, anything else as Python writes it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    return plain(value.value) if hasattr(value, "value") else repr(value)


def _bare(hint: object) -> object:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _type(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")


def _choices(hint: object) -> list[object] | None:
    """What a Literal or an enum allows, inside a union as well."""
    found = []
    for part in (hint, *typing.get_args(hint)):
        if typing.get_origin(part) is typing.Literal:
            found += typing.get_args(part)
        elif isinstance(part, type) and hasattr(part, "__members__"):
            found += [member.value for member in part.__members__.values()]
    return [plain(choice) for choice in found] or None


def _default(field: dataclasses.Field[typing.Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return plain(field.default_factory())
    return "required" if field.default is dataclasses.MISSING else plain(field.default)
