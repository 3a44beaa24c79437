"""State that a program changes: its buffers, and its arguments.

PyTorch says which a run changes only of a program without operators that write in place. Making
one takes as long as a capture, so that only programs with such operators are looked into.
"""

from __future__ import annotations

from operator import getitem

import torch
from torch.export.graph_signature import OutputKind

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.pytorch.sources import place_of

ATEN = torch.ops.aten
CHANGES = {
    OutputKind.BUFFER_MUTATION: "buffer",
    OutputKind.PARAMETER_MUTATION: "parameter",
    OutputKind.USER_INPUT_MUTATION: "argument",
}
NORMS = (ATEN.batch_norm.default, ATEN.instance_norm.default)
STATISTICS, TRAINING = 3, 5  # arguments of both
# Operators that return their argument as it is, where there is nothing to do.
SAME = ("contiguous", "reshape", "flatten", "to", "expand_as", "view_as", "type_as")


def check_state(program: torch.export.ExportedProgram, where: str) -> None:
    """Raises ModelError where a run changes more than its results; names module and line."""
    if not any(map(_changes_state, program.graph.nodes)):
        return
    program = program.run_decompositions({})
    for output in program.graph_signature.output_specs:
        if output.kind in CHANGES:
            node = next(n for n in program.graph.nodes if n.name == output.arg.name)
            if node.target is getitem:
                (node,) = node.all_input_nodes
            actual = f"{CHANGES[output.kind]} {output.target}, changed by {place_of(node)}"
            raise ModelError(where, "a module without state that a run changes", actual)


def _changes_state(node: torch.fx.Node) -> bool:
    """Whether an operator may write into what the program is given."""
    if node.op != "call_function":
        return False
    if node.target in NORMS:
        return bool(node.args[TRAINING]) and node.args[STATISTICS] is not None
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return False
    written = [
        value
        for argument, value in zip(schema.arguments, node.args, strict=False)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    return any(isinstance(value, torch.fx.Node) and _is_given(value) for value in written)


def _is_given(node: torch.fx.Node) -> bool:
    """Whether a tensor may share the memory of what the program is given."""
    while node.op == "call_function" and _may_share(node):
        node = next((n for n in node.all_input_nodes), node)
    return bool(node.op == "placeholder")


def _may_share(node: torch.fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    if schema is None or not node.all_input_nodes:
        return bool(node.all_input_nodes)  # an element of several results
    shared = any(result.alias_info is not None for result in schema.returns)
    return shared or str(schema.name).removeprefix("aten::") in SAME
