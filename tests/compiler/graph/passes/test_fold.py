"""Factors and offsets of channels: which ones weights take in, and the same numbers as without."""

from __future__ import annotations

import numpy as np
import pytest
from floats import Net
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.passes.fold import fold_scales, merge_duplicates
from vdla.compiler.graph.reference import evaluate

CHANNELS = 3
WHOLE = (1, CHANNELS, 1, 1), (CHANNELS, 1, 1)  # one value of each channel
SINGLE = (1, 1, 1, 1), (1, 1), (1,), ()  # one value of all of them
TURNED = "add", "mul"  # what may have its constant on either side


def convolution(bias=True, **fields):
    """A network of one convolution of an image 6 x 5, and its result's name."""
    net = Net(2, 4, 6, 5)
    own = net.constant(CHANNELS) if bias else None
    weight = net.constant(CHANNELS, 4, 2, 2)
    return net, net.add(ops.Conv2d, data="x", weight=weight, bias=own, **fields)


def scale(net, *shape):
    """A constant that isn't near 0, so that it divides as well."""
    name = net.constant(*shape)
    value = net.constants[name]
    net.constants[name] = (value + np.copysign(0.5, value)).astype(np.float32)
    return name


def kinds(graph):
    return [node.op for node in fold_scales(graph).nodes]


def check(graph, left=1):
    """So many operators are left, and they compute what all did."""
    folded = verify(fold_scales(graph))
    assert len(folded.nodes) == left
    x = np.random.default_rng(1).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    want, found = evaluate(graph, {"x": x}), evaluate(folded, {"x": x})
    for name in graph.outputs:
        np.testing.assert_allclose(
            found[name], want[name], rtol=1e-4, atol=1e-5 * np.abs(want[name]).max()
        )


@pytest.mark.parametrize("shape", WHOLE + SINGLE, ids=str)
@pytest.mark.parametrize("function", ["add", "sub", "mul", "div"])
def test_a_constant_joins_the_convolution(function, shape):
    net, y = convolution()
    y = net.binary(function, y, scale(net, *shape))
    assert kinds(net.graph(y)) == ["Conv2d"]
    check(net.graph(y))


@pytest.mark.parametrize("shape", WHOLE + SINGLE, ids=str)
@pytest.mark.parametrize("function", TURNED)
def test_a_constant_on_the_left_joins_where_sides_do_not_matter(function, shape):
    net, y = convolution()
    check(net.graph(net.binary(function, scale(net, *shape), y)))


@pytest.mark.parametrize(("function", "left"), [("sub", 1), ("div", 2)])
def test_one_on_the_left_of_a_quotient_stays(function, left):
    net, y = convolution()
    check(net.graph(net.binary(function, scale(net, CHANNELS, 1, 1), y)), left)


@settings(max_examples=40)
@given(data=st.data())
def test_a_chain_behind_no_product_is_one_normalization(data):
    net = Net(2, CHANNELS, 5, 4)
    y = "x"
    for _ in range(data.draw(st.integers(2, 5))):
        function = data.draw(st.sampled_from(["add", "sub", "mul", "div"]))
        operands = [
            y,
            scale(net, *data.draw(st.sampled_from([(CHANNELS, 1, 1), (1, CHANNELS, 1, 1)]))),
        ]
        if function != "div" and data.draw(st.booleans()):
            operands.reverse()
        y = net.binary(function, *operands)
    assert kinds(net.graph(y)) == ["BatchNorm"]
    check(net.graph(y))


@pytest.mark.parametrize("shapes", [((), ()), ((5, 4), (CHANNELS, 1, 1)), ((CHANNELS, 5, 4),) * 2])
def test_a_chain_of_other_constants_stays(shapes):
    net = Net(2, CHANNELS, 5, 4)
    y = net.binary("mul", "x", scale(net, *shapes[0]))
    check(net.graph(net.binary("add", y, scale(net, *shapes[1]))), left=2)


def test_a_chain_that_others_read_stays():
    net = Net(2, CHANNELS, 5, 4)
    y = net.binary("mul", "x", scale(net, CHANNELS, 1, 1))
    z = net.binary("add", y, scale(net, CHANNELS, 1, 1))
    check(net.graph(y, z), left=2)


@settings(max_examples=40)
@given(data=st.data())
def test_chains(data):
    """All of a chain goes where the convolution, with a bias or without, was."""
    net, y = convolution(
        data.draw(st.booleans()), strides=data.draw(st.sampled_from([(1, 1), (2, 1)]))
    )
    for _ in range(data.draw(st.integers(1, 5))):
        function = data.draw(st.sampled_from(["add", "sub", "mul", "div"]))
        operands = [y, scale(net, *data.draw(st.sampled_from(WHOLE + SINGLE)))]
        if function in TURNED and data.draw(st.booleans()):
            operands.reverse()
        y = net.binary(function, *operands)
    check(net.graph(y))


def test_a_chain_ends_at_what_is_not_of_channels():
    net, y = convolution()
    y = net.binary("mul", y, scale(net, CHANNELS, 1, 1))
    y = net.unary("tanh", y)
    y = net.binary("add", y, scale(net, CHANNELS, 1, 1))
    graph = net.graph(y)
    assert kinds(graph) == ["Conv2d", "Unary", "Add"]
    check(graph, left=3)


