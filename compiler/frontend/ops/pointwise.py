"""Operators that compute each element by itself."""

from __future__ import annotations

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops


@converts("Add")
def _add(view: OnnxNode) -> None:
    node = ops.Add(name=view.name, output=view.output, a=view.operand(0), b=view.operand(1))
    view.draft.emit(node, "float32")


@converts("Relu")
def _relu(view: OnnxNode) -> None:
    node = ops.Relu(name=view.name, output=view.output, data=view.operand(0))
    view.draft.emit(node, "float32")


@converts("Clip")
def _clip(view: OnnxNode) -> None:
    bounds = []
    for index, (name, default) in enumerate((("min", -np.inf), ("max", np.inf)), start=1):
        if view.optional(index) is not None:
            bounds.append(float(view.constant(index, name).reshape(-1)[0]))
        else:
            bounds.append(view.real(name, default))
    node = ops.Clip(
        name=view.name, output=view.output, data=view.operand(0), low=bounds[0], high=bounds[1]
    )
    view.draft.emit(node, "float32")


UNARY = {
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Exp": "exp",
    "Log": "log",
    "Sqrt": "sqrt",
    "Abs": "abs",
    "Neg": "neg",
    "Floor": "floor",
    "Erf": "erf",
    "LeakyRelu": "leaky_relu",
    "Elu": "elu",
    "HardSigmoid": "hard_sigmoid",
    "HardSwish": "hard_swish",
}
ALPHAS = {"LeakyRelu": 0.01, "Elu": 1.0, "HardSigmoid": 0.2}
BINARY = {
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "Pow": "pow",
    "Max": "max",
    "Min": "min",
    "PRelu": "prelu",
}


@converts(*UNARY)
def _unary(view: OnnxNode) -> None:
    op = view.proto.op_type
    node = ops.Unary(
        name=view.name,
        output=view.output,
        data=view.operand(0),
        function=UNARY[op],
        alpha=view.real("alpha", ALPHAS.get(op, 0.0)),
        beta=view.real("beta", 0.5),
    )
    view.draft.emit(node, "float32")


@converts(*BINARY)
def _binary(view: OnnxNode) -> None:
    if len(view.proto.input) != 2:
        raise view.unsupported("two operands", len(view.proto.input))
    node = ops.Binary(
        name=view.name,
        output=view.output,
        a=view.operand(0),
        b=view.operand(1),
        function=BINARY[view.proto.op_type],
    )
    view.draft.emit(node, "float32")
