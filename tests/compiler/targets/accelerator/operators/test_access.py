"""What an expression reads: its indices, and the entries under a portion, against counting them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler import te
from vdla.compiler.targets.accelerator.operators.access import AccessError, Portions, accesses
from vdla.compiler.targets.accelerator.operators.nest import Issue, Loop, Nest


def windows(outputs, kernel, step, dilation, stride, pad, size):
    """A window over a row that is padded, and of which every ``stride``-th entry is loaded."""
    data = te.placeholder((size,), "int8", "data")
    length = (outputs - 1) * step + (kernel - 1) * dilation + 1

    def pads(x):
        x = x * stride - pad
        inside = te.all(x >= 0, x < size)
        return te.if_then_else(inside, data[x], te.const(0, "int8"))

    padded = te.compute((length,), pads, "padded")
    k = te.reduce_axis((0, kernel), "k")
    acc = te.compute(
        (outputs,),
        lambda x: te.sum(padded[x * step + k * dilation].astype("int32"), axis=k),
        "acc",
    )
    return data, te.compute((outputs,), lambda x: acc[x] + te.const(1), "out")


@given(st.data())
def test_entries_under_a_portion(data):
    """Everything between the first and the last that is looked at, less the padding."""
    outputs, kernel = data.draw(st.integers(2, 12)), data.draw(st.integers(1, 4))
    step, dilation = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    stride, pad = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 5))
    size, tile = data.draw(st.integers(1, 60)), data.draw(st.integers(1, outputs))
    row, out = windows(outputs, kernel, step, dilation, stride, pad, size)
    (index,) = accesses(out)[row]
    found = []
    for first in range(0, outputs, tile):
        last = min(first + tile, outputs) - 1
        places = range(first * step, last * step + (kernel - 1) * dilation + 1)
        found.append(sum(0 <= place * stride - pad < size for place in places))
    (axis,) = out.axis
    counted = Portions(max(found), found[0], found[-1], sum(found))
    assert index.portions({axis: tile}) == counted
    assert index.span({axis: tile}) == (tile - 1) * step + (kernel - 1) * dilation + 1
    issues = [Issue("inp", 1, 1, row), Issue("out", 1, 1, out)]
    nest = Nest(out, accesses(out), [Loop("tile", axis, tile)], issues)
    assert nest.moved == {"inp": sum(found), "out": 4 * outputs}
    assert nest.touched["inp"]["tile"] == max(found)
    assert nest.ends == found[0] + 4 * ((outputs - 1) % tile + 1)
    assert nest.ops == outputs * kernel
    assert nest.trips == dict.fromkeys(("tile", "step", "part"), -(-outputs // tile))


def test_several_axes_in_one_index():
    """Channels of groups: a group's lie together."""
    bias = te.placeholder((24,), "int32", "bias")
    out = te.compute((3, 8), lambda g, o: bias[g * 8 + o] + te.const(1), "out")
    (index,) = accesses(out)[bias]
    g, o = out.axis
    assert index.portions({g: 1, o: 4}) == Portions(4, 4, 4, 24)
    assert index.portions({}).total == 24
    loops = [Loop("tile", g), Loop("tile", o, 4), Loop("part", o, 2)]
    nest = Nest(out, accesses(out), loops, [Issue("bias", 2, 1, bias), Issue("out", 3, 5, out)])
    assert nest.trips == {"tile": 6, "step": 6, "part": 12}
    assert nest.touched["bias"] == {"layer": 96, "tile": 16, "part": 8}
    assert nest.commands == {"bias": 6, "out": 60}
    assert (nest.tiles(g), nest.tiles(o)) == (3, 2)
    assert nest.held(bias, 2) == 4


