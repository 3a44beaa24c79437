"""Weights pruned by blocks: those of least magnitude become zero, and so need no work.

A block is some outputs × some inputs of a layer, of one tap of its window: what an accelerator
multiplies at a time. Each layer loses the same share of its blocks, those of the least L2 norm.
Nothing is trained again here: prune a little, train with the zeros held, prune more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.sources import forget_source, source_of
from vdla.compiler.graph.types import Array
from vdla.compiler.models.floats import load_floats
from vdla.compiler.models.layers import LAYERS
from vdla.support.files import write_bytes
from vdla.support.numbers import ceil_div

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)


@dataclass(frozen=True)
class PrunedLayer:
    """A layer after pruning: how many ``blocks`` it has, and how many of them are ``zero``.

    ``energy`` is the sum of its weights' squares before, ``kept`` that after.
    """

    name: str
    op: str
    blocks: int
    zero: int
    energy: float
    kept: float

    @property
    def zero_share(self) -> float:
        """Share of its blocks that are zero, from 0 to 1."""
        return self.zero / self.blocks

    @property
    def kept_share(self) -> float:
        """Share of the energy that is left, from 0 to 1; 1 where there was none."""
        return self.kept / self.energy if self.energy else 1.0


@dataclass(frozen=True)
class Pruning:
    """Blocks of ``rows`` outputs × ``columns`` inputs, of which each layer loses a ``share``.

    ``layers`` are the nodes that it is for, by name, or all; ``exclude`` are nodes to leave alone.
    """

    share: float
    rows: int = 16
    columns: int = 16
    layers: Sequence[str] = ()
    exclude: Sequence[str] = ()


def prune(source: str | Path, target: str | Path, pruning: Pruning) -> list[PrunedLayer]:
    """Writes the float model ``source`` with blocks of zeros to ``target``; gives its layers.

    Taken are convolutions in one group and dense layers (Conv, Gemm, MatMul) whose weights are
    constants.

    Raises:
        ModelError: the model isn't one of floats, has no such layer, or not what is named.
    """
    model = load_floats(Path(source), None)
    where = source_of(model, str(source))
    result = prune_model(model, pruning, where)
    forget_source(model)
    write_bytes(Path(target), model.SerializeToString())
    return result


def prune_model(model: onnx.ModelProto, pruning: Pruning, where: str) -> list[PrunedLayer]:
    """Prunes a model in memory, in place; errors open with ``where``. Otherwise as :func:`prune`.

    Raises:
        ModelError: it has no such layer, or not what is named.
    """
    constants = {t.name: t for t in model.graph.initializer if t.data_type in FLOATS}
    layers = {node.name: node for node in _layers(model.graph, constants)}
    for name in (*pruning.layers, *pruning.exclude):
        if name not in layers:
            close = get_close_matches(name, layers, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ModelError(where, "a layer with constant weights", f"{name}{hint}")
    chosen = [
        node
        for name, node in layers.items()
        if name not in pruning.exclude and (not pruning.layers or name in pruning.layers)
    ]
    if not chosen:
        raise ModelError(where, "a layer with constant weights to prune", "none")
    return [_pruned(node, constants[node.input[1]], pruning) for node in chosen]


def _layers(
    graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto]
) -> Iterator[onnx.NodeProto]:
    """Layers with weights of their own; of several that share some, the first."""
    seen = set[str]()
    for node in graph.node:
        if node.op_type not in LAYERS or node.input[1] not in constants:
            continue
        name, rank = node.input[1], len(constants[node.input[1]].dims)
        fits = rank > 2 if node.op_type == "Conv" else rank == 2
        if fits and name not in seen and _number(node, "group", 1) == 1:
            seen.add(name)
            yield node


def _pruned(node: onnx.NodeProto, constant: onnx.TensorProto, pruning: Pruning) -> PrunedLayer:
    """A layer, its weights' weakest blocks zero."""
    before = numpy_helper.to_array(constant)
    turned = node.op_type != "Conv" and not _number(node, "transB", 0)
    weight = before.T if turned else before
    energies = _energies(weight, pruning)
    zero = np.zeros(energies.size, np.bool_)
    zero[np.argsort(energies, axis=None, kind="stable")[: round(pruning.share * zero.size)]] = True
    mask = zero.reshape(energies.shape).repeat(pruning.rows, 0).repeat(pruning.columns, 1)
    outs, ins = weight.shape[:2]
    after = np.where(mask[:outs, :ins], weight.dtype.type(0), weight)
    constant.CopyFrom(
        numpy_helper.from_array(np.ascontiguousarray(after.T if turned else after), constant.name)
    )
    left = _energies(after, pruning)
    return PrunedLayer(
        node.name,
        node.op_type,
        energies.size,
        int((left == 0).sum()),
        float(energies.sum()),
        float(left.sum()),
    )


def _energies(weight: Array, pruning: Pruning) -> Array:
    """Sum of squares of each block, [output blocks, input blocks, ...]: the square of its norm."""
    rows, columns = pruning.rows, pruning.columns
    outs, ins = weight.shape[:2]
    shape = ceil_div(outs, rows), rows, ceil_div(ins, columns), columns, *weight.shape[2:]
    padded = np.zeros((shape[0] * rows, shape[2] * columns, *weight.shape[2:]))
    padded[:outs, :ins] = weight.astype(np.float64) ** 2
    return np.asarray(padded.reshape(shape).sum((1, 3)))


def _number(node: onnx.NodeProto, name: str, default: int) -> int:
    """An integer among a node's attributes."""
    values = (a.i for a in node.attribute if a.name == name)
    return next(values, default)
