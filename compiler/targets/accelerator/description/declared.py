"""Rows of intrinsics: each is declared once, beside others of its instruction or in the file of its
option.

    Declared("alu_add", "x + y", registers(AluOp.ADD, operator.add))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.options.option import Option

Maker = Callable[[str, Config], TensorIntrin]  # of an intrinsic's name, and a config's


@dataclass(frozen=True)
class Declared:
    """A row: the intrinsic's name, what it does in words, who makes it for a config, and the option
    without which a config hasn't its instruction; None: every config has it."""

    name: str
    words: str
    make: Maker
    option: Option | None = None

    def is_of(self, config: Config) -> bool:
        """Whether a config has the instruction."""
        return self.option is None or self.option.is_on(config)