@given(st.data())
def test_taps_apart_are_loaded_one_by_one(data):
    """A stage that copies a row for each tap loads each tap's places, whatever lies between."""
    outputs, kernel = data.draw(st.integers(2, 12)), data.draw(st.integers(2, 4))
    dilation, tile = data.draw(st.integers(1, 30)), data.draw(st.integers(1, outputs))
    size = outputs + (kernel - 1) * dilation
    row = te.placeholder((size,), "int8", "row")
    taps = te.compute((kernel, outputs), lambda k, x: row[x + k * dilation], "taps")
    k = te.reduce_axis((0, kernel), "k")
    acc = te.compute((outputs,), lambda x: te.sum(taps[k, x].astype("int32"), axis=k), "acc")
    out = te.compute((outputs,), lambda x: acc[x] + te.const(1), "out")
    (index,) = accesses(out)[row]
    (axis,) = out.axis
    assert index.span({axis: tile}) == tile * kernel
    last = (outputs - 1) % tile + 1
    wanted = Portions(tile * kernel, tile * kernel, last * kernel, outputs * kernel)
    assert index.portions({axis: tile}) == wanted


def test_entries_that_hold_several_places():
    """Two nibbles of a byte: a portion touches every byte of which it reads one."""
    data = te.placeholder((3, 8), "uint8", "data")
    tiles = te.compute((3, 16), lambda o, i: data[o, te.floordiv(i, 2)] & 15, "tiles")
    out = te.compute((3, 16), lambda o, i: tiles[o, i] + te.const(1, "uint8"), "out")
    o, i = accesses(out)[data]
    axis = out.axis[1]
    assert o.portions({}) == Portions(3, 3, 3, 3)
    assert i.portions({}) == Portions(8, 8, 8, 8)
    assert i.portions({axis: 4}) == Portions(2, 2, 2, 8)
    assert i.portions({axis: 5}) == Portions(3, 3, 1, 3 + 3 + 3 + 1)
    assert (i.span({}), i.span({axis: 4}), i.span({axis: 5})) == (8, 2, 3)
    nest = Nest(out, accesses(out), [Loop("tile", out.axis[0])], [Issue("wgt", 1, 1, data)])
    assert nest.moved == {"wgt": 24}
    strided = te.compute((3, 4), lambda o, i: tiles[o, i * 2 + 1], "strided")
    with pytest.raises(AccessError, match="expected an index of whole entries"):
        accesses(te.compute((3, 4), lambda o, i: strided[o, i], "last"))


def test_what_does_not_depend_on_a_loop_is_loaded_again():
    scale = te.placeholder((1,), "int8", "scale")
    out = te.compute((6,), lambda i: scale[0] + te.const(1, "int8"), "out")
    issues = [Issue("side", 1, 1, scale), Issue("out", 1, 1, out)]
    nest = Nest(out, accesses(out), [Loop("tile", out.axis[0], 4)], issues)
    assert nest.moved == {"side": 2, "out": 6}
    assert nest.touched["side"] == {"layer": 1}


def of(index, read=None):
    data = te.placeholder((64,), "int8", "data")
    axis = te.reduce_axis((0, 4), "k")
    out = te.compute((4,), lambda i: te.sum(data[index(i, axis)].astype("int32"), axis=axis), "acc")
    return te.compute((4,), lambda i: out[i] + (read(data, i) if read else te.const(0)), "out")


def test_other_forms_are_refused():
    with pytest.raises(AccessError, match=r"^expected an index that is affine in the axes, found"):
        accesses(of(lambda i, k: i * k))
    twice = of(lambda i, k: i + k, lambda data, i: data[i].astype("int32"))
    with pytest.raises(AccessError, match=r"^data: expected one place .* found two$"):
        accesses(twice)
    strided = te.placeholder((64,), "int8", "strided")
    every = te.compute((16,), lambda i: strided[i * 2], "every")
    k = te.reduce_axis((0, 4), "k")
    mixed = te.compute((4,), lambda i: te.sum(every[i * 2].astype("int32"), axis=k), "acc")
    assert accesses(mixed)[strided][0].stride == 4
