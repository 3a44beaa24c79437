"""Tensor expressions, with TVM's names: ``placeholder``, ``compute``, ``reduce_axis``, ``sum`` ...

Tensors are computed from tensors. ``create_prim_func`` makes the loop IR of them, and
``schedule.create_schedule`` a schedule that transforms it::

    A = te.placeholder((64, 64), "int8", "A")
    B = te.placeholder((64, 64), "int8", "B")
    k = te.reduce_axis((0, 64), "k")
    C = te.compute((64, 64), lambda y, x: te.sum(
        A[y, k].astype("int32") * B[k, x].astype("int32"), axis=k), "C")
    s = create_schedule(C)
    yo, yi = s[C].split(C.axis[0], factor=8)
"""

from __future__ import annotations

from vdla.compiler.te import ir_builder
from vdla.compiler.te.assemble import AssembleOp, assemble
from vdla.compiler.te.extern import ExternOp, extern
from vdla.compiler.te.func import build, create_prim_func
from vdla.compiler.te.intrin import decl_intrin, param
from vdla.compiler.te.math import (
    abs,
    acos,
    acosh,
    all,
    any,
    asin,
    asinh,
    atan,
    atanh,
    cos,
    cosh,
    equal,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    fma,
    if_then_else,
    log,
    not_equal,
    power,
    reciprocal,
    requantize,
    rint,
    rq,
    rsqrt,
    scale_word,
    select,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from vdla.compiler.te.reduce import (
    CommReducer,
    comm_reducer,
    max,
    max_value,
    maximum,
    min,
    min_value,
    minimum,
    prod,
    sum,
)
from vdla.compiler.te.scan import ScanOp, scan
from vdla.compiler.te.size import var
from vdla.compiler.te.tensor import (
    ComputeOp,
    IterVar,
    Operation,
    TEError,
    Tensor,
    ThreadAxis,
    compute,
    placeholder,
    producers,
    reduce_axis,
    thread_axis,
)
from vdla.compiler.tir.ir import cast, const
from vdla.compiler.tir.ir.intrin import Laws

__all__ = [
    "AssembleOp",
    "CommReducer",
    "ComputeOp",
    "ExternOp",
    "IterVar",
    "Laws",
    "Operation",
    "ScanOp",
    "TEError",
    "Tensor",
    "ThreadAxis",
    "abs",
    "acos",
    "acosh",
    "all",
    "any",
    "asin",
    "asinh",
    "assemble",
    "atan",
    "atanh",
    "build",
    "cast",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "cosh",
    "create_prim_func",
    "decl_intrin",
    "equal",
    "erf",
    "exp",
    "extern",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "if_then_else",
    "ir_builder",
    "log",
    "max",
    "max_value",
    "maximum",
    "min",
    "min_value",
    "minimum",
    "not_equal",
    "param",
    "placeholder",
    "power",
    "prod",
    "producers",
    "reciprocal",
    "reduce_axis",
    "requantize",
    "rint",
    "rq",
    "rsqrt",
    "scale_word",
    "scan",
    "select",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "thread_axis",
    "var",
]
