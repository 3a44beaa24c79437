"""All operators and expressions on other machines, emulated, against this machine's results."""

from __future__ import annotations

import pytest

from tests.support.bare_programs import EMULATORS, Program, module_of, processor_of
from tests.support.foreign_code import (
    check_equal,
    expression_values,
    expressions,
    expressions_here,
    operators,
    operators_here,
)
from vdla.compiler.targets.processor.codegen.scratch import scratch_bytes

SUMS = ("convolution", "dense")  # products are rounded before they are added, or not
QUICK = ("wasm32", "thumbv7em")


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
