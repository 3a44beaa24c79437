"""GEMM as tensor intrinsics: the product of a vector and a tile of weights, from a beginning."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vdla.compiler import te
from vdla.compiler.targets.accelerator.description.declared import Declared, Maker
from vdla.compiler.targets.accelerator.description.lowering import Emit, Lowering, declare
from vdla.compiler.targets.accelerator.description.memory import ACC, INP, WGT
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.instructions import Gemm, Init


def from_bias(*, inplace: bool = False) -> Maker:
    """From a bias; ``inplace``: from what lies at the result's place, where the bias is that."""

    def make(name: str, config: Config) -> TensorIntrin:
        bias = te.placeholder((config.block_out,), "int32", "bias")
        roles = {"acc": "acc", "inp": "inp", "wgt": "wgt", "bias": "bias"}
        emit = Emit(Gemm, {"init": Init.BIAS}, roles)
        lowering = Lowering((emit,), inplace="bias" if inplace else "")
        return _product(name, lambda o: bias[o], {bias: ACC}, lowering, config)

    return make


def from_zero(name: str, config: Config) -> TensorIntrin:
    """From 0."""
    emit = Emit(Gemm, {"init": Init.ZERO}, {"acc": "acc", "inp": "inp", "wgt": "wgt"})
    return _product(name, lambda o: te.const(0), {}, Lowering((emit,)), config)


def _product(
    name: str,
    start: Callable[[Expr], Expr],
    scopes: Mapping[Tensor, str],
    lowering: Lowering,
    config: Config,
) -> TensorIntrin:
    bi, bo = config.block_in, config.block_out
    inp, wgt = te.placeholder((bi,), "int8", "inp"), te.placeholder((bo, bi), "int8", "wgt")
    i = te.reduce_axis((0, bi), "i")
    acc = te.compute(
        (bo,),
        lambda o: te.sum(
            inp[i].astype("int32") * wgt[o, i].astype("int32"), axis=[i], init=start(o)
        ),
        "acc",
    )
    return declare(name, acc, (), {acc: ACC, inp: INP, wgt: WGT, **scopes}, lowering, config)


PRODUCTS = (
    Declared("gemm", "matrix–vector product, from a bias", from_bias()),
    Declared("gemm_acc", "matrix–vector product, on what lies there", from_bias(inplace=True)),
    Declared("gemm_zero", "matrix–vector product, from 0", from_zero),
)
