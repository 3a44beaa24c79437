"""Operators that run other subgraphs: IF, WHILE, CALL_ONCE; and variables, which are state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx
from onnx import helper

from vdla.compiler.frontend.tflite.contents import Subgraph, Tensor
from vdla.compiler.frontend.tflite.drafting import CODES, Draft
from vdla.compiler.frontend.tflite.operator import FILE, FIRST, View, converts
from vdla.compiler.frontend.tflite.translating import convert_all
from vdla.compiler.frontend.tflite.whole import Variable

# Branches and loops -------------------------------------------------------------------------------


@converts("IF")
def _if(view: View) -> None:
    """Operands: a condition, then those of either subgraph."""
    branches = {}
    for name, option in (
        ("then_branch", "ThenSubgraphIndex"),
        ("else_branch", "ElseSubgraphIndex"),
    ):
        inner = _subgraph(view, option, view.count - 1)
        draft = Draft(view.draft.whole, inner)
        for position, index in enumerate(inner.inputs):
            _hand_over(view, position + 1, draft, inner.tensors[index])
        convert_all(draft)
        branches[name] = _graph(draft, [], draft.subgraph.outputs)
    _results(view, "If", [view.stored(0)], branches)


@converts("WHILE")
def _while(view: View) -> None:
    """A loop over all operands: a subgraph decides whether another one runs once more."""
    condition = _subgraph(view, "CondSubgraphIndex", view.count)
    body = _subgraph(view, "BodySubgraphIndex", view.count)
    state = [view.stored(index) for index in range(view.count)]
    outer = view.draft
    first = _decided(outer, condition, state)
    names = outer.names
    draft = Draft(outer.whole, body)
    inputs = [
        helper.make_tensor_value_info(names.fresh("turn"), onnx.TensorProto.INT64, []),
        helper.make_tensor_value_info(names.fresh("before"), onnx.TensorProto.BOOL, []),
    ]
    for index in body.inputs:
        tensor = body.tensors[index]
        inputs.append(draft.add_input(tensor, names.fresh(f"{draft.own[index]}.state")))
    outer.whole.kinds |= {value.name: value for value in inputs}
    convert_all(draft)
    ends = [_end(draft, draft.tensors[index]) for index in body.outputs]
    again = _decided(draft, condition, [value.name for value in ends])
    outputs = [helper.make_tensor_value_info(again, onnx.TensorProto.BOOL, []), *ends]
    graph = helper.make_graph(draft.nodes, "body", inputs, outputs, draft.initializers())
    _results(view, "Loop", ["", first, *state], {"body": graph})


def _decided(draft: Draft, condition: Subgraph, state: Sequence[str]) -> str:
    """The name of a truth value that a subgraph computes, its nodes among those of a draft."""
    inner = Draft(draft.whole, condition, draft.nodes, draft.constants)
    for index, name in zip(condition.inputs, state, strict=True):
        inner.put_stored(condition.tensors[index], name)
    convert_all(inner)
    value = _end(inner, condition.tensors[condition.outputs[0]])
    return inner.emit("Reshape", [value.name, inner.integers([])])


def _subgraph(view: View, option: str, inputs: int) -> Subgraph:
    """The subgraph that an option names, which takes some number of operands.

    Raises:
        ModelError: there is none, it takes others, or it is one of those that lead here.
    """
    graphs, index = view.draft.whole.contents.subgraphs, view.integer(option, -1)
    if not 0 <= index < len(graphs):
        raise view.error(f"one of {len(graphs)} subgraphs", index)
    if index in view.draft.whole.active:
        raise view.error("subgraphs that don't contain themselves", f"subgraph {index} in itself")
    if len(graphs[index].inputs) != inputs:
        raise view.error(f"a subgraph of {inputs} operands", len(graphs[index].inputs))
    return graphs[index]


def _hand_over(view: View, position: int, draft: Draft, tensor: Tensor) -> None:
    """Makes an operand the tensor of an inner subgraph."""
    outer = view.tensor(position)
    draft.is_open |= view.draft.is_open
    if draft.is_open:
        draft.settle(tensor, outer.shape)
    if outer.index in view.draft.handles:
        draft.handles[tensor.index] = view.draft.handles[outer.index]
        return
    if (array := view.known(position)) is not None:
        draft.known[tensor.index] = array
    draft.put_stored(tensor, view.stored(position))


def _graph(
    draft: Draft, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[int]
) -> onnx.GraphProto:
    ends = [_end(draft, draft.tensors[index]) for index in outputs]
    name = draft.subgraph.name or "branch"
    return helper.make_graph(draft.nodes, name, inputs, ends, draft.initializers())


def _end(draft: Draft, tensor: Tensor) -> onnx.ValueInfoProto:
    """A result of an inner graph, under a name of its own."""
    name = draft.names.fresh(f"{draft.own[tensor.index]}.result")
    draft.end(tensor, name)
    if tensor.open:
        return helper.make_tensor_value_info(name, CODES[tensor.dtype], None)
    return draft.value_info(tensor, name)


def _results(
    view: View, op_type: str, operands: Sequence[str], graphs: dict[str, onnx.GraphProto]
) -> None:
    """Adds a node that holds graphs, and makes its results the operator's."""
    draft = view.draft
    outputs = [view.result(index) for index in range(len(view.operator.outputs))]
    counts = {len(graph.output) - (op_type == "Loop") for graph in graphs.values()}
    if counts != {len(outputs)}:
        raise view.error(f"subgraphs of {len(outputs)} results", sorted(counts))
    names = [draft.names.fresh(f"{draft.own[t.index]}.{op_type.lower()}") for t in outputs]
    draft.emit_all(op_type, operands, names, **graphs)
    for tensor, name in zip(outputs, names, strict=True):
        draft.put_stored(tensor, name)


