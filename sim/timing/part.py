"""Declaration of a part of the machine's state: names with types, and what reset leaves in them.

    class Request(Part):
        left: int  # 0 after reset
        row: int = NONE

``Request.reset()`` gives one record of memory with these fields. Python reads and writes them by
name, and so does the compiled loop, for which each name is a fixed distance.
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

    layout: ClassVar[np.dtype[Any]]
    after_reset: ClassVar[NDArray[Any]]  # one record
    _bytes: ClassVar[bytes]  # of that record

    def __init_subclass__(cls) -> None:
        kinds = get_type_hints(cls, include_extras=True)
        names = list(cls.__annotations__)
        if taken := [name for name in names if hasattr(np.void, name)]:
            raise TypeError(f"{cls.__name__}: numpy's records use {', '.join(taken)} themselves")
        access = {name: _access(name) for name in names}
        record = type(cls.__name__, (np.void,), {"__slots__": (), **access})
        fields = [(name, *_layout(kinds[name])) for name in names]
        cls.layout = np.dtype((record, np.dtype(fields, align=True)))
        cls.after_reset = np.zeros(1, cls.layout)
        for name in names:
            value = getattr(kinds[name], "after_reset", vars(cls).get(name, 0))
            cls.after_reset[name] = value
        cls._bytes = cls.after_reset.tobytes()

    @classmethod
    def reset(cls) -> Self:
        """A record as reset leaves it."""
        # From bytes: numpy copies a record field by field, and takes ten times as long.
        part: Self = np.ndarray(1, cls.layout, bytearray(cls._bytes))[0]
        return part


def _layout(kind: Any) -> tuple[Any, ...]:
    """The type of a field, and for an array its shape."""
    if get_origin(kind) is Annotated:
        return np.int64, get_args(kind)[1]
    if issubclass(kind, Part):
        return (kind.layout,)
    return ({int: np.int64, bool: np.bool_}[kind],)


def _access(name: str) -> property:
    def put(record: Any, value: Any) -> None:
        record[name] = value

    return property(itemgetter(name), put)
