"""Declaration of a part of the machine's state: names with types, and what reset leaves in them.

    class Request(Part):
        left: int  # 0 after reset
        row: int = NONE

``Request.reset()`` gives one record of memory with these fields. Python reads and writes them by
name, and so does the compiled loop, for which each name is a fixed distance. ``Request.add("top",
int)`` adds a field, before the first record is made.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray


class Part:
    """A record whose fields are the annotations of its class.

    A field is an ``int``, a ``bool``, another part, or an array of int64, whose shape its
    ``Annotated`` has. Names that numpy's own records use, such as ``size``, are refused.
    """

    _kinds: ClassVar[dict[str, Any]]  # by the fields' names
    _after: ClassVar[dict[str, int]]  # what reset leaves in them
    _made: ClassVar[Made]

    def __init_subclass__(cls) -> None:
        cls._kinds, cls._after = {}, {}
        hints = get_type_hints(cls, include_extras=True)
        for name in vars(cls).get("__annotations__", ()):
            cls.add(name, hints[name], vars(cls).get(name, 0))

    @classmethod
    def add(cls, name: str, kind: Any, after_reset: int = 0) -> None:
        """Adds a field.

        Raises:
            TypeError: numpy's records have the name, or a record has been made already.
        """
        if hasattr(np.void, name):
            raise TypeError(f"{cls.__name__}: numpy's records use {name} themselves")
        if "_made" in vars(cls):
            raise TypeError(f"{cls.__name__}: {name} is added after the first record")
        cls._kinds[name], cls._after[name] = kind, after_reset

    @classmethod
    def layout(cls) -> np.dtype[Any]:
        """The type of a record."""
        return _made(cls)[0]

    @classmethod
    def reset(cls) -> Self:
        """A record as reset leaves it."""
        layout, _, content = _made(cls)
        # From bytes: numpy copies a record field by field, and takes ten times as long.
        part: Self = np.ndarray(1, layout, bytearray(content))[0]
        return part


Made = tuple[np.dtype[Any], NDArray[Any], bytes]


def _made(cls: type[Part]) -> Made:
    """The type of a part's records, one as reset leaves it, and its bytes."""
    if "_made" not in vars(cls):
        kinds = {name: kind for name, kind in cls._kinds.items() if not _is_empty(kind)}
        access = {name: _access(name) for name in kinds}
        record = type(cls.__name__, (np.void,), {"__slots__": (), **access})
        fields = [(name, *_layout(kind)) for name, kind in kinds.items()]
        layout = np.dtype((record, np.dtype(fields, align=True)))
        after_reset = np.zeros(1, layout)
        for name, kind in kinds.items():
            after_reset[name] = _made(kind)[1] if _is_part(kind) else cls._after[name]
        cls._made = layout, after_reset, after_reset.tobytes()
    made: Made = cls._made
    return made


def _is_empty(kind: Any) -> bool:
    """Whether it is a part without fields, for which a record has no place."""
    return _is_part(kind) and not kind._kinds


def _is_part(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Part)


def _layout(kind: Any) -> tuple[Any, ...]:
    """The type of a field, and for an array its shape."""
    if get_origin(kind) is Annotated:
        return np.int64, get_args(kind)[1]
    return (kind.layout() if _is_part(kind) else {int: np.int64, bool: np.bool_}[kind],)


def _access(name: str) -> property:
    def put(record: Any, value: Any) -> None:
        record[name] = value

    return property(itemgetter(name), put)
