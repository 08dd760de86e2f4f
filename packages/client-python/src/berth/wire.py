"""From and to the gateway's JSON, whose names are in camelCase."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, TypeVar

T = TypeVar("T")


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def camel_keys(options: Mapping[str, Any]) -> dict[str, Any]:
    return {camel(name): value for name, value in options.items() if value is not None}


def nested(cls: type, *, many: bool = False) -> Any:
    """A field that is an object of that class, or a list of them. Absent: None, or empty."""
    return dataclasses.field(default=() if many else None, metadata={"of": cls, "many": many})


def whole() -> Any:
    """A field that keeps the object as it came: what this version has no field for is in it."""
    return dataclasses.field(default_factory=dict, repr=False, compare=False, metadata={"whole": True})


def read(cls: type[T], wire: Mapping[str, Any]) -> T:
    """An object of a dataclass. Fields that it does not know are left out, so that a newer gateway can say more."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        name = camel(field.name)
        if field.metadata.get("whole"):
            values[field.name] = wire
        elif name in wire:
            values[field.name] = _value(field, wire[name])
    return cls(**values)


def _value(field: dataclasses.Field[Any], value: Any) -> Any:
    of = field.metadata.get("of")
    if of is None:
        return tuple(value) if isinstance(value, list) else value
    read_one = getattr(of, "of_wire", None) or (lambda one: read(of, one))
    return tuple(read_one(one) for one in value) if field.metadata["many"] else read_one(value)
