"""All operators and expressions on other machines, emulated, against this machine's results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.all_operators import alone
from tests.support.bare_programs import EMULATORS, Program, module_of, processor_of
from tests.support.foreign_code import (
    check_equal,
    expression_values,
    expressions,
    expressions_here,
    operators,
    operators_here,
)
from vdla.compiler.graph import ops
from vdla.compiler.targets.processor.codegen.scratch import scratch_bytes
from vdla.compiler.targets.processor.functions import node_function

SUMS = ("convolution", "dense")  # products are rounded before they are added, or not
QUICK = ("wasm32",)  # the others take some 20 seconds


@pytest.fixture(params=[
    name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in EMULATORS
])  # fmt: skip
def machine(request):
    """A machine that can be emulated here."""
    absent = EMULATORS[request.param].absent
    if absent:
        pytest.skip(absent)
    return request.param


def test_operators(machine, tmp_path):
    processor = processor_of(machine)
    module, inputs, results = operators(processor)
    outputs = Program(machine, module, tmp_path).run(inputs)
    actual = {name: outputs[tensor] for name, tensor in results.items()}
    check_equal(actual, operators_here(), close=SUMS)


def test_expressions(machine, tmp_path):
    """Conversions and arithmetic of every type, of 64 bits and of float16, too."""
    processor, functions = processor_of(machine), expressions()
    program = Program(machine, module_of(functions, processor), tmp_path)
    check_equal(program.run(expression_values()), expressions_here())
    assert program.peak_bytes == max(scratch_bytes(func, processor) for func in functions) > 0


def test_conversions_of_vectors(machine, tmp_path):
    """Casts as their schedule has them; LLVM made code for WebAssembly that no engine accepts."""
    functions = [
        node_function(node, alone(node, types), f"cast.{n}", processor_of(machine)).func
        for n, (node, types) in enumerate(casts())
    ]
    program = Program(machine, module_of(functions, processor_of(machine)), tmp_path)
    x = np.linspace(0, 50, 24).reshape(2, 12)
    inputs = {f"cast.{n}.0": x.astype(types["x"][0]) for n, (_, types) in enumerate(casts())}
    outputs = program.run(inputs)
    for n, (_, types) in enumerate(casts()):
        want = inputs[f"cast.{n}.0"].astype(types["y"][0])
        np.testing.assert_array_equal(outputs[f"cast.{n}.1"], want)


def casts():
    """Nodes from each type of some to each other one, with the types of their tensors."""
    dtypes = ("float16", "float32", "float64", "int64", "uint8", "bool")
    node = ops.Cast(name="n", data="x", output="y")
    return [(node, {"x": (a, 2, 12), "y": (b, 2, 12)}) for a in dtypes for b in dtypes if a != b]
