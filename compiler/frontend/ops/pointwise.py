"""Operators that compute each element by itself."""

from __future__ import annotations

from functools import reduce

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.ops.storage import decoded, encoded
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Array
from vdla.runtime.dtypes import STORED

UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh",
    "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf",
    "Exp": "exp", "Floor": "floor", "HardSwish": "hard_swish", "Log": "log", "Mish": "mish",
    "Neg": "neg", "Reciprocal": "reciprocal", "Round": "round", "Sigmoid": "sigmoid",
    "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus", "Softsign": "softsign",
    "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
SET = {  # functions with an alpha and perhaps a beta: what ONNX calls them, and their defaults
    "Celu": ("celu", (("alpha", 1.0),)),
    "Elu": ("elu", (("alpha", 1.0),)),
    "HardSigmoid": ("hard_sigmoid", (("alpha", 0.2), ("beta", 0.5))),
    "LeakyRelu": ("leaky_relu", (("alpha", 0.01),)),
    "Selu": ("selu", (("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875))),
    "Shrink": ("shrink", (("lambd", 0.5), ("bias", 0.0))),
    "Swish": ("swish", (("alpha", 1.0),)),
    "ThresholdedRelu": ("thresholded_relu", (("alpha", 1.0),)),
}
ON_INTEGERS = ("Abs", "Neg", "Sign")
BINARY = {
    "Sub": "sub", "Mul": "mul", "Div": "div", "PRelu": "prelu",
    "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge",
}  # fmt: skip
LOGIC = {"And": "and", "Or": "or", "Xor": "xor"}
BITS = {"BitwiseAnd": "bitand", "BitwiseOr": "bitor", "BitwiseXor": "bitxor"}
CHAINS = {"Max": "max", "Min": "min", "Sum": "add", "Mean": "add"}


@converts("Add")
def _add(view: OnnxNode) -> None:
    node = ops.Add(name=view.name, output=view.output, a=view.operand(0), b=view.operand(1))
    view.draft.emit(node, view.common_dtype())


@converts("Relu")
def _relu(view: OnnxNode) -> None:
    dtype = view.dtype(0)
    if dtype == "float32":
        node = ops.Relu(name=view.name, output=view.output, data=view.operand(0))
        view.draft.emit(node, dtype)
        return
    make = Maker(view)
    make.result(make.unary("relu", view.operand(0)))


@converts("Clip")
def _clip(view: OnnxNode) -> None:
    dtype, make, data = view.dtype(0), Maker(view), view.operand(0)
    if dtype != "float32" or not _known_bounds(view):
        for index, function in ((1, "max"), (2, "min")):
            if view.optional(index) is not None:
                bound = make.reshape(view.operand(index), ())
                data = make.binary(function, data, bound)
        make.result(data)
        return
    bounds = []
    for index, (name, default) in enumerate((("min", -np.inf), ("max", np.inf)), start=1):
        if view.optional(index) is not None:
            bounds.append(float(view.constant(index, name).reshape(-1)[0]))
        else:
            bounds.append(view.real(name, default))
    node = ops.Clip(name=view.name, output=view.output, data=data, low=bounds[0], high=bounds[1])
    view.draft.emit(node, "float32")


def _known_bounds(view: OnnxNode) -> bool:
    """Whether both are constants, and the lower one is lower."""
    names = [view.optional(i) for i in (1, 2)]
    values = [view.draft.known(name) for name in names if name is not None]
    known = [value for value in values if value is not None]
    return len(known) == len(values) and (len(known) < 2 or bool(known[0] <= known[1]))


@converts(*UNARY)
def _unary(view: OnnxNode) -> None:
    op = view.proto.op_type
    if op not in ON_INTEGERS:
        view.real_dtype()
    make = Maker(view)
    make.result(make.unary(UNARY[op], view.operand(0)))


@converts(*SET)
def _set(view: OnnxNode) -> None:
    view.real_dtype()
    function, settings = SET[view.proto.op_type]
    values = [view.real(name, default) for name, default in settings]
    make = Maker(view)
    make.result(make.unary(function, view.operand(0), *values))


@converts("Gelu")
def _gelu(view: OnnxNode) -> None:
    view.real_dtype()
    kind = view.text("approximate", "none")
    if kind not in ("none", "tanh"):
        raise view.error("approximate none or tanh", kind)
    make = Maker(view)
    make.result(make.unary("gelu_tanh" if kind == "tanh" else "gelu", view.operand(0)))


@converts("IsNaN")
def _is_nan(view: OnnxNode) -> None:
    view.real_dtype()
    make = Maker(view)
    make.result(make.unary("is_nan", view.operand(0)))


@converts("IsInf")
def _is_inf(view: OnnxNode) -> None:
    view.real_dtype()
    signs = view.integer("detect_negative", 1), view.integer("detect_positive", 1)
    result = {(1, 1): "is_inf", (0, 1): "is_positive_inf", (1, 0): "is_negative_inf"}
    make = Maker(view)
    if signs not in result:
        make.result(make.constant(np.zeros(view.shape(0)), "bool"))
        return
    make.result(make.unary(result[signs], view.operand(0)))


@converts("Not", "BitwiseNot")
def _not(view: OnnxNode) -> None:
    make = Maker(view)
    bits = view.proto.op_type == "BitwiseNot"
    make.result(make.unary("bitwise_not" if bits else "not", view.operand(0)))


@converts(*BINARY, *LOGIC, *BITS)
def _binary(view: OnnxNode) -> None:
    op, dtype = view.proto.op_type, view.common_dtype()
    wanted = {**dict.fromkeys(LOGIC, "bool"), **dict.fromkeys(BITS, "int")}.get(op, dtype)
    if wanted not in dtype:
        raise view.error(f"{wanted} operands", dtype)
    if op == "PRelu":
        view.real_dtype()
    if "axis" in view.attributes or "broadcast" in view.attributes:
        raise view.unsupported("numpy's broadcasting (opset 7 or later)", "an attribute broadcast")
    make, (a, b) = Maker(view), view.operands()
    make.result(make.binary({**BINARY, **LOGIC, **BITS}[op], a, b))


@converts("Mod")
def _mod(view: OnnxNode) -> None:
    truncated = bool(view.integer("fmod", 0))
    if view.common_dtype().startswith("float"):
        raise view.unsupported("a remainder of integers", view.dtype(0))
    make, (a, b) = Maker(view), view.operands()
    make.result(make.binary("fmod" if truncated else "mod", a, b))


@converts("Pow")
def _pow(view: OnnxNode) -> None:
    """Imports a power; where base and exponent differ in type, the result has the base's."""
    dtype, other = view.dtype(0), view.dtype(1)
    if dtype == "int64" and other == "int64":
        raise view.unsupported("a power of floats or of int32", dtype)
    make, (a, b) = Maker(view), view.operands()
    exponent = view.draft.known(b)
    if dtype.startswith("float") and _is_two(exponent, len(view.shape(0))):
        make.result(make.binary("mul", a, a))  # one instruction, and as exact
        return
    if dtype == other:
        make.result(make.binary("pow", a, b))
        return
    common = "float64" if "float64" in (dtype, other) or "int" in dtype else "float32"
    power = make.binary("pow", make.cast(a, common), make.cast(b, common))
    make.result(make.cast(power, dtype))


def _is_two(exponent: Array | None, rank: int) -> bool:
    """Whether an exponent is 2 for all elements of a tensor of some rank."""
    return exponent is not None and exponent.size == 1 and exponent.ndim <= rank and exponent == 2


@converts("BitShift")
def _shift(view: OnnxNode) -> None:
    view.common_dtype()
    way = view.text("direction", "")
    if way not in ("LEFT", "RIGHT"):
        raise view.error("direction LEFT or RIGHT", way)
    make, (a, b) = Maker(view), view.operands()
    make.result(make.binary("shl" if way == "LEFT" else "shr", a, b))


@converts(*CHAINS)
def _chain(view: OnnxNode) -> None:
    """Imports an operator of any number of operands as a chain of binary ones."""
    op, _ = view.proto.op_type, view.common_dtype()
    make, names = Maker(view), view.operands()
    result = reduce(lambda a, b: make.binary(CHAINS[op], a, b), names)
    if op == "Mean":
        view.real_dtype()
        result = make.binary("mul", result, 1 / len(names))
    make.result(result)


@converts("Where")
def _where(view: OnnxNode) -> None:
    view.common_dtype(1)
    if view.dtype(0) != "bool":
        raise view.error("a bool condition", view.dtype(0))
    make = Maker(view)
    make.result(make.where(*view.operands()))


@converts("Cast", "CastLike")
def _cast(view: OnnxNode) -> None:
    if view.proto.op_type == "CastLike":
        dtype = view.dtype(1)
    else:
        dtype = view.draft.dtype(view.integer("to", 0))
    make = Maker(view)
    data = decoded(make, view.operand(0))
    if dtype in STORED:
        saturate = bool(view.integer("saturate", 1))
        make.result(encoded(make, data, dtype, saturate, view.text("round_mode", "up")))
    else:
        make.result(make.cast(data, dtype))
