"""Functions as users hold them: they print as text, and as Python."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.printer import show
from vdla.compiler.tir.script_printer import show_script


@dataclass(frozen=True, slots=True, eq=False)
class Program(PrimFunc):
    """A function that a user wrote, as text or as Python; equal to another one of the same text.

    ``target`` is the name of the config whose intrinsics it may call.
    """

    target: str = ""

    @classmethod
    def of(cls, func: PrimFunc, target: str = "") -> Program:
        """A function as its user's."""
        return cls(func.name, func.params, func.body, target)

    def script(self) -> str:
        """The function as Python under ``@vdla.prim_func``, which reads back as this function."""
        return show_script(self, self.target)

    def __str__(self) -> str:
        """The function as text, which ``vdla.parse`` reads."""
        return show(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and show(self) == show(other)

    def __hash__(self) -> int:
        return hash(show(self))
