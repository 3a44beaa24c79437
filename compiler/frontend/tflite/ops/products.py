"""Products of matrices: dense layers and products of batches."""

from __future__ import annotations

from vdla.compiler.frontend.tflite.operator import View, converts
from vdla.compiler.frontend.tflite.ops.sliding import bias, weights
from vdla.compiler.frontend.tflite.schema import word


@converts("FULLY_CONNECTED")
def _dense(view: View) -> None:
    """[O, K] weights; data of any shape are rows of K."""
    if (form := word("FullyConnectedOptionsWeightsFormat", view.integer("WeightsFormat"))) not in (
        "DEFAULT",
        "",
    ):
        raise view.unsupported("weights in the order DEFAULT", form)
    if view.rank(1) != 2:
        raise view.error("weights of shape [O, K]", list(view.shape(1)))
    outputs, inputs = view.shape(1)
    shape, data = view.shape(0), view.real(0)
    if not inputs or view.tensor(0).elements % inputs:
        raise view.error(f"data in rows of {inputs}", list(shape))
    kept = view.flag("KeepNumDims") and len(shape) > 2
    if kept:
        product = view.emit("MatMul", [data, weights(view, 1, (1, 0))])
        if view.has(2):
            product = view.emit("Add", [product, bias(view, 2, 0, 1)])
        view.finish(product)
        return
    if len(shape) != 2 or shape[1] != inputs:
        data = view.emit("Reshape", [data, view.integers_of((-1, inputs))])
    operands = [data, weights(view, 1, (0, 1))]
    if view.has(2):
        operands.append(bias(view, 2, 0, 1))
    product = view.emit("Gemm", operands, transB=1)
    if len(view.result().shape) != 2:
        product = view.emit("Reshape", [product, view.integers_of(view.result().shape)])
    view.finish(product)


@converts("BATCH_MATMUL")
def _batches(view: View) -> None:
    """A product of matrices, each of which may be transposed first."""
    operands = []
    for index, name in enumerate(("AdjX", "AdjY")):
        rank = view.rank(index)
        if rank < 2:
            raise view.error("matrices", list(view.shape(index)))
        perm = (*range(rank - 2), rank - 1, rank - 2)
        turned = view.flag(name)
        operands.append(weights(view, index, perm) if turned else view.real(index))
    view.finish(view.emit("MatMul", operands))