# Variables ----------------------------------------------------------------------------------------


@converts("CALL_ONCE")
def _call_once(view: View) -> None:
    """A subgraph that gives variables their first values, which have to be constants."""
    inner = _subgraph(view, "InitSubgraphIndex", 0)
    draft = Draft(view.draft.whole, inner)
    for operator in inner.operators:
        each = View(draft, operator)
        if operator.name == "VAR_HANDLE":
            _handle(each)
        elif operator.name == "ASSIGN_VARIABLE":
            value = each.constant(1, "a variable's first value")
            draft.whole.initial[_variable_name(each)] = value
        else:
            raise each.unsupported("first values of variables", operator.name)


@converts("VAR_HANDLE")
def _handle(view: View) -> None:
    """A variable's name, in its container."""
    container, name = (view.operator.options.get(each) for each in ("Container", "SharedName"))
    parts = [
        each.decode("utf-8", "replace") for each in (container, name) if isinstance(each, bytes)
    ]
    view.draft.handles[view.result().index] = "/".join(filter(None, parts)) or "variable"


@converts("READ_VARIABLE")
def _read_variable(view: View) -> None:
    variable = _variable(view, view.result())
    view.draft.put_stored(view.result(), variable.current, variable.layout)


@converts("ASSIGN_VARIABLE")
def _assign_variable(view: View) -> None:
    """The variable's value from here on, and for the next run."""
    variable = _variable(view, view.tensor(1))
    variable.current = view.stored(1, variable.layout)
    variable.output = variable.output or view.draft.names.fresh(f"{variable.input}.next")


def _variable(view: View, tensor: Tensor) -> Variable:
    """The variable that the first operand stands for; it is an input of the model."""
    whole, name = view.draft.whole, _variable_name(view)
    if len(whole.active) > 1:
        raise view.unsupported("variables in the main subgraph", "one in a branch or a loop")
    if name not in whole.variables:
        initial = whole.initial.get(name)
        wanted = tensor.dtype, tensor.shape
        if initial is not None and (str(initial.dtype), initial.shape) != wanted:
            kind = f"{initial.dtype}{list(initial.shape)}"
            raise view.error(f"a first value of {tensor.dtype}{list(tensor.shape)}", kind)
        own = whole.names.fresh(name)
        layout = FIRST if tensor.index in view.draft.images else FILE
        first = None if initial is None else layout.array(initial)
        kept = replace(tensor, data=None)
        whole.kinds[own] = view.draft.value_info(kept, own, layout)
        whole.variables[name] = Variable(kept, layout, own, first, own)
    return whole.variables[name]


def _variable_name(view: View) -> str:
    name = view.draft.handles.get(view.tensor(0).index)
    if name is None:
        raise view.error("a VAR_HANDLE before it", "none")
    return name
