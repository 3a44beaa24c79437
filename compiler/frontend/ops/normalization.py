"""Operators that normalize: by statistics of a batch, by the sum of a row."""

from __future__ import annotations

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops


@converts("BatchNormalization")
def _batch_norm(view: OnnxNode) -> None:
    if view.integer("training_mode", 0):
        raise view.error("training_mode = 0", 1)
    vectors = [view.constant(i, "statistic").astype(np.float64) for i in range(1, 5)]
    gamma, beta, mean, variance = vectors
    factor = gamma / np.sqrt(variance + view.real("epsilon", 1e-5))
    offset = beta - mean * factor
    if factor.shape != view.shape(0)[1:2]:
        found = list(factor.shape)
        raise view.error(f"statistics of shape {list(view.shape(0)[1:2])}", found)
    draft = view.draft
    node = ops.BatchNorm(
        name=view.name,
        output=view.output,
        data=view.operand(0),
        factor=draft.add_constant(f"{view.name}.factor", factor.astype(np.float32)),
        offset=draft.add_constant(f"{view.name}.offset", offset.astype(np.float32)),
    )
    draft.emit(node, "float32")


@converts("Softmax")
def _softmax(view: OnnxNode) -> None:
    rank = len(view.shape(0))
    axis = view.integer("axis", -1 if view.draft.opset >= 13 else 1) % rank
    if view.draft.opset < 13 and axis != rank - 1:
        raise view.unsupported(f"axis {rank - 1} (before opset 13 it flattens)", axis)
    node = ops.Softmax(name=view.name, output=view.output, data=view.operand(0), axis=axis)
    view.draft.emit(node, "float32")
