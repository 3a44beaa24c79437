"""Files that can't be read: what is said, and that nothing else is ever raised."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tflite_files import Graph, Op, T, file_of, known, one

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.tflite import is_tflite, translate
from vdla.compiler.frontend.tflite.schema import schema
from vdla.support.errors import UserError
from vdla.support.install import pip_install

WEIGHT = T((2, 1, 1, 2), "int8", [0.1, 0.2], data=[[[[1, 2]]], [[[3, 4]]]])
DATA = T((1, 3, 3, 2), "int8", 0.1, 3)
BIAS = T((2,), "int32", [0.01, 0.02], data=[5, 6])
CONV = one("CONV_2D", [DATA, WEIGHT, BIAS], [T((1, 3, 3, 2), "int8", 0.2)], "Conv2DOptions",
           StrideH=1, StrideW=1)  # fmt: skip


def refusal(data):
    with pytest.raises(ModelError) as error:
        translate(data, "m.tflite")
    return str(error.value)


def test_bytes_of_something_else():
    assert refusal(b"") == "m.tflite: expected a TFLite file, with TFL3 in it, found an empty file"
    text = "m.tflite: expected a TFLite file, with TFL3 in it, found b'\\x08\\x07\\x12\\x07pytorch'"
    assert refusal(b"\x08\x07\x12\x07pytorch") == text[: len(text) - 4] + "'"
    assert is_tflite(CONV)
    assert not is_tflite(b"\x08\x07\x12\x07pytorch")


def test_a_cut_file():
    assert refusal(CONV[: len(CONV) // 2]).startswith("m.tflite: expected a whole TFLite file, ")


def test_random_bytes_behind_the_magic():
    for seed in range(50):
        noise = np.random.default_rng(seed).bytes(400)
        assert refusal(noise[:4] + b"TFL3" + noise).startswith("m.tflite: expected ")


def test_an_operator_code_that_nobody_knows(monkeypatch):
    from tflite_files import tflite

    monkeypatch.setattr(tflite.BuiltinOperator, "ABS", 9999)
    data = one("ABS", [T((2,))], [T((2,))])
    monkeypatch.undo()
    assert refusal(data) == (
        "m.tflite: subgraph 0: operator 0: expected an operator that TFLite's schema has, found "
        "code 9999; a newer package tflite may know it"
    )


def test_an_operator_that_is_not_translated():
    data = one("SEGMENT_SUM", [T((2,)), known([0, 0])], [T((1,))])
    assert refusal(data) == (
        "m.tflite: operator 0 (SEGMENT_SUM) that makes t2: expected an operator that vdla "
        "translates, found SEGMENT_SUM; convert the model without it, or end the model before it"
    )


def test_a_custom_operator():
    op = Op("CUSTOM", [0], [1], custom="TFLite_Detection_PostProcess")
    data = file_of(Graph([T((2,)), T((2,), name="boxes")], [op], [0], [1]))
    assert refusal(data) == (
        "m.tflite: operator 0 (TFLite_Detection_PostProcess) that makes boxes: expected an "
        "operator that vdla translates, found the custom operator TFLite_Detection_PostProcess; "
        "end the model before it, and compute the rest outside"
    )


def test_a_tensor_beyond_the_table():
    data = file_of(Graph([T((2,)), T((2,))], [Op("ABS", [7], [1])], [0], [1]))
    assert refusal(data) == ("m.tflite: subgraph 0: operator 0: expected tensors below 2, found 7")


def test_a_tensor_that_nothing_makes():
    data = file_of(Graph([T((2,)), T((2,)), T((2,))], [Op("ABS", [1], [2])], [0], [2]))
    assert refusal(data) == (
        "m.tflite: tensor 1, t1: expected an operator before that makes it, found none"
    )


def test_a_constant_of_too_few_bytes():
    short = T((5,), data=[1.0, 2.0])
    assert refusal(one("ADD", [T((5,)), short], [T((5,))], "AddOptions")) == (
        "m.tflite: subgraph 0: tensor 1, t1: expected 20 bytes of elements, found 8"
    )


def test_a_buffer_beyond_the_table():
    lost = T((5,), buffer=9)
    assert refusal(one("ADD", [T((5,)), lost], [T((5,))], "AddOptions")) == (
        "m.tflite: subgraph 0: tensor 1, t1: expected one of 1 buffers, found 9"
    )


def test_scales_that_fit_no_axis():
    odd = T((2, 1, 1, 2), "int8", [0.1, 0.2, 0.3], data=np.zeros((2, 1, 1, 2)))
    assert refusal(one("CONV_2D", [DATA, odd, BIAS], [DATA], "Conv2DOptions")) == (
        "m.tflite: subgraph 0: tensor 1, t1: expected an axis of 3 sizes, one for each scale, "
        "found 0"
    )


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    schema.cache_clear()
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(UserError) as error:
        translate(CONV, "m.tflite")
    schema.cache_clear()
    assert str(error.value) == (
        "TFLite files: expected the package tflite, which reads them, found none; install with: "
        f"{pip_install('tflite')}"
    )


# Any bytes ----------------------------------------------------------------------------------------


def streaming_file():
    handle = ("VarHandleOptions", {"SharedName": "s"})
    ops = [
        Op("VAR_HANDLE", [], [1], *handle),
        Op("READ_VARIABLE", [1], [2]),
        Op("ADD", [0, 2], [3], "AddOptions"),
        Op("STRIDED_SLICE", [3, 4, 5, 6], [7], "StridedSliceOptions", {"BeginMask": 1}),
        Op("ASSIGN_VARIABLE", [1, 3], []),
    ]
    bounds = [known(each) for each in ([0, 0], [2, 2], [1, 1])]
    tensors = [T((2, 3)), T((), "resource"), T((2, 3)), T((2, 3)), *bounds, T((2, 2))]
    return file_of(Graph(tensors, ops, [0], [7]))


FILES = [CONV, streaming_file()]


def outcome(data):
    """The line that a file is refused with; empty where it becomes a model that ONNX takes."""
    try:
        model = translate(data, "m.tflite")
    except ModelError as error:
        return str(error)
    onnx.checker.check_model(model)
    return ""


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(FILES),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_changed_bytes_give_a_model_or_one_line(data, changes):
    changed = bytearray(data)
    for place, value in changes:
        changed[place % len(changed)] = value
    line = outcome(bytes(changed))
    assert line.startswith("m.tflite: ") or line == ""
    assert "\n" not in line


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_cut_files_give_one_line(data, draw):
    line = outcome(data[: draw.draw(st.integers(0, len(data) - 1))])
    assert line.startswith("m.tflite: ") or line == ""
