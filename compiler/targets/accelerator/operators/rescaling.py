"""Changes of scale and limits alone: the STORE does them on the way back to DRAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.moves import Move, MoveTensors
from vdla.compiler.targets.accelerator.operators.pairwise import widened
from vdla.compiler.targets.accelerator.operators.template import Binding, elements, one_scale
from vdla.compiler.targets.accelerator.operators.unary import Unary
from vdla.isa.config import Config


@dataclass(frozen=True)
class Rescaling(Unary[ops.QClip]):
    """``out = clip(rq(data - data_zero, scale) + zero, low, high)``."""

    NAME = "rescaling"
    NOUN = "change of scale"
    NODES = (ops.QClip,)
    NUMBERS: ClassVar[Mapping[str, object]] = dict.fromkeys(("data_zero", "zero", "low", "high"), 0)

    data_zero: int
    zero: int
    low: int
    high: int

    @classmethod
    def of(cls, node: ops.QClip, graph: Graph, config: Config) -> Rescaling:
        """The template of a change of scale, which is a constant."""
        size = cls.size(node, graph, config)
        return cls(*size, node.zeros[0], *node.requant.limits)

    def bind(self, node: ops.QClip, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes."""
        scales = one_scale(node.requant.scale[0], config)
        tensors = {"data": node.data, "out": node.output}
        return Binding(tensors, {"scales": scales}, 0, 2 * elements(graph, node.output))

    def expression(self, config: Config) -> MoveTensors:
        """The data widened, and requantized on its way to DRAM."""
        data = self.data(config)
        scales = te.placeholder((1, config.block_out), "int32", "scales")
        wide = widened(data, self.data_zero, "wide")
        limits = self.zero, self.low, self.high
        out = te.compute(
            data.shape,
            lambda y, x, l: te.requantize(wide[y, x, l], scales[0, l], *limits).astype("int8"),
            "out",
        )
        return MoveTensors([Move(data, [(wide, intrinsics(config).load_acc8)], out)], scales, out)