def test_normalization_and_factors_in_one_chain():
    net, y = convolution()
    y = net.binary("mul", y, scale(net, 1, CHANNELS, 1, 1))
    factor, offset = scale(net, CHANNELS), scale(net, CHANNELS)
    y = net.add(ops.BatchNorm, data=y, factor=factor, offset=offset)
    check(net.graph(net.binary("sub", y, scale(net))))


@pytest.mark.parametrize("shape", [(5,), (1, 5), (), (1,)], ids=str)
def test_a_dense_layer(shape):
    net = Net(3, 4)
    y = net.add(ops.Dense, data="x", weight=net.constant(5, 4), bias=net.constant(5))
    check(net.graph(net.binary("add", net.binary("mul", y, scale(net, *shape)), scale(net, 5))))


@pytest.mark.parametrize(
    "shape",
    [(5,), (6, 1), (1, 1, 6, 5), (CHANNELS, 6, 1), (2, 1, 1, 1), (2, CHANNELS, 1, 1)],
    ids=str,
)
def test_what_differs_along_other_axes_stays(shape):
    net, y = convolution(pads=(1, 1, 0, 0))
    assert net.tensors[y].shape == (2, CHANNELS, 6, 5)
    check(net.graph(net.binary("mul", y, scale(net, *shape))), left=2)


def test_a_constant_that_spreads_the_result_stays():
    """One image becomes two, or one pixel many."""
    net = Net(1, 4, 2, 2)
    y = net.add(ops.Conv2d, data="x", weight=net.constant(1, 4, 2, 2))
    assert net.tensors[y].shape == (1, 1, 1, 1)
    for shape in ((2, 1, 1, 1), (7,), (CHANNELS, 1, 1)):
        check(net.graph(net.binary("add", y, scale(net, *shape))), left=2)
        net.nodes.pop()


def test_what_two_read_stays():
    net, y = convolution()
    a, b = (net.binary("mul", y, scale(net, CHANNELS, 1, 1)) for _ in range(2))
    check(net.graph(a, b), left=3)


def test_what_is_read_twice_by_one_stays():
    net, y = convolution()
    check(net.graph(net.binary("mul", y, y)), left=2)


def test_a_result_of_the_graph_stays():
    net, y = convolution()
    check(net.graph(y, net.binary("mul", y, scale(net, CHANNELS, 1, 1))), left=2)


def test_an_intermediate_result_ends_the_chain():
    net, y = convolution()
    first = net.binary("mul", y, scale(net, CHANNELS, 1, 1))
    graph = net.graph(first, net.binary("add", first, scale(net)))
    assert kinds(graph) == ["Conv2d", "Add"]
    check(graph, left=2)


def test_a_factor_that_is_no_constant_stays():
    net, y = convolution()
    other = net.add(ops.Conv2d, data="x", weight=net.constant(CHANNELS, 4, 2, 2))
    factor = net.add(ops.AvgPool, data=other, kernel=(5, 4))
    check(net.graph(net.binary("mul", y, factor)), left=4)


def test_weights_that_are_no_constants_stay():
    net = Net(CHANNELS, 4, 2, 2)
    y = net.add(ops.Conv2d, data=net.constant(2, 4, 6, 5), weight="x")
    check(net.graph(net.binary("mul", y, scale(net, CHANNELS, 1, 1))), left=2)


def test_a_bias_that_is_no_constant_stays():
    net = Net(CHANNELS)
    weight = net.constant(CHANNELS, 4, 2, 2)
    y = net.add(ops.Conv2d, data=net.constant(2, 4, 6, 5), weight=weight, bias="x")
    check(net.graph(net.binary("mul", y, scale(net, CHANNELS, 1, 1))), left=2)


def test_weights_that_others_read_too_keep_their_values():
    net = Net(2, 4, 6, 5)
    weight = net.constant(CHANNELS, 4, 2, 2)
    a, b = (net.add(ops.Conv2d, data="x", weight=weight) for _ in range(2))
    check(net.graph(net.binary("mul", a, scale(net, CHANNELS, 1, 1)), b), left=2)


@pytest.mark.parametrize(("function", "value"), [("mul", np.inf), ("div", 0), ("div", 1e-40)])
def test_a_factor_without_end_stays(function, value):
    """A sum times infinity is a number; a sum of infinities of both signs is none."""
    net, y = convolution()
    factor = net.constant(CHANNELS, 1, 1)
    net.constants[factor][1] = value
    graph = net.graph(net.binary(function, y, factor))
    with np.errstate(all="raise", under="ignore"):
        folded = fold_scales(graph)
    assert folded.nodes == graph.nodes


def test_the_first_of_several_duplicates_stays():
    """Also where what they read is merged in another order: none is read before it is written."""
    net = Net(2, 4)
    first = [net.add(ops.Relu, data="x") for _ in range(3)]
    second = []
    for name in reversed(first):
        middle = net.add(ops.Unary, data=name, function="exp")
        second.append(net.add(ops.Unary, data=middle, function="tanh"))
    total = net.add(ops.Add, a=second[1], b=second[2])
    graph = verify(merge_duplicates(net.graph(second[0], total)))
    assert [node.op for node in graph.nodes] == ["Relu", "Unary", "Unary", "Add"]
