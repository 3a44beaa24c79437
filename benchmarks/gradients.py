"""Gradients of ONNX's operators beside PyTorch's, on the processor, of float32.

    python benchmarks/gradients.py [--only "Conv,LSTM"] [--json]

The cases are those of ``tests/support/gradient_operators.py``. The loss is a random sum of a
result's elements. A difference is the largest one in an operand, relative to PyTorch's largest
gradient in it. Operators that PyTorch computes otherwise, or doesn't have, are counted and named.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn import functional as F

import vdla
from vdla.compiler.tracing.network import Network

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from gradient_operators import CASES, Case

Tensor = torch.Tensor
Function = Callable[..., Tensor]  # of a case's fields and its operands


def _plain(function: Callable[..., Tensor]) -> Function:
    """A function that has no fields."""
    return lambda fields, *x: function(*x)


def _pads(pads: list[int]) -> list[int]:
    """ONNX's pads, all in front first, as PyTorch's, from the last axis on."""
    half = len(pads) // 2
    return [n for axis in reversed(range(half)) for n in (pads[axis], pads[half + axis])]


def _conv(fields: dict[str, Any], x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    rank = x.ndim - 2
    convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    padded = F.pad(x, _pads(fields.get("pads", [0] * 2 * rank)))
    steps = fields.get("strides", 1), 0, fields.get("dilations", 1), fields.get("group", 1)
    return convolve(padded, w, b, *steps)


def _transposed(fields: dict[str, Any], x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    convolve = (F.conv_transpose1d, F.conv_transpose2d)[x.ndim - 3]
    pads = fields.get("pads", [0] * 4)[: x.ndim - 2]
    return convolve(
        x, w, b, stride=fields.get("strides", 1), padding=pads, groups=fields.get("group", 1),
        output_padding=fields.get("output_padding", 0),
    )  # fmt: skip


def _largest(fields: dict[str, Any], x: Tensor) -> Tensor:
    rank = x.ndim - 2
    padded = F.pad(x, _pads(fields.get("pads", [0] * 2 * rank)), value=-torch.inf)
    pool = (F.max_pool1d, F.max_pool2d)[rank - 1]
    steps = fields["kernel_shape"], fields.get("strides", 1), 0, fields.get("dilations", 1)
    return pool(padded, *steps, ceil_mode=bool(fields.get("ceil_mode", 0)))


def _averages(fields: dict[str, Any], x: Tensor) -> Tensor:
    """The sums of windows by the elements that they see."""
    rank, size = x.ndim - 2, fields["kernel_shape"]
    pads, ones = _pads(fields.get("pads", [0] * 2 * rank)), torch.ones_like(x)
    if fields.get("count_include_pad"):
        x, ones, pads = F.pad(x, pads), F.pad(ones, pads, value=1), []
    convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    window = torch.ones(x.shape[1], 1, *size)
    steps = fields.get("strides", 1), 0, fields.get("dilations", 1), x.shape[1]
    sums, counts = (convolve(F.pad(each, pads), window, None, *steps) for each in (x, ones))
    return sums / counts


def _reduced(function: Callable[..., Tensor]) -> Function:
    """A reduction along the axes of the second operand."""

    def call(fields: dict[str, Any], x: Tensor, axes: Tensor) -> Tensor:
        return function(x, axes.tolist(), bool(fields["keepdims"]))

    return call


def _running(function: Callable[..., Tensor], first: float) -> Function:
    def call(fields: dict[str, Any], x: Tensor, axis: Tensor) -> Tensor:
        place = int(axis)
        x = x.flip(place) if fields["reverse"] else x
        if fields["exclusive"]:
            start = torch.full_like(x.narrow(place, 0, 1), first)
            x = torch.cat([start, x.narrow(place, 0, x.shape[place] - 1)], place)
        result = function(x, place)
        return result.flip(place) if fields["reverse"] else result

    return call


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in reversed(axes):
        x = torch.prod(x, axis, keep)
    return x


REDUCTIONS = {"mul": "prod", "max": "amax", "min": "amin", "add": "sum"}


def _scattered(fields: dict[str, Any], x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    axis, places = fields["axis"], places.remainder(x.shape[fields["axis"]])
    if "reduction" not in fields:
        return x.scatter(axis, places, updates)
    return x.scatter_reduce(axis, places, updates, REDUCTIONS[fields["reduction"]])


def _scattered_rows(fields: dict[str, Any], x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    if "reduction" not in fields:
        return x.index_put((places[:, 0],), updates)
    spread = places.expand(updates.shape)
    return x.scatter_reduce(0, spread, updates, REDUCTIONS[fields["reduction"]])


def _padded(fields: dict[str, Any], x: Tensor, pads: Tensor) -> Tensor:
    mode = {"edge": "replicate", "wrap": "circular"}.get(fields.get("mode", ""), "")
    mode = mode or fields.get("mode", "constant")
    if mode == "constant":
        return F.pad(x, _pads(pads.tolist()))
    return F.pad(x[None, None], _pads(pads.tolist()), mode=mode)[0, 0]


def _recurrent(fields: dict[str, Any], *x: Tensor | None) -> Tensor:
    """The layer, whose gates PyTorch has in another order."""
    (data, w, r), rest = x[:3], [*x[3:], *[None] * (8 - len(x))]
    assert data is not None
    assert w is not None
    assert r is not None
    hidden, gates = fields["hidden_size"], w.shape[1] // fields["hidden_size"]
    if rest[4] is not None:
        raise NotImplementedError("peepholes")
    if gates == 3 and not fields.get("linear_before_reset"):
        raise NotImplementedError("a reset gate before the state's weights")
    order = {1: [0], 3: [1, 0, 2], 4: [0, 2, 3, 1]}[gates]
    layer = {1: torch.nn.RNN, 3: torch.nn.GRU, 4: torch.nn.LSTM}[gates]
    both = fields.get("direction") == "bidirectional"
    net = layer(data.shape[2], hidden, bidirectional=both)

    def sorted_gates(each: Tensor) -> Tensor:
        return torch.cat([each[n * hidden : (n + 1) * hidden] for n in order])

    parameters = {}
    for number in range(w.shape[0]):
        end = "_reverse" * number
        parameters[f"weight_ih_l0{end}"] = sorted_gates(w[number])
        parameters[f"weight_hh_l0{end}"] = sorted_gates(r[number])
        for bias, name in zip(rest[0][number].chunk(2), ("ih", "hh"), strict=True):
            parameters[f"bias_{name}_l0{end}"] = sorted_gates(bias)
    state = rest[2] if rest[2] is None or gates != 4 else (rest[2], rest[3])
    result, _ = torch.func.functional_call(net, parameters, (data, state))
    return result.reshape(*result.shape[:2], w.shape[0], hidden).transpose(1, 2)


def _resized(
    fields: dict[str, Any], x: Tensor, roi: None, scales: Any, sizes: Any = None
) -> Tensor:
    how = fields.get("coordinate_transformation_mode", "half_pixel")
    if how == "asymmetric" or fields["mode"] != "linear":
        raise NotImplementedError("other coordinates, or another cubic's factor")
    size = sizes.tolist()[2:] if sizes is not None else None
    factors = None if scales is None else scales.tolist()[2:]
    return F.interpolate(x, size, factors, mode="bilinear", align_corners=how == "align_corners")


def _normalized_groups(fields: dict[str, Any], *x: Tensor) -> Tensor:
    return F.group_norm(x[0], fields["num_groups"], *x[1:])


def _sliced(fields: dict[str, Any], x: Tensor, *ends: Tensor) -> Tensor:
    first, last, axes, steps = (each.tolist() for each in ends)
    for low, high, axis, step in zip(first, last, axes, steps, strict=True):
        places = range(x.shape[axis])[low:high:step]
        x = x.index_select(axis, torch.tensor(places))
    return x


def _gathered(fields: dict[str, Any], x: Tensor, places: Tensor) -> Tensor:
    axis = fields["axis"]
    rows = x.index_select(axis, places.reshape(-1).remainder(x.shape[axis]))
    return rows.reshape(*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])


def _gathered_nd(fields: dict[str, Any], x: Tensor, places: Tensor) -> Tensor:
    if fields.get("batch_dims"):
        pairs = zip(x, places, strict=True)
        return torch.stack([each[tuple(own.unbind(-1))] for each, own in pairs])
    return x[tuple(places.unbind(-1))]


def _gemm(fields: dict[str, Any], a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    a, b = a.T if fields.get("transA") else a, b.T if fields.get("transB") else b
    return fields.get("alpha", 1.0) * (a @ b) + fields.get("beta", 1.0) * c


def _means(x: Tensor) -> Tensor:
    deviation, mean = torch.std_mean(x, (0, 2, 3), correction=0, keepdim=True)
    return (x - mean) / (deviation + 1e-9)


def _spaces(fields: dict[str, Any], x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    k = fields["blocksize"]
    if fields["mode"] == "CRD":
        return F.pixel_shuffle(x, k)
    parts = x.reshape(n, k, k, c // k**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, c // k**2, h * k, w * k)


def _depths(fields: dict[str, Any], x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    k = fields["blocksize"]
    parts = x.reshape(n, c, h // k, k, w // k, k).permute(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * k * k, h // k, w // k)


def _loss(
    fields: dict[str, Any], x: Tensor, target: Tensor, weight: Tensor | None = None
) -> Tensor:
    own = None if weight is None else weight.detach()  # which has no gradient there
    return F.cross_entropy(x, target, own, reduction=fields["reduction"])


def _image_norm(kind: float) -> Function:
    return lambda fields, x: F.normalize(x, float(fields["p"]), -1, eps=kind)


FUNCTIONS: dict[str, Function] = {
    **{name: _plain(getattr(torch, name.lower())) for name in (
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Erf", "Exp",
        "Log", "Neg", "Reciprocal", "Sigmoid", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Add", "Sub",
        "Mul", "Div", "Pow", "Where", "MatMul", "Relu", "Celu", "Selu",
    ) if hasattr(torch, name.lower())},
    "Elu": _plain(F.elu), "Gelu": lambda f, x: F.gelu(x, approximate=f.get("approximate", "none")),
    "HardSigmoid": lambda f, x: (0.2 * x + 0.5).clamp(0, 1), "HardSwish": _plain(F.hardswish),
    "Identity": _plain(torch.clone), "Dropout": _plain(torch.clone),
    "LeakyRelu": _plain(lambda x: F.leaky_relu(x, 0.01)), "Mish": _plain(F.mish),
    "Softplus": _plain(F.softplus), "Softsign": _plain(F.softsign),
    "ThresholdedRelu": lambda f, x: F.threshold(x, f["alpha"], 0.0),
    "Shrink": lambda f, x: torch.where(
        x.abs() > f["lambd"], x - torch.sign(x) * f["bias"], torch.zeros_like(x)
    ),
    "Clip": _plain(torch.clamp), "Cast": _plain(torch.Tensor.double),
    "Max": _plain(lambda *x: torch.amax(torch.stack(torch.broadcast_tensors(*x)), 0)),
    "Min": _plain(lambda *x: torch.amin(torch.stack(torch.broadcast_tensors(*x)), 0)),
    "Mean": _plain(lambda *x: torch.stack(torch.broadcast_tensors(*x)).mean(0)),
    "Sum": _plain(lambda *x: torch.stack(torch.broadcast_tensors(*x)).sum(0)),
    "PRelu": _plain(lambda x, slope: torch.where(x > 0, x, x * slope)),
    "Gemm": _gemm, "Einsum": lambda f, *x: torch.einsum(f["equation"], *x),
    "Conv": _conv, "ConvTranspose": _transposed, "MaxPool": _largest, "AveragePool": _averages,
    "GlobalAveragePool": _plain(lambda x: x.mean((2, 3), keepdim=True)),
    "GlobalMaxPool": _plain(lambda x: x.amax((2, 3), keepdim=True)),
    "LpPool": lambda f, x: F.lp_pool2d(x, f["p"], f["kernel_shape"], 1),
    "BatchNormalization": _plain(lambda x, g, b, m, v: F.batch_norm(x, m, v, g, b)),
    "InstanceNormalization": _plain(lambda x, g, b: F.instance_norm(x, weight=g, bias=b)),
    "LayerNormalization": _plain(lambda x, g, b=None: F.layer_norm(x, g.shape, g, b)),
    "GroupNormalization": _normalized_groups,
    "RMSNormalization": _plain(lambda x, g: F.rms_norm(x, g.shape, g, 1e-5)),
    "LpNormalization": _image_norm(1e-12), "MeanVarianceNormalization": _plain(_means),
    "LRN": lambda f, x: F.local_response_norm(x, f["size"], f["alpha"], 0.75, 1.0),
    "Softmax": lambda f, x: F.softmax(x, f["axis"]),
    "LogSoftmax": lambda f, x: F.log_softmax(x, f["axis"]),
    "SoftmaxCrossEntropyLoss": _loss, "NegativeLogLikelihoodLoss": _plain(F.nll_loss),
    "ReduceSum": _reduced(torch.sum), "ReduceMean": _reduced(torch.mean),
    "ReduceMax": _reduced(torch.amax), "ReduceMin": _reduced(torch.amin),
    "ReduceProd": _reduced(_product),
    "ReduceL1": _reduced(lambda x, *how: torch.sum(x.abs(), *how)),
    "ReduceL2": _reduced(lambda x, *how: torch.sum(x * x, *how).sqrt()),
    "ReduceSumSquare": _reduced(lambda x, *how: torch.sum(x * x, *how)),
    "ReduceLogSum": _reduced(lambda x, *how: torch.sum(x, *how).log()),
    "ReduceLogSumExp": _reduced(torch.logsumexp),
    "CumSum": _running(torch.cumsum, 0), "CumProd": _running(torch.cumprod, 1),
    "TopK": lambda f, x, k: torch.topk(x, int(k[0]), largest=bool(f["largest"]))[0],
    "Flatten": _plain(lambda x: torch.flatten(x, 1)),
    "Reshape": _plain(lambda x, shape: x.reshape(shape.tolist())),
    "Squeeze": _plain(lambda x, axes: x.squeeze(axes.tolist())),
    "Unsqueeze": _plain(lambda x, axes: x[None, :, None]),
    "Transpose": lambda f, x: x.permute(f["perm"]),
    "Tile": _plain(lambda x, times: x.tile(times.tolist())),
    "Concat": lambda f, *x: torch.cat(x, f["axis"]),
    "Expand": _plain(lambda x, shape: x.expand(shape.tolist())),
    "Split": _plain(lambda x, sizes: torch.split(x, sizes.tolist())[1]), "Slice": _sliced,
    "Pad": _padded, "Gather": _gathered, "GatherND": _gathered_nd,
    "GatherElements": lambda f, x, i: x.gather(f["axis"], i.remainder(x.shape[f["axis"]])),
    "ScatterElements": _scattered, "ScatterND": _scattered_rows, "DepthToSpace": _spaces,
    "SpaceToDepth": _depths, "Resize": _resized,
    "Trilu": _plain(lambda x, k: torch.tril(x, int(k))),
    "RNN": _recurrent, "GRU": _recurrent, "LSTM": _recurrent,
}  # fmt: skip


def difference(case: Case) -> float:
    """The largest relative difference of the gradients in a case's operands.

    Raises:
        NotImplementedError: PyTorch has no such form.
    """
    if case.op not in FUNCTIONS:
        raise NotImplementedError("no such function")
    numbers = case.numbers()
    own = {name: torch.tensor(x, requires_grad=True) for name, x in numbers.items()}
    known = {
        f"x{n}": torch.tensor(x) for n, x in enumerate(case.operands)
        if isinstance(x, np.ndarray) and x.dtype != object
    }  # fmt: skip
    operands = [(own | known).get(f"x{n}") for n in range(len(case.operands))]
    y = FUNCTIONS[case.op](case.fields, *operands)
    weight = np.random.default_rng(1).standard_normal(tuple(y.shape))
    weight = np.asarray(weight, str(y.dtype).removeprefix("torch."))
    (y * torch.tensor(weight)).sum().backward()
    net = Network(case.model(), case.name)
    gradients = vdla.grad(lambda x: np.sum(net({}, **x) * weight))(numbers)
    worst = 0.0
    for name, x in own.items():
        if x.grad is None:
            continue
        wanted = x.grad.numpy().astype(np.float64)
        scale = max(float(np.abs(wanted).max()), 1e-3)
        worst = max(worst, float(np.abs(gradients[name] - wanted).max()) / scale)
    return worst


def main() -> None:
    """The command: exit code 1 where a gradient differs by more than ``--most``."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="", help="operators, with commas between")
    parser.add_argument("--most", type=float, default=1e-4, help="relative difference")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wanted, worst, counts = {*filter(None, options.only.split(","))}, dict[str, float](), 0
    without: dict[str, list[str]] = {}
    for case in CASES:
        if wanted and case.op not in wanted:
            continue
        try:
            result = difference(case)
        except NotImplementedError as error:
            without.setdefault(str(error), []).append(case.op)
            continue
        worst[case.op], counts = max(worst.get(case.op, 0.0), result), counts + 1
    rows = sorted(worst.items(), key=lambda row: -row[1])
    if options.json:
        print(json.dumps({"differences": worst, "without": without}))
    else:
        table = Table("operator", "largest relative difference")
        for name, result in rows:
            table.add_row(name, f"{result:.1e}")
        Console().print(table)
        for reason, names in without.items():
            print(f"not compared, {reason}: {', '.join(dict.fromkeys(names))}")
        print(f"{counts} cases of {len(worst)} operators; PyTorch {torch.__version__}")
    raise SystemExit(bool(rows and not rows[0][1] <= options.most))


if __name__ == "__main__":
    main()
