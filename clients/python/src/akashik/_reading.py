"""Reads JSON into dataclasses: known keys checked and typed, unknown ones kept under ``extra``."""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from .errors import ProtocolError

_T = TypeVar("_T", bound="Answer")
_SCALARS: dict[object, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float), bool: (bool,)}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What every part of an answer is. ``extra`` holds the keys that this version of the package does not know."""

    extra: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)


def read(kind: type[_T], value: object) -> _T:
    """Read JSON as this dataclass, or raise :class:`ProtocolError` naming the place where it is something else."""
    return cast(_T, _read_object(kind, value, kind.__name__))


@functools.cache
def _shape(kind: Any) -> dict[str, tuple[Any, bool]]:
    hints = get_type_hints(kind)
    return {
        f.name: (hints[f.name], f.default is MISSING and f.default_factory is MISSING)
        for f in fields(kind)
        if f.name != "extra"
    }


def _read_object(kind: type[Answer], value: object, where: str) -> Answer:
    if not isinstance(value, dict):
        raise ProtocolError(f"unreadable answer: {where} is no object")
    found = cast("dict[str, object]", value)
    shape = _shape(cast(Hashable, kind))
    read: dict[str, Any] = {}
    for name, (hint, required) in shape.items():
        if name in found:
            read[name] = _read_value(hint, found[name], f"{where}.{name}")
        elif required:
            raise ProtocolError(f"unreadable answer: {where}.{name} is missing")
    read["extra"] = {name: kept for name, kept in found.items() if name not in shape}
    return kind(**read)


def _read_value(hint: Any, value: object, where: str) -> object:
    if hint is Any:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (hint,) = (argument for argument in arguments if argument is not types.NoneType)
        return _read_value(hint, value, where)
    if origin is list:
        if not isinstance(value, list):
            raise ProtocolError(f"unreadable answer: {where} is no list")
        items = cast("list[object]", value)
        return [_read_value(arguments[0], item, f"{where}[{at}]") for at, item in enumerate(items)]
    if origin is dict:
        if not isinstance(value, dict):
            raise ProtocolError(f"unreadable answer: {where} is no object")
        entries = cast("dict[str, object]", value)
        return {key: _read_value(arguments[1], entry, f"{where}.{key}") for key, entry in entries.items()}
    if is_dataclass(hint):
        return _read_object(cast("type[Answer]", hint), value, where)
    allowed = _SCALARS[hint]
    if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
        raise ProtocolError(f"unreadable answer: {where} is no {hint.__name__}")
    return float(value) if hint is float and isinstance(value, int) else value
