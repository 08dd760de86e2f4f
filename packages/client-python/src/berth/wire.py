"""From and to the gateway's JSON, whose names are in camelCase."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import json
import types
import typing
from typing import Any, Dict, List, Mapping, TypeVar

from .errors import InvalidAnswerError

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
    """A field that keeps the whole object, with fields that this version does not know."""
    return dataclasses.field(default_factory=dict, repr=False, compare=False, metadata={"whole": True})


def parsed(content: bytes | str) -> Any:
    """JSON as it came, of any type."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidAnswerError(f"the gateway's answer is not JSON ({error})") from error


def item(wire: Any, name: str) -> Dict[str, Any]:
    """An object in an answer."""
    found = wire.get(name) if isinstance(wire, dict) else None
    if not isinstance(found, dict):
        raise InvalidAnswerError(f"the gateway's answer has no object {name}")
    return found


def items(wire: Any, name: str) -> List[Any]:
    """A list in an answer."""
    found = wire.get(name) if isinstance(wire, dict) else None
    if not isinstance(found, list):
        raise InvalidAnswerError(f"the gateway's answer has no list of {name}")
    return found


def read(cls: type[T], wire: Any) -> T:
    """An object of a dataclass. Ignores unknown fields, so that a newer gateway can add some."""
    if not isinstance(wire, dict):
        raise InvalidAnswerError(f"the gateway's answer has no object where a {cls.__name__} belongs")
    hints = _hints(cls)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        name = camel(field.name)
        if field.metadata.get("whole"):
            values[field.name] = wire
        elif wire.get(name) is not None:
            values[field.name] = _value(field, hints[field.name], wire[name])
        elif _is_needed(field):
            raise InvalidAnswerError(f"the gateway's {cls.__name__} has no {name}")
    return cls(**values)


@functools.lru_cache(maxsize=None)
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _value(field: dataclasses.Field[Any], hint: Any, value: Any) -> Any:
    of = field.metadata.get("of")
    if of is not None:
        read_one = getattr(of, "of_wire", None) or (lambda one: read(of, one))
        if not field.metadata["many"]:
            return read_one(value)
        if isinstance(value, list):
            return tuple(read_one(one) for one in value)
    elif _fits(hint, value):
        return tuple(value) if isinstance(value, list) else value
    raise InvalidAnswerError(f"the gateway's {camel(field.name)} is of another type")


def _fits(hint: Any, value: Any) -> bool:
    """Whether a value of JSON is of that type. Accepts unknown words of a `Literal`: a newer gateway may have more."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(one, value) for one in args)
    if origin is typing.Literal:
        return isinstance(value, str)
    if origin is tuple:
        return isinstance(value, (list, tuple)) and all(_fits(args[0], one) for one in value)
    if origin is collections.abc.Mapping:
        return isinstance(value, dict) and all(_fits(args[1], one) for one in value.values())
    if hint in (int, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, hint)
