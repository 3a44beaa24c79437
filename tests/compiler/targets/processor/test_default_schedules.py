"""The default schedules of host functions, primitive by primitive, for several processors.

VDLA_UPDATE_GOLDEN=1 rewrites the golden files. A change there is a reason to run benchmarks/cpu.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from floats import Net

from vdla.compiler.build import Options, placed_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.processor.description.processor import V4, Processor, find_processor
from vdla.compiler.targets.processor.search.function import functions_of
from vdla.isa.config import load_config

GOLDEN = Path(__file__).parent
PROCESSORS = {
    "x86-64-v3": find_processor("x86-64-v3"),
    "vnni": Processor("x86_64-unknown-linux-gnu", "icelake", V4 + ",+avx512vnni"),
    "cortex-a9": find_processor("cortex-a9"),
}


def images():
    """Convolutions of floats: plain, by Winograd, of steps, depthwise, of one place; pools."""
    net = Net(1, 3, 56, 56)

    def convolution(x, inputs, outputs, size, **fields):
        return net.add(ops.Conv2d, data=x, weight=net.constant(outputs, inputs, size, size),
                       **fields)  # fmt: skip

    x = convolution("x", 3, 32, 7, pads=(3, 3, 3, 3), strides=(2, 2))
    x = net.add(ops.Relu, data=x)
    a = convolution(x, 32, 64, 3, pads=(1, 1, 1, 1))
    b = convolution(a, 64, 64, 3, pads=(1, 1, 1, 1))
    x = net.add(ops.Relu, data=net.add(ops.Add, a=a, b=b))
    x = net.add(ops.MaxPool, data=x, kernel=(3, 3), pads=(1, 1, 1, 1), strides=(2, 2))
    x = convolution(x, 1, 64, 3, pads=(1, 1, 1, 1), groups=64)
    x = convolution(x, 64, 96, 1)
    x = convolution(x, 96, 40, 1, strides=(2, 2))
    x = net.add(ops.AvgPool, data=x, kernel=(7, 7), strides=(7, 7))
    x = net.add(ops.Reshape, data=x, shape=(1, 40))
    return net.graph(net.add(ops.Dense, data=x, weight=net.constant(10, 40)))


def words():
    """Products of stacks of matrices, with what joins them; rows of sums."""
    net = Net(2, 48, 64)
    wide = net.binary("add", net.add(ops.MatMul, a="x", b=net.constant(64, 640)), net.constant(640))
    x = net.add(ops.MatMul, a=net.unary("gelu", wide), b=net.constant(640, 64))
    turned = net.add(ops.Transpose, data="x", perm=(0, 2, 1))
    scores = net.add(ops.Softmax, data=net.add(ops.MatMul, a=x, b=turned), axis=2)
    y = net.add(ops.MatMul, a=scores, b=x)
    return net.graph(net.add(ops.Reduce, data=y, function="mean", axes=(2,)))


def integers():
    """Convolutions and a dense layer of int8."""
    rng, nodes, constants = np.random.default_rng(0), [], {}
    shapes = {"x": (1, 3, 28, 28), "a": (1, 64, 28, 28), "b": (1, 64, 28, 28), "c": (1, 48, 14, 14),
              "d": (1, 48, 2, 2), "e": (1, 192), "y": (1, 20)}  # fmt: skip

    def add(kind, data, output, *weight, **fields):
        constants[f"{output}.w"] = rng.integers(-128, 128, weight).astype(np.int8)
        constants[f"{output}.b"] = rng.integers(-99, 99, weight[0]).astype(np.int32)
        nodes.append(
            kind(
                name=output,
                output=output,
                data=data,
                weight=f"{output}.w",
                bias=f"{output}.b",
                zeros=(3,),
                requant=Requant((0.001,) * weight[0], -4),
                **fields,
            )
        )

    add(ops.QConv2d, "x", "a", 64, 3, 3, 3, pads=(1, 1, 1, 1))
    add(ops.QConv2d, "a", "b", 64, 1, 3, 3, pads=(1, 1, 1, 1), groups=64)
    add(ops.QConv2d, "b", "c", 48, 64, 1, 1, strides=(2, 2))
    nodes.append(ops.QMaxPool(name="d", output="d", data="c", kernel=(7, 7), strides=(7, 7)))
    nodes.append(ops.QReshape(name="e", output="e", data="d"))
    add(ops.QDense, "e", "y", 20, 192)
    kinds = {n: TensorType(shape, "int8") for n, shape in shapes.items()}
    kinds |= {n: TensorType(a.shape, str(a.dtype)) for n, a in constants.items()}
    return verify(Graph(("x",), ("y",), tuple(nodes), kinds, constants))


def text_of(function):
    """A function's stages, and its schedule."""
    s = function.schedule(function.default)
    stages = [f"    {name}: {b.dtype}{list(b.shape)}" for name, b in s.buffers.items()]
    steps = [
        f"    {step.stage}.{step.primitive}({', '.join(f'{k}={v}' for k, v in step.args.items())})"
        for step in s.trace
    ]
    return "\n".join([", ".join(function.layers), *stages, *steps])


@pytest.mark.parametrize("name", PROCESSORS)
def test_default_schedules(name):
    texts, target = [], PROCESSORS[name]
    for network in (images, words, integers):
        placed = placed_graph(network(), load_config("paper"), Options("cpu", processor=target))
        functions = functions_of(*placed, target)
        texts += [f"# {network.__name__}", *(text_of(function) for function in functions)]
    text, golden = "\n".join(texts) + "\n", GOLDEN / f"schedules-{name}.golden.txt"
    if os.environ.get("VDLA_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()
