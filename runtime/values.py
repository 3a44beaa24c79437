"""Arguments and results that are more than a tensor each: rows, lists and optional values.

    Value := NAME                    a tensor of the module
           | Rows(NAME, count)       the first rows of a tensor, as many as another one says
           | Each(NAME, count, sizes)  those rows as a list; of each the first ``sizes`` elements
           | Listed(Value*)          a list; what an Each gives are elements of the list around it
           | Absent()                an optional value that isn't there
           | Maybe(Value, NAME)      one that is there where a tensor, one bool, holds

In a module's file a value is a string, or an object of its fields and its ``kind``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vdla.runtime.errors import InputError, ModuleError

Array = NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """The first rows of a tensor; ``count`` is an int64 that says how many."""

    tensor: str
    count: str


@dataclass(frozen=True)
class Each:
    """The first ``count`` rows of a tensor, one by one; of row n the first ``sizes[n]`` elements
    along each axis, where ``sizes`` is a tensor."""

    tensor: str
    count: str
    sizes: str = ""


@dataclass(frozen=True)
class Listed:
    """A list."""

    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Absent:
    """An optional value that isn't there."""


@dataclass(frozen=True)
class Maybe:
    """An optional value that is there where ``condition``, one bool, holds."""

    value: Value
    condition: str


Value: TypeAlias = str | Rows | Each | Listed | Absent | Maybe
Values = Mapping[str, Value]
KINDS: dict[str, Callable[..., Value]] = {
    kind.__name__: kind for kind in (Rows, Each, Listed, Absent, Maybe)
}


def tensors_of(value: Value) -> list[str]:
    """The tensors that a value is made of."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Listed):
        return [name for each in value.values for name in tensors_of(each)]
    if isinstance(value, Maybe):
        return [value.condition, *tensors_of(value.value)]
    names = (getattr(value, field.name) for field in fields(value))
    return [name for name in names if name]


def assembled(value: Value, tensor: Callable[[str], Array]) -> Any:
    """An array, a list or None, of the tensors that ``tensor`` gives by their names."""
    if isinstance(value, str):
        return tensor(value).copy()
    if isinstance(value, Absent):
        return None
    if isinstance(value, Maybe):
        return assembled(value.value, tensor) if tensor(value.condition).all() else None
    if isinstance(value, Listed):
        parts = ((each, assembled(each, tensor)) for each in value.values)
        return [e for each, part in parts for e in (part if isinstance(each, Each) else [part])]
    rows = tensor(value.tensor)[: int(tensor(value.count).reshape(()))]
    if isinstance(value, Rows):
        return rows.copy()
    if not value.sizes:
        return [row.copy() for row in rows]
    sizes = tensor(value.sizes)
    return [row[tuple(map(slice, size))].copy() for row, size in zip(rows, sizes, strict=False)]


def flat(name: str, value: Any) -> dict[str, Array]:
    """The arrays of an argument or a result: by its name, or ``name[0]``, ``name[1]`` … of a list;
    none where it is None."""
    if value is None:
        return {}
    if not isinstance(value, list | tuple):
        return {name: np.asarray(value)}
    parts = (flat(f"{name}[{n}]", each) for n, each in enumerate(value))
    return {key: array for part in parts for key, array in part.items()}


def collected(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Values of the arrays that :func:`flat` makes of them."""
    result: dict[str, Any] = {}
    for name, array in arrays.items():
        whole, bracket, number = name.removesuffix("]").rpartition("[")
        parts = result.setdefault(whole, []) if bracket and name.endswith("]") else None
        if isinstance(parts, list) and number == str(len(parts)):
            parts.append(array)
        else:
            result[name] = array
    return {name: value for name, value in result.items() if not isinstance(value, list) or value}


def described(value: Any) -> str:
    """A result for people: ``float32[3]``, ``[float32[3], float32[2]]``, ``None``."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    return "None" if value is None else f"{value.dtype}{list(value.shape)}"


def taken_apart(arguments: Values, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs by the names of the tensors that they become; a list that no argument is becomes
    tensors as :func:`flat` names them.

    Raises:
        InputError: one is no list where one is expected, or of another length.
    """
    result: dict[str, Any] = {}
    for name, given in inputs.items():
        own = name in arguments or not isinstance(given, list)
        result |= _apart(name, arguments.get(name, name), given) if own else flat(name, given)
    return result


def _apart(name: str, value: Value, given: Any) -> dict[str, Any]:
    if isinstance(value, Absent):
        if given is not None:
            raise InputError(f"input {name}: expected None, found {type(given).__name__}")
        return {}
    if not isinstance(value, Listed):
        return {value: given} if isinstance(value, str) else {}
    count = len(value.values)
    if not isinstance(given, Sequence) or len(given) != count:
        actual = len(given) if isinstance(given, Sequence) else type(given).__name__
        raise InputError(f"input {name}: expected a list of {count} arrays, found {actual}")
    parts = zip(value.values, given, strict=True)
    return {t: a for n, (v, g) in enumerate(parts) for t, a in _apart(f"{name}[{n}]", v, g).items()}


def to_json(value: Value) -> Any:
    """A value as a module's file has it."""
    if isinstance(value, str):
        return value
    own = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Listed):
        own = {"values": [to_json(each) for each in value.values]}
    if isinstance(value, Maybe):
        own["value"] = to_json(value.value)
    return {"kind": type(value).__name__, **own}


def from_json(given: Any) -> Value:
    """A value of a module's file.

    Raises:
        ModuleError: no such kind of value, or fields that are missing or of another type.
    """
    if isinstance(given, str):
        return given
    kind = KINDS.get(given.get("kind", "")) if isinstance(given, dict) else None
    if kind is None:
        raise ModuleError(f"values: expected one of kind {', '.join(KINDS)}, found {given!r}")
    own = {key: value for key, value in given.items() if key != "kind"}
    if kind is Listed and isinstance(own.get("values"), list):
        return Listed(tuple(map(from_json, own["values"])))
    if kind is Maybe and own.keys() == {"value", "condition"}:
        return Maybe(from_json(own["value"]), str(own["condition"]))
    if kind is Listed or not all(isinstance(each, str) for each in own.values()):
        raise ModuleError(f"values: expected names in a value, found {given!r}")
    try:
        return kind(**own)
    except TypeError:
        raise ModuleError(f"values: expected the fields of {kind.__name__}, found {own}") from None
