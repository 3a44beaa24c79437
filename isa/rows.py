"""Tables of the instruction set to which an option may add rows: operations, memories, engines.

    AluOp.add(0, "ADD", words="x + y")     a row: its number in the encoding, its name, its columns
    AluOp.ADD  AluOp.named("ADD")  AluOp(0)
    list(AluOp)  len(AluOp)                all rows, by their numbers; how many there are

A row is its number, an ``int``, as a member of ``IntEnum`` is. Unlike an enum's members, rows are
not all in one file: those that only some configs have stand in the file of their option.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self, TypeVar

R = TypeVar("R")


class Table(type):
    """The type of a table: a class whose instances are its rows."""

    rows: dict[int, Any]

    def __iter__(cls: type[R]) -> Iterator[R]:
        rows: dict[int, R] = vars(cls)["rows"]
        return (row for _, row in sorted(rows.items()))

    def __len__(cls) -> int:
        return len(cls.rows)

    def __getattr__(cls: type[R], name: str) -> R:
        by_name: dict[str, R] = vars(cls).get("by_name", {})
        if name in by_name:
            return by_name[name]
        raise AttributeError(f"{cls.__name__}: expected a row or an attribute, found {name}")


class Row(int, metaclass=Table):
    """A row: a number that the encoding has, its name, and the columns that a subclass adds."""

    rows: ClassVar[dict[int, Any]] = {}
    by_name: ClassVar[dict[str, Any]] = {}
    name: str

    def __init_subclass__(cls) -> None:
        cls.rows, cls.by_name = {}, {}

    def __new__(cls, number: int) -> Self:
        """The row with a number.

        Raises:
            ValueError: there is none.
        """
        try:
            row: Self = cls.rows[number]
        except KeyError:
            raise ValueError(f"{number} is no {cls.__name__}") from None
        return row

    @classmethod
    def named(cls, name: str) -> Self:
        """The row with a name.

        Raises:
            KeyError: there is none.
        """
        row: Self = cls.by_name[name]
        return row

    @classmethod
    def add(cls, number: int, name: str, **columns: object) -> Self:
        """Adds a row. Columns that aren't given are as the class has them.

        Raises:
            ValueError: another row has the number or the name, or the table has no such column.
        """
        if strange := columns.keys() - cls.__annotations__.keys():
            raise ValueError(f"{cls.__name__}: {name} has no column {', '.join(sorted(strange))}")
        for row in cls.rows.values():
            if row == number or row.name == name:
                raise ValueError(f"{cls.__name__}: {name} = {number} is {row.name} = {row.value}")
        row = int.__new__(cls, number)
        vars(row).update(columns, name=name)
        cls.rows[number] = cls.by_name[name] = row
        return row

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The rows' names, each at the place of its number, as a field has them.

        Raises:
            ValueError: a number has no row, and isn't beyond the last.
        """
        if list(cls) != list(range(len(cls))):
            numbers = ", ".join(str(row.value) for row in cls)
            raise ValueError(f"{cls.__name__}: expected 0 to {len(cls) - 1}, found {numbers}")
        return tuple(row.name for row in cls)

    @property
    def value(self) -> int:
        """The row's number, as a plain ``int``."""
        return int(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value}>"

    __str__ = int.__repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.value,)
