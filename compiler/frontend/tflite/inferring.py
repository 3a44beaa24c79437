"""Shapes of tensors whose sizes the file leaves open, by ONNX's own inference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.tflite.contents import COMPLEX, Tensor
from vdla.compiler.frontend.tflite.drafting import FOLDED, OPSET, Draft, names_read
from vdla.compiler.frontend.tflite.layout import TO_FILE, Layout
from vdla.runtime.dtypes import dtype_of


def note_input(draft: Draft, value: onnx.ValueInfoProto) -> None:
    """Notes the type and shape of an input, which shapes behind it follow from."""
    draft.whole.kinds[value.name] = value


def settle(draft: Draft, indices: Iterable[int], mark: int) -> None:
    """Gives an operator's results the shapes that follow from its operands'.

    Args:
        draft: the graph; nothing is done where its file leaves no size open.
        indices: numbers of the results.
        mark: number of the first node that the operator has added.
    """
    if not draft.is_open:
        return
    _infer(draft, mark)
    for tensor in (draft.tensors[index] for index in indices):
        shape = _shape_of(draft, tensor)
        if shape is not None:
            draft.settle(tensor, shape)


def _infer(draft: Draft, mark: int) -> None:
    """Notes the types and shapes of what new nodes make, as far as ONNX infers them."""
    nodes, kinds = draft.nodes[mark:], draft.whole.kinds
    read = {name for node in nodes for name in names_read(node)}
    constants = {n: a for n, a in draft.constants.items() if n in read}
    inputs = [kinds[name] for name in sorted(read - constants.keys()) if name in kinds]
    known = []
    for name, array in constants.items():
        if array.size <= FOLDED and array.dtype.kind in "iu":
            known.append(numpy_helper.from_array(array, name))
        else:
            code = helper.np_dtype_to_tensor_dtype(dtype_of(str(array.dtype)))
            inputs.append(helper.make_tensor_value_info(name, code, array.shape))
    made = [name for node in nodes for name in node.output]
    ends = [helper.make_empty_tensor_value_info(name) for name in made]
    graph = helper.make_graph(nodes, "shapes", inputs, ends, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # it raises its own kinds of errors at what the importer will refuse
        return
    kinds.update({value.name: value for value in inferred.graph.output})


def _shape_of(draft: Draft, tensor: Tensor) -> tuple[int, ...] | None:
    """A tensor's shape in the file's order; None where it depends on data."""
    if (array := draft.value_of(tensor)) is not None:
        return array.shape
    for layout in Layout:
        value = draft.whole.kinds.get(draft.holding(tensor, layout) or "")
        if value is None or not value.type.tensor_type.HasField("shape"):
            continue
        dims = value.type.tensor_type.shape.dim
        if all(dim.HasField("dim_value") for dim in dims):
            shape = tuple(int(dim.dim_value) for dim in dims)
            if tensor.dtype == COMPLEX:
                return shape[:-1]
            return tuple(shape[axis] for axis in TO_FILE) if layout is Layout.FIRST else shape
    return None


def sized(tensor: Tensor, given: Mapping[str, object], where: str) -> tuple[int, ...]:
    """The shape of an input: the file's, with sizes that the user gives for open ones.

    Args:
        tensor: the input.
        given: shapes by the names of inputs; sizes that are open and not given are the file's,
            which are 1 unless it says otherwise.
        where: opens the error.

    Raises:
        ModelError: another number of sizes is given, or a size that isn't open.
    """
    shape = given.get(tensor.name)
    if shape is None:
        return tensor.shape
    sizes = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    fixed = [size for size in tensor.signature if size >= 0]
    kept = [b for a, b in zip(tensor.signature, sizes, strict=False) if a >= 0]
    if len(sizes) != len(tensor.signature) or kept != fixed:
        expected = ", ".join("any" if size < 0 else str(size) for size in tensor.signature)
        raise ModelError(f"{where}: input {tensor.name}", f"sizes {expected}", list(sizes))
    return sizes
