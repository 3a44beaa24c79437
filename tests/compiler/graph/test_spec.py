"""Which kinds of nodes a graph may hold after each pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from qdq import QdqModel

from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.attention import QAttention
from vdla.compiler.graph.passes import PIPELINE, optimize
from vdla.compiler.graph.spec import MADE, Pass, Spec, spec_of, unfused
from vdla.compiler.graph.types import TensorType


def network():
    """A convolution with a residual."""
    m = QdqModel(3)
    x = m.input("x", (1, 8, 8, 8))
    m.output(m.add(m.conv(x, 8, 1), x, "Relu"))
    return import_model(m.model())


def test_what_a_pass_adds_may_exist_from_it_on():
    spec = Spec()
    for each in PIPELINE:
        spec = spec.after(each)
        assert each.adds <= spec.made
    assert spec.name == "join_external"
    of_targets = {ops.Pack, ops.Unpack, ops.Im2col, ops.Fused, QAttention, ops.TableStep}
    assert spec.made == MADE - of_targets


def test_a_pass_that_leaves_what_it_may_not_is_named():
    graph = optimize(network())
    assert verify(graph, spec_of(graph)) is graph
    message = (
        "after early: expected no kinds of nodes that passes make but none, "
        r"found .* \(QConv2d\)"
    )
    with pytest.raises(GraphError, match=message):
        verify(graph, Spec("early"))
    made = Pass("early", lambda graph: graph, adds=frozenset((ops.QConv2d,)))
    with pytest.raises(GraphError, match=r"that passes make but QConv2d, found .*AddStep"):
        verify(graph, Spec().after(made))


def test_optimize_checks_it():
    passes = [replace(each, adds=frozenset()) for each in PIPELINE]
    with pytest.raises(GraphError, match=r"after fuse_qdq: expected no kinds"):
        optimize(network(), passes)


def test_parts_of_fused_nodes_count():
    graph = network()
    (first, *_) = graph.nodes
    part = ops.Pack(name="pack", output=first.output, data=first.inputs[0], block=4)
    fused = ops.Fused(name="f", output=part.output, operands=(part.data,), parts=(part,))
    nodes = (fused, *graph.nodes[1:])
    assert next(unfused(nodes)) is part
    spec = Spec("fuse", frozenset((ops.Fused,)))
    with pytest.raises(GraphError, match=r"but Fused, found pack \(Pack\)"):
        spec.check(replace(graph, nodes=nodes))
    assert spec_of(replace(graph, nodes=nodes)).made == {ops.Fused, ops.Pack}


def test_blocks_of_channels_need_a_pass_that_makes_them():
    graph = network()
    kind = TensorType((1, 8, 8, 8), "int8", block=4)
    blocked = replace(graph, tensors={**graph.tensors, "b": kind})
    with pytest.raises(GraphError, match=r"expected images as \[N, C, H, W\], found b in blo"):
        Spec("fold").check(blocked)
    Spec("fold").after(Pass("layout", lambda graph: graph, blocks=True)).check(blocked)
