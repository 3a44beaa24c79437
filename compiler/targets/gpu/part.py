"""A GPU's part of a module: kernels in its language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler.dump import Dumper
from vdla.compiler.graph.ir import Node
from vdla.compiler.targets.functions import FunctionCodes
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.gpu.lower import kernels_of
from vdla.compiler.targets.target import Part
from vdla.compiler.tir.printer import show
from vdla.runtime.module import Module
from vdla.runtime.plan import Gpu as Launch


@dataclass(frozen=True)
class KernelPart(Part):
    """Kernels of a GPU's nodes."""

    codes: FunctionCodes
    gpu: Gpu

    def steps(self, row: Sequence[Node]) -> list[Launch]:
        """A step for each node."""
        codes = ((node.name, self.codes[node.name]) for node in row)
        return [Launch(name, code.program.name, code.args) for name, code in codes]

    def complete(self, module: Module, dump: Dumper) -> None:
        """Gives a module the kernels, if there are any.

        Raises:
            TargetError: the GPU's architecture isn't known.
        """
        for name, code in self.codes.items():
            if report := dump.layer(name):
                report("kernels", show(code.program))
        functions = {code.program.name: code.program for code in self.codes.values()}
        module.kernels = kernels_of(functions.values(), self.gpu) if functions else None
