"""dot8 as a target of the compiler. Its code is the text of the scheduled function."""

from dataclasses import dataclass

from vdla.compiler.targets.outside import TemplateTarget
from vdla.compiler.tir.printer import show
from vdla_dot8.operators import Dense, MatMul


@dataclass(frozen=True)
class Dot8(TemplateTarget):
    """A scalar processor with one vector instruction, a dot product of eight int8."""

    DEVICE = "dot8"
    TEMPLATES = (Dense, MatMul)

    def encode(self, func):
        return show(func).encode()
