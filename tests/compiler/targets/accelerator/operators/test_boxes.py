"""What a portion of a result is computed from: boxes of each stage, against those of compute_at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.accelerator.operators.access import AccessError
from vdla.compiler.targets.accelerator.operators.boxes import Boxes


def two_windows(size, kernel, step, apart, pad):
    """A window over two rows of a padded tensor, some ``apart``, and pairs of lanes."""
    data = te.placeholder((size, 4), "int8", "data")
    length = (size + 2 * pad - kernel - apart) // step + 1

    def padded(y, l):
        inside = te.all(y >= pad, y < size + pad)
        return te.if_then_else(inside, data[y - pad, l], te.const(0, "int8"))

    image = te.compute((size + 2 * pad, 4), padded, "image")
    k, b = te.reduce_axis((0, kernel), "k"), te.reduce_axis((0, 2), "b")

    def window(y, l):
        lane = te.floordiv(l, 2) * 2 + b
        both = [image[y * step + k + row, lane].astype("int32") for row in (0, apart)]
        return te.sum(both[0] + both[1], axis=[k, b])

    acc = te.compute((length, 4), window, "acc")
    return data, image, acc, te.compute((length, 4), lambda y, l: acc[y, l] + te.const(1), "out")


@given(st.integers(6, 20), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2),
       st.integers(0, 2), st.integers(1, 6))  # fmt: skip
def test_boxes_are_what_compute_at_makes_room_for(size, kernel, step, apart, pad, rows):
    data, image, acc, out = two_windows(size, kernel, step, apart, pad)
    rows = min(rows, out.shape[0])
    boxes = Boxes(out)
    found = boxes.under({out.axis[0]: rows})
    s = create_schedule(out, [data])
    y, _ = s[out].split(out.axis[0], factor=rows)
    s.cache_read(data, "local", [image])
    for stage in (acc, image, "data_local"):
        s[stage].compute_at(s[out], y)
    made = {buffer.name: buffer.shape for buffer in s.buffers.values()}
    assert {"data_local": found[data], "image": found[image], "acc": found[acc]}.items() <= (
        made.items()
    )
    columns = boxes.under({out.axis[0]: np.array([1, rows])})
    assert [n[1] for n, _ in columns.values()] == [n for n, _ in found.values()]


def test_whole_portions_are_whole_tensors():
    tensors = two_windows(9, 3, 1, 1, 1)
    assert Boxes(tensors[-1]).under({}) == {each: each.shape for each in tensors}


def test_a_tensor_has_one_reader():
    a = te.placeholder((8,), "int32", "a")
    b = te.compute((8,), lambda i: a[i] + te.const(1), "b")
    out = te.compute((8,), lambda i: a[i] + b[i], "out")
    with pytest.raises(AccessError, match=r"^a: expected one stage that reads it, found several$"):
        Boxes(out)
