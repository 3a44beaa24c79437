"""How tensors of any shape lie in images: reshapes and transpositions, against numpy's."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.graph.form import Order, form_of, nearest_order


@st.composite
def orders(draw, rank):
    """Axes of a tensor, each in one of an image's places."""
    axes = draw(st.permutations(range(rank)))
    first = draw(st.integers(0, rank))
    second = draw(st.integers(first, rank))
    return Order(tuple(axes[:first]), tuple(axes[first:second]), tuple(axes[second:]))


def elements(form, image):
    """The tensor that lies in an image, by numpy's reshape and transpose."""
    factors = [factor for place in form.places for factor in place]
    wanted = [factor for axis in form.axes for factor in axis]
    array = image.reshape([form.sizes[factor] for factor in factors])
    return array.transpose([factors.index(factor) for factor in wanted]).reshape(form.shape)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_moves_follow_numpys(data):
    shape = tuple(data.draw(st.lists(st.sampled_from((1, 2, 3, 4, 6)), min_size=1, max_size=4)))
    order = data.draw(orders(len(shape)))
    array, form = np.arange(prod(shape)).reshape(shape), form_of(shape, order)
    image = array.transpose(order.perm)
    for _ in range(data.draw(st.integers(0, 4))):
        if data.draw(st.booleans()):
            perm = data.draw(st.permutations(range(array.ndim)))
            array, form = array.transpose(perm), form.transposed(perm)
        else:
            shape = data.draw(st.sampled_from(shapes_of(array.size)))
            after = form.reshaped(shape)
            if after is not None:
                array, form = array.reshape(shape), after
    assert form.shape == array.shape
    assert np.array_equal(elements(form, image), array)
    known = form.order()
    if known is not None:
        assert form.placed(known) == form.places
        assert sorted(known.perm) == list(range(array.ndim))


def shapes_of(size, rank=3):
    """All shapes of so many elements with some number of axes, 1s left out but for one."""
    if rank == 1:
        return [(size,)]
    shapes = [(size,), (1, size)]
    for first in range(2, size):
        if size % first == 0:
            shapes += [(first, *rest) for rest in shapes_of(size // first, rank - 1)]
    return shapes


def test_heads_of_a_sequence():
    """With its heads apart a sequence is the same image, its channels heads times features."""
    whole = form_of((1, 197, 192), Order((0,), (2,), (1,)))
    heads = whole.reshaped((1, 197, 3, 64)).transposed((0, 2, 1, 3))
    assert heads.shape == (1, 3, 197, 64)
    assert heads.order() == Order((0,), (1, 3), (2,))
    together = heads.transposed((0, 2, 1, 3)).reshaped((1, 197, 192))
    assert together.order() == whole.order()


def test_a_factor_that_no_reshape_divides():
    whole = form_of((6, 4), Order((), (1,), (0,)))
    assert whole.reshaped((4, 6)) is None
    assert whole.reshaped((2, 3, 4)).order() == Order((), (2,), (0, 1))
    assert whole.reshaped((2, 12)).order() is None


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_elements_along_an_axis_follow_numpys(data):
    shape = tuple(data.draw(st.lists(st.sampled_from((1, 2, 3, 4)), min_size=2, max_size=4)))
    order, axis = data.draw(orders(len(shape))), data.draw(st.integers(0, len(shape) - 1))
    array, form = np.arange(prod(shape)).reshape(shape), form_of(shape, order)
    table = data.draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=5))
    if (taken := form.taken(axis, table)) is None:
        assert shape[axis] == 1
        return
    number, places = taken
    image = array.transpose(order.perm).reshape([form.size(place) for place in form.places])
    after = form.resized(axis, len(table))
    assert np.array_equal(
        elements(after, np.take(image, places, axis=number)), np.take(array, table, axis=axis)
    )


def test_the_nearest_order_exchanges_fewest_images():
    """A copy that has been exchanged counts as none."""
    vectors, features = Order((0,), (1,), (2,)), Order((0,), (2,), (1,))
    in_lanes = {name: form_of((1, 5, 7), vectors) for name in "ab"}
    in_rows = {name: form_of((1, 5, 7), features) for name in "cd"}

    def nearest(*names: str, exchanged: tuple[str, ...] = ()) -> Order | None:
        known = [(name, (in_lanes | in_rows)[name]) for name in names]
        return nearest_order(known, exchanged)

    assert nearest() is None
    assert nearest("a") == nearest("a", "c") == nearest("a", "b", "c") == vectors
    assert nearest("c", "a") == nearest("a", "c", "d") == features
    assert nearest("a", "c", exchanged=("a",)) == features
