"""Sizes that no machine holds, refused before anything of them is made.

A result's shape comes from ONNX's own inference, which knows what a node's constants say (repeats,
pads, scales); converters may make tables as long as a result's dimensions.
"""

from __future__ import annotations

from math import prod
from typing import Any

import onnx

from vdla.compiler.frontend.draft import Draft, has_graphs
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.node import OnnxNode
from vdla.runtime.dtypes import dtype_of

MOST_ELEMENTS = (1 << 31) - 1  # indices in compiled code are int32
FEW = 1 << 12  # elements of a constant that may say a shape


def check_size(where: str, shape: tuple[int, ...], dtype: str) -> None:
    """Raises ModelError where a tensor has more elements than indices reach."""
    if prod(shape) > MOST_ELEMENTS:
        size = prod(shape) * dtype_of(dtype).itemsize
        raise ModelError(
            where,
            f"a tensor of at most {MOST_ELEMENTS:,} elements",
            f"{dtype}{list(shape)}, {size:,} bytes",
        )


def check_results(view: OnnxNode) -> None:
    """Raises ModelError where a result of an ONNX node would have too many elements.

    What ONNX's inference doesn't know is left to those who make it.
    """
    for name, kind in inferred_kinds(view).items():
        tensor = kind.tensor_type
        dims = [d.dim_value for d in tensor.shape.dim if d.HasField("dim_value")]
        if tensor.HasField("shape") and len(dims) == len(tensor.shape.dim):
            where = f"{view.where}: result {name}"
            check_size(where, tuple(dims), view.draft.dtype(tensor.elem_type))


def inferred_kinds(view: OnnxNode) -> dict[str, Any]:
    """The types of a node's results by name, as far as ONNX infers them."""
    draft, node = view.draft, view.proto
    if has_graphs(node):  # inference of what they read from outside may end the process
        return {}
    names = {n: draft.alias.get(n, n) for n in node.input if n}
    try:
        kinds = {n: _kind_of(draft, of) for n, of in names.items()}
        values = {
            n: onnx.numpy_helper.from_array(draft.constants[of])
            for n, of in names.items()
            if of in draft.constants and draft.constants[of].size <= FEW
        }
        schema = onnx.defs.get_schema(node.op_type, draft.opset, node.domain)
        opsets = [onnx.helper.make_opsetid("", draft.opset)]
        result = onnx.shape_inference.infer_node_outputs(
            schema, node, kinds, values, opset_imports=opsets
        )
    except Exception:  # it knows no such operator, or refuses what the importer will refuse
        return {}
    return dict(result)


def _kind_of(draft: Draft, name: str) -> onnx.TypeProto:
    """A tensor's type; of one of open size, as far as it is known."""
    if name in draft.open:
        known = draft.open[name].kind
        return known if known is not None else onnx.TypeProto()
    kind = draft.tensors[name]
    code = onnx.helper.np_dtype_to_tensor_dtype(dtype_of(kind.dtype))
    return onnx.helper.make_tensor_type_proto(code, kind.shape)
