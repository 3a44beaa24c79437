"""Fake quantizers of a program, as a quantizer and a dequantizer.

Training with quantization in mind (``torch.ao.quantization``, torchao's QAT) puts one operator
where inference has two::

    fake_quantize_per_tensor_affine(x, scale, zero, low, high)      scale, zero: numbers or tensors
    fake_quantize_per_channel_affine(x, scales, zeros, axis, low, high)
    fused_moving_avg_obs_fake_quant(x, observe, quantize, …)        observes as it runs

``split_fake_quantizers`` brings all of them into the form that PT2E has: ``quantize_per_…`` and
``dequantize_per_…`` of ``torch.ops.quantized_decomposed``. What a quantizer has observed so far is
what counts; it observes no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # makes the operators

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.pytorch.sources import place_of

ATEN, PT2E = torch.ops.aten, torch.ops.quantized_decomposed
FUSED = (ATEN.fused_moving_avg_obs_fake_quant.default,)
PER_TENSOR = (
    ATEN.fake_quantize_per_tensor_affine.default,
    ATEN.fake_quantize_per_tensor_affine.tensor_qparams,
)
PER_CHANNEL = (ATEN.fake_quantize_per_channel_affine.default,)
DTYPES = ((-128, 127, torch.int8), (0, 255, torch.uint8), (-(2**15), 2**15 - 1, torch.int16))


def split_fake_quantizers(program: torch.export.ExportedProgram, where: str) -> None:
    """Replaces every fake quantizer of a program, in place.

    Raises:
        ModelError: a range that is none of int8, uint8 or int16; names module and line.
    """
    tensors = _Tensors(program)
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in (*FUSED, *PER_TENSOR, *PER_CHANNEL):
            with graph.inserting_before(node):
                result = _split(graph, node, tensors, where)
            node.replace_all_uses_with(result)
            program.graph_signature.replace_all_uses(node.name, result.name)
            graph.erase_node(node)
    program.graph_module.recompile()


class _Tensors:
    """Values of a program's parameters, buffers and constants, by the nodes that stand for them."""

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        signature = program.graph_signature
        names = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        stored = {**program.constants, **program.state_dict}
        self.values = {node: stored[name] for node, name in names.items() if name in stored}

    def value(self, argument: Any) -> Any:
        """An operand's value where it is known; None for what a run computes."""
        if isinstance(argument, torch.fx.Node):
            return self.values.get(argument.name)
        return argument


def _split(
    graph: torch.fx.Graph, node: torch.fx.Node, tensors: _Tensors, where: str
) -> torch.fx.Node:
    """The result of the two operators in the place of a fake quantizer; its operand, where it is
    disabled."""
    x, *arguments = node.args
    if node.target in FUSED:
        _observe, active, _, _, scale, zero, _, low, high, axis, *rest = arguments
        enabled = tensors.value(active)
        if enabled is not None and not bool(enabled):
            return x
        per_channel = bool(rest and rest[0]) or "per_row_fake_quant" in node.kwargs
    elif node.target in PER_CHANNEL:
        scale, zero, axis, low, high = arguments
        per_channel = True
    else:
        # of the form of tensors there is one more: fake_quant_enabled follows in another operator
        scale, zero, low, high = arguments[:4]
        axis, per_channel = None, False
    dtype = _dtype(low, high, f"{where}: {place_of(node)}")
    known = [tensors.value(scale), tensors.value(zero)]
    if per_channel:
        quantize, dequantize = (
            PT2E.quantize_per_channel.default,
            PT2E.dequantize_per_channel.default,
        )
        details: Sequence[Any] = (scale, zero, axis, low, high, dtype)
    elif all(value is not None for value in known):
        quantize, dequantize = PT2E.quantize_per_tensor.default, PT2E.dequantize_per_tensor.default
        details = (float(known[0]), int(known[1]), low, high, dtype)
    else:
        quantize, dequantize = PT2E.quantize_per_tensor.tensor, PT2E.dequantize_per_tensor.tensor
        details = (scale, zero, low, high, dtype)
    integers = graph.call_function(quantize, (x, *details))
    result = graph.call_function(dequantize, (integers, *details))
    for new in (integers, result):
        new.meta = {key: node.meta[key] for key in node.meta if key != "val"}
    integers.meta["val"] = node.meta["val"].to(dtype)
    result.meta["val"] = node.meta["val"]
    return result


def _dtype(low: Any, high: Any, where: str) -> torch.dtype:
    """The narrowest dtype that holds a range."""
    for least, most, dtype in DTYPES:
        if least <= low and high <= most:
            return dtype
    raise ModelError(where, "a range within int8, uint8 or int16", f"{low} to {high}")
