"""Host functions compiled for this machine and for another, which have to compute the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from tests.support.all_expressions import all_expressions
from tests.support.all_operators import OPERATORS, F, alone
from tests.support.bare_programs import module_of
from vdla.compiler.targets.processor.description.processor import NATIVE, Processor
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.tir.ir import LIBRARY_CALLS, PrimFunc
from vdla.runtime import Executor, Module, TensorInfo

Arrays = Mapping[str, np.ndarray]
ARITHMETIC = ("exp", "log", "tanh")  # within some units in the last place on each processor
SIGNED_ZEROS = {"min", "max", "add", "sub", "mul", "lt", "le", "gt", "ge", "eq", "ne"}
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 6e-8)
SPREAD = SIGNED_ZEROS | {"div", "rint", "floor", "abs", "fma", "to"}  # defined for any number


# Operators ------------------------------------------------------------------------------------


@cache
def operator_values() -> dict[str, dict[str, np.ndarray]]:
    """Random operands of each operator, by the graph's names."""
    rng = np.random.default_rng(0)
    result = {}
    for name, (node, types) in OPERATORS.items():
        tensors = alone(node, types).tensors
        result[name] = {operand: _values(tensors[operand], rng) for operand in node.inputs}
    return result


def _values(kind, rng: np.random.Generator) -> np.ndarray:
    if kind.dtype == F:
        return (rng.standard_normal(kind.physical) * 3).astype(F)
    limits = np.iinfo(kind.dtype)
    return rng.integers(limits.min, limits.max, kind.physical, kind.dtype, endpoint=True)


def operators(processor: Processor) -> tuple[Module, Arrays, dict[str, str]]:
    """A module of all operators, its inputs, and the tensor with each one's result."""
    functions, inputs, results = [], {}, {}
    for n, (name, (node, types)) in enumerate(OPERATORS.items()):
        kernel = node_function(node, alone(node, types), f"f{n}", processor)
        given = {**operator_values()[name], **kernel.constants}
        functions.append(kernel.func)
        *params, _ = kernel.func.params
        for at, (operand, param) in enumerate(zip(kernel.args, params, strict=False)):
            inputs[f"f{n}.{at}"] = given[operand].reshape(param.shape)
        results[name] = f"f{n}.{len(params)}"
    return module_of(functions, processor), inputs, results


@cache
def operators_here() -> dict[str, np.ndarray]:
    """Results of the operators on this machine."""
    module, inputs, results = operators(NATIVE)
    outputs = Executor(module).run(inputs).outputs
    return {name: outputs[tensor] for name, tensor in results.items()}


# Expressions ----------------------------------------------------------------------------------


def expressions() -> list[PrimFunc]:
    """Functions of expressions that call nothing whose results depend on a library."""
    calls = (*LIBRARY_CALLS, *ARITHMETIC, "pow", "fma")
    return [func for func in all_expressions() if func.name.partition(".")[0] not in calls]


@cache
def expression_values() -> Arrays:
    """Operands for which each expression is defined: no division by zero, no shift too far."""
    module, rng = module_of(expressions(), NATIVE), np.random.default_rng(0)
    return {name: _operand(name, module.tensors[name], rng) for name in module.inputs}


def _operand(name: str, info: TensorInfo, rng: np.random.Generator) -> np.ndarray:
    op, first, *rest = name.split(".")
    if info.dtype == "bool":
        return rng.integers(0, 2, info.shape).astype(bool)
    if info.dtype.startswith("float"):
        x = rng.uniform(0.1, 0.9, info.shape)
        if op in SPREAD:
            x = (x - 0.5) * 60
        x = (abs(x) if first.startswith("uint") else x).astype(info.dtype)
        if op in SIGNED_ZEROS:
            x[: len(SPECIAL)], x[len(SPECIAL) : 2 * len(SPECIAL)] = (
                SPECIAL,
                rng.permutation(SPECIAL),
            )
        return x
    limits = np.iinfo(info.dtype)
    x = rng.integers(limits.min, limits.max, info.shape, info.dtype, endpoint=True)
    second = rest[-1:] == ["1"]
    if op in ("shl", "shr") and second:
        x = rng.integers(0, 7, info.shape).astype(info.dtype)
    if op in ("floordiv", "floormod") and second:
        x[(x == 0) | (x == x.dtype.type(-1 if limits.min else 0))] = 3
    return np.maximum(abs(x), 1) if op in ("reciprocal", "rsqrt") else x


@cache
def expressions_here() -> Arrays:
    """Results of the expressions on this machine."""
    return Executor(module_of(expressions(), NATIVE)).run(expression_values()).outputs


# Comparison -----------------------------------------------------------------------------------


def check_equal(actual: Arrays, expected: Arrays, close: Sequence[str] = ()) -> None:
    """Every bit is equal, but for NaN's; floats of the ``close`` are within 1e-5."""
    for name, want in expected.items():
        got = actual[name].reshape(want.shape)
        assert got.dtype == want.dtype
        if name in close:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)
            continue
        np.testing.assert_array_equal(got, want, err_msg=name)
        if want.dtype.kind == "f":
            number = ~np.isnan(want)  # 0.0 is not -0.0
            np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]), name)
