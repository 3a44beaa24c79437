"""Functions of one variable: each int8 is looked up in a table of 256 results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.table import LEAST
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.moves import Move, MoveTensors, ones, plain
from vdla.compiler.targets.accelerator.operators.pairwise import widened
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    elements,
)
from vdla.compiler.targets.accelerator.operators.unary import Unary
from vdla.compiler.targets.accelerator.options.tables import no_tables
from vdla.isa.config import Config
from vdla.isa.options.tables import TABLE_RESULTS


def results(table: str, graph: Graph) -> Array:
    """A node's table as TAB holds it: in the order of the operand's low 8 bits."""
    return np.roll(graph.constants[table].astype(np.int16), LEAST)


@dataclass(frozen=True)
class Table(Unary[ops.QTable]):
    """``out = table[data & 255]``, int8."""

    NAME = "table"
    NOUN = "function of one variable"
    NODES = (ops.QTable,)

    @classmethod
    def refusal(
        cls, node: ops.QTable, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """A config may have no tables."""
        return no_tables(config) or super().refusal(node, graph, config, min_fill)

    @classmethod
    def of(cls, node: ops.QTable, graph: Graph, config: Config) -> Table:
        """The template of a function; its results are a constant."""
        return cls(*cls.size(node, graph, config))

    def bind(self, node: ops.QTable, graph: Graph, config: Config) -> Binding:
        """The table, and a scale of 1 for all lanes."""
        constants = {"table": results(node.table, graph), "scales": ones(config)}
        tensors = {"data": node.data, "out": node.output}
        return Binding(tensors, constants, 0, 2 * elements(graph, node.output))

    @property
    def alu_steps(self) -> int:
        """One look into the table."""
        return 1

    def expression(self, config: Config) -> MoveTensors:
        """The data widened, and looked up."""
        ins, data = intrinsics(config), self.data(config)
        scales = te.placeholder((1, config.block_out), "int32", "scales")
        table = te.placeholder((TABLE_RESULTS,), "int16", "table")
        wide = widened(data, 0, "wide")
        results = te.compute(
            data.shape,
            lambda *i: table[wide[i] & (TABLE_RESULTS - 1)].astype("int32"),
            "results",
        )
        out = te.compute(data.shape, lambda y, x, l: plain(results[y, x, l], scales[0, l]), "out")
        move = Move(data, [(results, ins.alu_table), (wide, ins.load_acc8)], out)
        return MoveTensors([move], scales, out, table)
