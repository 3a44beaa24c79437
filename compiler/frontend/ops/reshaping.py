"""What each ONNX operator means in the typed graph: one small function per operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Pads, Pair
from vdla.compiler.graph.ops.window import window_extent

if TYPE_CHECKING:
    from vdla.compiler.frontend.onnx import OnnxNode

Converter = Callable[["OnnxNode"], None]
F = TypeVar("F", bound=Converter)
CONVERTERS: dict[str, Converter] = {}


def supported() -> str:
    """The operators, for messages and documentation."""
    return ", ".join(sorted(CONVERTERS))


def converts(*op_types: str) -> Callable[[F], F]:
    """Registers a converter."""

    def register(function: F) -> F:
        for op_type in op_types:
            CONVERTERS[op_type] = function
        return function

    return register


# --- quantization ---------------------------------------------------------------------------------


@converts("QuantizeLinear")
def _quantize(view: OnnxNode) -> None:
    params = _quant_params(view, "uint8")
    dtype = params.pop("dtype")
    if dtype not in ("int8", "uint8"):
        raise view.unsupported("an int8 or uint8 result", dtype)
    node = ops.Quantize(name=view.name, output=view.output, data=view.operand(0), **params)
    view.importer.emit(node, dtype)


@converts("DequantizeLinear")
def _dequantize(view: OnnxNode) -> None:
    data = view.importer.tensors[view.operand(0)]
    params = _quant_params(view, data.dtype)
    params.pop("dtype")
    if data.dtype not in ("int8", "uint8", "int32"):
        raise view.unsupported("int8, uint8 or int32 data", data.dtype)
    node = ops.Dequantize(name=view.name, output=view.output, data=view.operand(0), **params)
    view.importer.emit(node, "float32")


def _quant_params(view: OnnxNode, dtype: str) -> dict[str, Any]:
    if view.integer("block_size", 0):
        raise view.unsupported("one scale per tensor or per channel", "blocks of scales")
    scale = view.constant(1, "scale")
    if scale.dtype != np.float32:
        raise view.unsupported("a float32 scale", scale.dtype)
    scale = scale.reshape(-1)
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise view.error(
            "positive finite scales", f"{scale[~(np.isfinite(scale) & (scale > 0))][0]:g}"
        )
    if view.optional(2) is None:
        zero = np.zeros(scale.shape, dtype)
    else:
        zero = view.constant(2, "zero point").reshape(-1)
        if zero.shape != scale.shape:
            raise view.error(f"{scale.size} zero points", zero.size)
    axis = None
    if scale.size > 1:
        shape = view.shape(0)
        axis = view.integer("axis", 1) % max(len(shape), 1)
        if shape[axis] != scale.size:
            raise view.error(f"{shape[axis]} scales along axis {axis}", scale.size)
    return {
        "scale": tuple(float(s) for s in scale),
        "zero_point": tuple(int(z) for z in zero),
        "axis": axis,
        "dtype": str(zero.dtype),
    }


# --- windows --------------------------------------------------------------------------------------


def _pair(view: OnnxNode, name: str) -> Pair:
    values = view.integers(name, (1, 1))
    if len(values) != 2 or min(values) < 1:
        raise view.error(f"two positive {name}", list(values))
    return values[0], values[1]


def _pads(view: OnnxNode, kernel: Sequence[int], strides: Pair, dilations: Pair) -> Pads:
    mode = view.text("auto_pad", "NOTSET")
    if mode == "VALID":
        return (0, 0, 0, 0)
    if mode == "NOTSET":
        pads = view.integers("pads", (0, 0, 0, 0))
        if len(pads) != 4 or min(pads) < 0:
            raise view.error("four pads ≥ 0", list(pads))
        return pads[0], pads[1], pads[2], pads[3]
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise view.error("auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode)
    pairs = []
    for size, k, stride, dilation in zip(
        view.shape(0)[2:], kernel, strides, dilations, strict=True
    ):
        total = max((-(-size // stride) - 1) * stride + dilation * (k - 1) + 1 - size, 0)
        half = total // 2
        pairs.append((half, total - half) if mode == "SAME_UPPER" else (total - half, half))
    return pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1]


def _image(view: OnnxNode) -> None:
    if len(view.shape(0)) != 4:
        raise view.unsupported("data of shape [N, C, H, W]", list(view.shape(0)))


@converts("Conv")
def _conv(view: OnnxNode) -> None:
    _image(view)
    weight = view.shape(1)
    if len(weight) != 4:
        raise view.error("a weight of shape [O, I, KH, KW]", list(weight))
    kernel = view.integers("kernel_shape", weight[2:])
    if kernel != weight[2:]:
        raise view.error(f"kernel_shape {list(weight[2:])} as in the weight", list(kernel))
    strides, dilations = _pair(view, "strides"), _pair(view, "dilations")
    node = ops.Conv2d(
        name=view.name,
        output=view.output,
        data=view.operand(0),
        weight=view.operand(1),
        bias=view.optional(2),
        groups=view.integer("group", 1),
        strides=strides,
        pads=_pads(view, kernel, strides, dilations),
        dilations=dilations,
    )
    view.importer.emit(node, "float32")


def _pool_window(view: OnnxNode) -> dict[str, Any]:
    _image(view)
    kernel = view.integers("kernel_shape", ())
    if len(kernel) != 2:
        raise view.unsupported("a kernel_shape of two", list(kernel))
    strides, dilations = _pair(view, "strides"), _pair(view, "dilations")
    pads = _pads(view, kernel, strides, dilations)
    return {"kernel": kernel, "strides": strides, "dilations": dilations, "pads": pads}


def _ceil_pads(view: OnnxNode, window: dict[str, Any]) -> Pads:
    """The pads with which rounding down takes the places that ``ceil_mode`` rounds up to."""
    pads = list(window["pads"])
    for i, size in enumerate(view.shape(0)[2:]):
        stride, dilation, kernel = window["strides"][i], window["dilations"][i], window["kernel"][i]
        floor = window_extent(size, kernel, stride, pads[i], pads[i + 2], dilation)
        reach = dilation * (kernel - 1) + 1
        places = -(-(size + pads[i] + pads[i + 2] - reach) // stride) + 1
        if (places - 1) * stride >= size + pads[i]:  # the last window would see only padding
            places -= 1
        if places > floor:
            pads[i + 2] = (places - 1) * stride + reach - size - pads[i]
    return pads[0], pads[1], pads[2], pads[3]


@converts("MaxPool")
def _max_pool(view: OnnxNode) -> None:
    window = _pool_window(view)
    if view.integer("ceil_mode", 0):
        window["pads"] = _ceil_pads(view, window)
    node = ops.MaxPool(name=view.name, output=view.output, data=view.operand(0), **window)
    view.importer.emit(node, "float32")


@converts("AveragePool")
def _average_pool(view: OnnxNode) -> None:
    window = _pool_window(view)
    include = bool(view.integer("count_include_pad", 0))
    if view.integer("ceil_mode", 0):
        pads = _ceil_pads(view, window)
        if include and pads != window["pads"]:
            raise view.unsupported("ceil_mode 0 where count_include_pad is 1", "ceil_mode 1")
        window["pads"] = pads
    node = ops.AvgPool(
        name=view.name, output=view.output, data=view.operand(0), include_pad=include, **window
    )
    view.importer.emit(node, "float32")


@converts("GlobalAveragePool")
def _global_average_pool(view: OnnxNode) -> None:
    _image(view)
    _, _, h, w = view.shape(0)
    node = ops.AvgPool(
        name=view.name, output=view.output, data=view.operand(0), kernel=(h, w), strides=(1, 1)
    )
    view.importer.emit(node, "float32")


@converts("ReduceMean")
def _reduce_mean(view: OnnxNode) -> None:
    _image(view)
    if view.optional(1) is not None:
        axes = [int(a) % 4 for a in view.constant(1, "axes")]
    else:
        axes = [a % 4 for a in view.integers("axes", ())]
    if sorted(axes) != [2, 3]:
        raise view.unsupported("the mean of an image (axes 2 and 3)", axes)
    n, c, h, w = view.shape(0)
    keep = view.integer("keepdims", 1)
    output = view.output if keep else view.importer.fresh(f"{view.output}.mean")
    node = ops.AvgPool(name=view.name, output=output, data=view.operand(0), kernel=(h, w))
    view.importer.emit(node, "float32")
    if not keep:
        flat = view.importer.fresh(f"{view.name}.flat")
        node_flat = ops.Reshape(name=flat, output=view.output, data=output)
        view.importer.emit(node_flat, "float32", (n, c))


# --- dense ----------------------------------------------------------------------------------------


@converts("Gemm")
def _gemm(view: OnnxNode) -> None:
    for name, default in (("alpha", 1.0), ("beta", 1.0)):
        if view.real(name, default) != default:
            raise view.unsupported(f"{name} = {default:g}", f"{view.real(name, default):g}")
    if view.integer("transA", 0):
        raise view.unsupported("transA = 0", 1)
    weight = view.operand(1)
    if not view.integer("transB", 0):
        weight = _rearranged(view, weight, "weight", lambda w: w.T)
    outputs = view.importer.tensors[weight].shape[0]
    bias = view.optional(2)
    if bias is not None and view.importer.tensors[bias].shape != (outputs,):
        bias = _rearranged(view, bias, "bias", lambda b: _row(b, outputs))
    _emit_dense(view, weight, bias)


@converts("MatMul")
def _matmul(view: OnnxNode) -> None:
    _emit_dense(view, _rearranged(view, view.operand(1), "weight", lambda w: w.T), None)


def _row(array: Any, size: int) -> Any:
    """One value per output: a scalar repeated, a row without its leading ones."""
    return np.broadcast_to(array.reshape(-1), (size,) if array.size == 1 else array.size)


def _emit_dense(view: OnnxNode, weight: str, bias: str | None) -> None:
    if len(view.shape(0)) != 2 or len(view.importer.tensors[weight].shape) != 2:
        raise view.unsupported(
            "data of shape [N, I] and a weight of two dimensions", list(view.shape(0))
        )
    data = view.operand(0)
    node = ops.Dense(name=view.name, output=view.output, data=data, weight=weight, bias=bias)
    view.importer.emit(node, "float32")


def _rearranged(view: OnnxNode, name: str, what: str, change: Callable[[Any], Any]) -> str:
    """A constant operand (or the constant behind its Dequantize) in another arrangement."""
    importer = view.importer
    new = importer.fresh(f"{name}.{view.name}")
    if name in importer.constants:
        return importer.add_constant(new, change(importer.constants[name]))
    source = importer.dequantized(name)
    if source is None:
        raise view.unsupported(f"a constant {what}", f"{name}, known only at run time")
    data = importer.constants[source.data]
    axis = source.axis
    if axis is not None and data.ndim == 2:
        axis = 1 - axis
    integers = importer.add_constant(f"{new}.integers", change(data))
    node = ops.Dequantize(
        name=importer.fresh(f"{source.name}.{view.name}"),
        output=new,
        data=integers,
        scale=source.scale,
        zero_point=source.zero_point,
        axis=axis,
    )
    return importer.emit(node, "float32")


# --- element-wise ---------------------------------------------------------------------------------


@converts("Add")
def _add(view: OnnxNode) -> None:
    node = ops.Add(name=view.name, output=view.output, a=view.operand(0), b=view.operand(1))
    view.importer.emit(node, "float32")


@converts("Relu")
def _relu(view: OnnxNode) -> None:
    node = ops.Relu(name=view.name, output=view.output, data=view.operand(0))
    view.importer.emit(node, "float32")


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
    view.importer.emit(node, "float32")


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
    view.importer.emit(node, "float32")


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
    view.importer.emit(node, "float32")


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
    importer = view.importer
    node = ops.BatchNorm(
        name=view.name,
        output=view.output,
        data=view.operand(0),
        factor=importer.add_constant(f"{view.name}.factor", factor.astype(np.float32)),
        offset=importer.add_constant(f"{view.name}.offset", offset.astype(np.float32)),
    )
    importer.emit(node, "float32")


@converts("Softmax")
def _softmax(view: OnnxNode) -> None:
    rank = len(view.shape(0))
    axis = view.integer("axis", -1 if view.importer.opset >= 13 else 1) % rank
    if view.importer.opset < 13 and axis != rank - 1:
        raise view.unsupported(f"axis {rank - 1} (before opset 13 it flattens)", axis)
    node = ops.Softmax(name=view.name, output=view.output, data=view.operand(0), axis=axis)
    view.importer.emit(node, "float32")


# --- shapes ---------------------------------------------------------------------------------------


@converts("Identity", "Dropout")
def _identity(view: OnnxNode) -> None:
    source, target = view.operand(0), str(view.proto.output[0])
    if target not in view.importer.outputs:
        view.importer.alias[target] = source
        return
    _emit_reshape(view, view.shape(0))


@converts("Constant")
def _constant(view: OnnxNode) -> None:
    raise view.error("a tensor value", sorted(view.attributes))


@converts("Flatten")
def _flatten(view: OnnxNode) -> None:
    shape = view.shape(0)
    axis = view.integer("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    _emit_reshape(view, (reduce(mul, shape[:axis], 1), reduce(mul, shape[axis:], 1)))


@converts("Reshape")
def _reshape(view: OnnxNode) -> None:
    shape = view.shape(0)
    target = [int(v) for v in view.constant(1, "shape")]
    if not view.integer("allowzero", 0):
        if any(v == 0 and i >= len(shape) for i, v in enumerate(target)):
            raise view.error(f"zeros only within the data's {len(shape)} dimensions", target)
        target = [shape[i] if v == 0 else v for i, v in enumerate(target)]
    count = reduce(mul, shape, 1)
    if -1 in target:
        known = reduce(mul, (v for v in target if v != -1), 1)
        target[target.index(-1)] = count // known if known else 0
    if reduce(mul, target, 1) != count or min(target, default=1) < 1:
        raise view.error(f"a shape of {count} elements", view.constant(1, "shape").tolist())
    _emit_reshape(view, tuple(target))


@converts("Squeeze")
def _squeeze(view: OnnxNode) -> None:
    shape = view.shape(0)
    axes = _axes(view, len(shape)) or {i for i, v in enumerate(shape) if v == 1}
    if any(shape[a] != 1 for a in axes):
        raise view.error("axes of size 1", [shape[a] for a in sorted(axes)])
    _emit_reshape(view, tuple(v for i, v in enumerate(shape) if i not in axes))


@converts("Unsqueeze")
def _unsqueeze(view: OnnxNode) -> None:
    rest = list(view.shape(0))
    count = len(view.constant(1, "axes")) if view.optional(1) else len(view.integers("axes", ()))
    rank = len(rest) + count
    axes = _axes(view, rank)
    _emit_reshape(view, tuple(1 if i in axes else rest.pop(0) for i in range(rank)))


def _axes(view: OnnxNode, rank: int) -> set[int]:
    if view.optional(1) is not None:
        return {int(a) % rank for a in view.constant(1, "axes")}
    return {a % rank for a in view.integers("axes", ())}


def _emit_reshape(view: OnnxNode, shape: tuple[int, ...]) -> None:
    data = view.operand(0)
    dtype = view.importer.tensors[data].dtype
    kind = ops.Reshape if dtype == "float32" else ops.QReshape
    if dtype == "uint8":
        raise view.unsupported("float32 or int8 data", dtype)
    node = kind(name=view.name, output=str(view.proto.output[0]), data=data)
    view.importer.emit(node, dtype, shape)


@converts("Transpose")
def _transpose(view: OnnxNode) -> None:
    rank = len(view.shape(0))
    perm = view.integers("perm", tuple(reversed(range(rank))))
    node = ops.Transpose(name=view.name, output=view.output, data=view.operand(0), perm=perm)
    view.importer.emit(node, "float32")


@converts("Concat")
def _concat(view: OnnxNode) -> None:
    axis = view.integer("axis", 0) % len(view.shape(0))
    node = ops.Concat(name=view.name, output=view.output, parts=view.operands(), axis=axis)
    view.importer.emit(node, "float32")
