"""Products of matrices: dense layers and products of batches."""

from __future__ import annotations

from vdla.compiler.frontend.tflite.layout import Layout
from vdla.compiler.frontend.tflite.operator import FILE, FLAT, View, converts
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
    inputs = view.shape(1)[1]
    shape = view.shape(0)
    if not inputs or view.tensor(0).elements % inputs:
        raise view.error(f"data in rows of {inputs}", list(shape))
    kept = view.flag("KeepNumDims") and len(shape) > 2
    if kept:
        product = view.emit("MatMul", [view.real(0), weights(view, 1, (1, 0))])
        if view.has(2):
            product = view.emit("Add", [product, bias(view, 2, 0, 1)])
        view.finish(product)
        return
    if len(shape) == 2 and shape[1] == inputs:
        data = view.real(0, _order(view))
    else:
        data = view.moved(0, "Reshape", view.integers_of((-1, inputs)))
    operands = [data, _rows(view)]
    if view.has(2):
        operands.append(bias(view, 2, 0, 1))
    product = view.emit("Gemm", operands, transB=1)
    if len(view.result().shape) != 2:
        product = view.emit("Reshape", [product, view.integers_of(view.result().shape)])
    view.finish(product)


def _order(view: View) -> Layout:
    """The order of data that were an image; its weights have to be known to be put in it, too."""
    flat = view.draft.holding(view.tensor(0), FLAT) is not None
    whole = view.shape(0)[-1] == view.shape(1)[1]
    return FLAT if flat and whole and view.known(1) is not None else FILE


def _rows(view: View) -> str:
    """The weights, their columns in the order of the data."""
    array, tensor = view.known(1), view.tensor(0)
    if array is None or _order(view) is not FLAT:
        return weights(view, 1, (0, 1))
    channels, rows, columns = view.draft.flattened[tensor.index]
    images = array.reshape(-1, rows, columns, channels).transpose(0, 3, 1, 2)
    axis = view.tensor(1).axis if view.tensor(1).scale.size > 1 else None
    return view.draft.rearranged(view.tensor(1), images.reshape(array.shape), axis)


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
