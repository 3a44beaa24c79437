"""Weights of 4 bits: what a network's weights take as int8 and as nibbles, and its cycles.

    python benchmarks/weights4.py [-c CONFIG] [--models resnet18,mobilenet] [--rates 8,2]

The weights of bundled networks are rounded to int4, symmetric, with a scale for each channel, as a
file of ONNX has them. Each is compiled for a config and for the same with ``weights4``, at several
rates of the memory in bytes per cycle, with the schedules that the compiler's model of the machine
chooses. Results are equal bit for bit, or it stops.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

import vdla
from vdla import api
from vdla.compiler.graph.types import Array
from vdla.compiler.models import model_path
from vdla.isa.config import Config, load_config
from vdla.isa.instructions import Load
from vdla.isa.options.weights4 import INT4_MAX, WEIGHTS4, WGT4
from vdla.isa.scratchpads import Mem
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

OPSET = 21  # the first whose DequantizeLinear takes int4
HEADS = ("network", "bytes a cycle", "weights", "constants", "WGT loaded", "all loaded", "cycles")


@dataclass(frozen=True)
class Measured:
    """A network's run: its output, cycles, bytes of its constants in DRAM, and bytes that LOADs
    moved, those of weights apart."""

    output: Array
    cycles: int
    constant_bytes: int
    weight_bytes: int
    loaded_bytes: int


def rounded(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A quantized network whose int8 weights with a scale per channel are int4: each channel's
    greatest one becomes 7 or -7, and its scale follows, as that of its bias does."""
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    constants = {each.name: each for each in result.graph.initializer}
    longer = {}  # steps of a channel beside those before, by the weights' name behind dequantizing
    for node, axis in _weights(result.graph, constants):
        weight, scale, zero = node.input
        numbers = numpy_helper.to_array(constants[weight]).astype(np.int64)
        others = tuple(n for n in range(numbers.ndim) if n != axis)
        factor = np.maximum(np.abs(numbers).max(others, keepdims=True), 1) / INT4_MAX
        _replace(constants[weight], np.rint(numbers / factor).astype(np.int64))
        longer[node.output[0]] = factor.reshape(-1)
        _lengthen(constants[scale], longer[node.output[0]])
        _replace(constants[zero], np.zeros(factor.size, np.int64))
    for bias, scale, factors in _biases(result.graph, constants, longer):
        numbers = np.rint(numpy_helper.to_array(constants[bias]) / factors).astype(np.int32)
        constants[bias].CopyFrom(numpy_helper.from_array(numbers, bias))
        _lengthen(constants[scale], factors)
    del result.opset_import[:]
    result.opset_import.append(helper.make_opsetid("", OPSET))
    result.ir_version = max(result.ir_version, 10)
    return result


def _weights(
    graph: onnx.GraphProto, constants: Mapping[str, TensorProto]
) -> Iterator[tuple[onnx.NodeProto, int]]:
    """The nodes that dequantize weights, and the axis of their channels."""
    for node in graph.node:
        if node.op_type != "DequantizeLinear" or not constants.keys() >= set(node.input):
            continue
        weight, scale = constants[node.input[0]], constants[node.input[1]]
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        is_int8 = weight.data_type == TensorProto.INT8 and len(weight.dims) > 1
        if is_int8 and list(scale.dims) == [weight.dims[axis]]:
            yield node, axis


def _biases(
    graph: onnx.GraphProto, constants: Mapping[str, TensorProto], longer: Mapping[str, Array]
) -> Iterator[tuple[str, str, Array]]:
    """The names of biases and their scales, of layers whose weights have longer steps."""
    makers = {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear"}
    for node in graph.node:
        if len(node.input) > 2 and node.input[1] in longer and node.input[2] in makers:
            bias, scale, *_ = makers[node.input[2]].input
            if bias in constants and constants[scale].dims:
                yield bias, scale, longer[node.input[1]]


def _lengthen(scale: TensorProto, factors: Array) -> None:
    steps = (numpy_helper.to_array(scale).reshape(-1) * factors).astype(np.float32)
    scale.CopyFrom(numpy_helper.from_array(steps, scale.name))


def _replace(tensor: TensorProto, numbers: Array) -> None:
    values = numbers.reshape(-1).tolist()
    made = helper.make_tensor(tensor.name, TensorProto.INT4, numbers.shape, values)
    tensor.CopyFrom(made)


def measure(proto: onnx.ModelProto, config: Config) -> Measured:
    """Compiles and simulates a network."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.onnx"
        onnx.save(proto, path)
        module = vdla.compile(path, config, records="none")
    ran = Executor(module, SimDevice(config)).run(api.random_inputs(module))
    moved, cycles = dict.fromkeys(Mem, 0), 0
    for step in ran.steps:
        if step.device is None:
            continue
        cycles += step.device.trace.cycles
        for each in step.device.trace.instructions:
            if isinstance(each, Load):
                memory = Mem(each.memory)
                entries = each.x_size * each.y_size * each.z_size
                moved[memory] += entries * config.entry(memory.name.lower())
    (output, *_) = ran.outputs.values()
    constants = module.metadata["memory"]["constants"]
    return Measured(output, cycles, constants, moved[Mem.WGT] + moved[WGT4], sum(moved.values()))


def rows(name: str, config: str, rates: list[int]) -> Iterator[list[str]]:
    """A network's rows: at each rate, as int8 and as nibbles.

    Raises:
        SystemExit: the results differ.
    """
    proto = rounded(onnx.load(model_path(name)))
    for rate in rates:
        settings = [f"memory.bytes_per_cycle={rate}"]
        plain = measure(proto, load_config(config, settings))
        small = measure(proto, load_config(config, [*settings, f"{WEIGHTS4.name}=1"]))
        if not np.array_equal(plain.output, small.output):
            raise SystemExit(f"{name}: expected equal results with and without {WEIGHTS4.name}")
        for text, each in (("int8", plain), ("int4", small)):
            numbers = each.constant_bytes, each.weight_bytes, each.loaded_bytes, each.cycles
            yield [name, str(rate), text, *(f"{number:,}" for number in numbers)]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--models", default="resnet18")
    parser.add_argument("--rates", default="8,2")
    chosen = parser.parse_args()
    table = Table(*HEADS, title=f"weights of 4 bits on {chosen.config}")
    for name in chosen.models.split(","):
        for row in rows(name, chosen.config, [int(rate) for rate in chosen.rates.split(",")]):
            table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
