"""The graph's text: read back it is the same graph; a wrong one is refused where it is wrong."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import lru_cache
from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from readback import graph_reads_back

from vdla.compiler.build import Options, compile_graph, placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import ir, ops
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.parser import operators, parse_graph, read_graph
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import RECORDS, Quant, Requant, TensorType
from vdla.compiler.models import digits_test, model_path
from vdla.compiler.text import ParseError
from vdla.isa.config import load_config

TINY = load_config("tiny")
F32 = TensorType((1, 4), "float32")


@lru_cache
def small() -> Graph:
    """Odd names, a reason, every kind of value, a model, a fused node, long fields."""
    int8 = TensorType((1, 2, 3, 3), "int8", Quant(0.1, -3))
    packed = TensorType((1, 2, 3, 3), "int8", Quant(1e-30, 0), 16)
    scale = tuple(float(n) / 3 for n in range(10))
    image = TensorType((1, 2, 3, 3), "float32")
    wide = TensorType((1, 10, 3, 3), "int8", Quant(2.0, 5))
    nodes = (
        ops.Clip(name="a b", output="/clip:0", data="x", low=float("-inf"), high=6.5),
        ops.External(name="ext", output="193", operands=("/clip:0", "x"), model=b"\x00\xff",
                    kinds=("Resize", "Pad"), shape=(1, 2, 3, 3), dtype="float32",
                    reason='no "such" operator'),
        ops.Fused(name="q", output="p", operands=("193",), parts=(
            ops.Quantize(name="q", output="i", data="193", scale=(0.1,), zero_point=(-3,)),
            ops.Pack(name="pack", output="p", data="i", block=16),
        )),
        ops.QConv2d(name="conv", output="y", data="p", weight="w", bias="b", zeros=(-3,),
                    requant=Requant(scale, 5)),
    )  # fmt: skip
    tensors = {"x": image, "/clip:0": image, "193": image, "i": int8, "p": packed, "y": wide,
               "w": TensorType((10, 2, 1, 1), "int8"), "b": TensorType((10,), "int32")}  # fmt: skip
    constants = {"w": np.ones((10, 2, 1, 1), np.int8), "b": np.arange(10, dtype=np.int32)}
    return Graph(("x",), ("y", "193"), nodes, tensors, constants, "a graph", {"a b": "it\nis"})


def test_everything_is_in_the_text():
    text = format_graph(small())
    graph_reads_back(small())
    assert text.splitlines()[0] == "graph `a graph`"
    assert "  constant w : int8[10, 2, 1, 1]" in text
    assert '    float because "it\\nis"' in text
    assert "  `a b`: `/clip:0` = Clip(x) low=-inf high=6.5 : float32[1, 2, 3, 3]" in text
    assert 'model=<2 bytes> kinds=("Resize", "Pad")' in text
    assert "    pack: p = Pack(i) block=16 : int8[1, 2, 3, 3]/16 * 1e-30 @ 0" in text
    assert "scale=<10 values>" in text
    assert set(beside(small())) == {"w", "b", "ext@model", "conv@requant.scale"}


def test_every_operator_has_fields_that_can_be_written():
    written = (int, float, bool, str, bytes, Requant, ops.Step)
    for cls in (*operators().values(), *RECORDS.values()):
        for field in fields(cls):
            hint = get_type_hints(cls)[field.name]
            parts = {*getattr(hint, "__args__", (hint,))} - {..., type(None), ir.Node, ir.Graph}
            assert parts <= {*written, *(p for p in parts if getattr(p, "__args__", ()))}
            assert field.default is MISSING or field.default is None or \
                isinstance(field.default, (*written, tuple))  # fmt: skip


def test_an_edit_and_defaults():
    graph = parse_graph(
        """
graph g
  input x : float32[1, 4]
  output y
  a: h = Clip(x) low=0 high=6 : float32[1, 4]   # a comment

  b: y = Unary(h) function="neg" : float32[1, 4]
""",
        {},
    )
    assert graph.nodes[1] == ops.Unary(name="b", output="y", data="h", function="neg")
    found = evaluate(graph, {"x": np.array([[-1, 2, 7, 3]], np.float32)})["y"]
    assert found.tolist() == [[0, -2, -6, -3]]


def test_steps_and_their_requantization():
    text = """
graph g
  input x : int8[1, 4, 2, 2]
  input r : int8[1, 2, 2, 2]
  constant w : int8[2, 4, 1, 1]
  constant b : int32[2]
  output y
  c: y = QConv2d(x, w, b) zeros=(3) requant=Requant(scale=(0.5, 0.25), zero=-1) \
epilogue=(AddStep(addend="r", zeros=(-1, 0), requant=Requant(scale=(1, 1), zero=7, low=-5))) \
: int8[1, 2, 2, 2]
""".replace("\\\n", "")
    values = {"w": np.ones((2, 4, 1, 1), np.int8), "b": np.zeros(2, np.int32)}
    graph = parse_graph(text, values)
    addition = ops.AddStep(addend="r", zeros=(-1, 0), requant=Requant((1, 1), 7, low=-5))
    assert graph.nodes[0].requant == Requant((0.5, 0.25), -1)
    assert graph.nodes[0].epilogue == (addition,)
    assert graph.nodes[0].inputs == ("x", "w", "b", "r")
    assert parse_graph(format_graph(graph), beside(graph)).nodes == graph.nodes
    later = text.replace('"r"', '"y"')
    with pytest.raises(ParseError, match="expected operands defined before their use, found y"):
        parse_graph(later, values)


def test_a_dump_is_read_and_compiled(tmp_path):
    config = load_config("tiny")
    module = compile_graph(import_onnx(model_path("digits")), config, Options(dump=tmp_path))
    texts = sorted((tmp_path / "graph").glob("*.txt"))
    assert texts[0].name == "01_imported.txt"
    read = {path.stem[3:]: read_graph(path) for path in texts}
    for name in ("imported", "fuse_qdq", "fold_taps"):
        again = compile_graph(read[name], config)
        assert again.programs == module.programs
    laid_out, _ = placed_graph(import_onnx(model_path("digits")), config)
    assert repr(read["fuse_conversions"].nodes) == repr(laid_out.nodes)


def test_an_edited_dump_computes_what_it_says(tmp_path):
    compile_graph(import_onnx(model_path("digits")), TINY, Options(dump=tmp_path))
    (path,) = tmp_path.glob("graph/*_fold_constants.txt")
    text = path.read_text()
    assert text.count(", zero=10, ") == 1
    images, _ = digits_test()
    image = {"image": images[:1]}
    before = evaluate(read_graph(path), image)["logits"]
    edited = tmp_path / "graph" / "edited.txt"
    edited.write_text(text.replace(", zero=10, ", ", zero=20, "))
    after = evaluate(read_graph(edited), image)["logits"]
    step = 0.11047405749559402
    np.testing.assert_allclose(after - before, np.full_like(after, 10 * step), rtol=1e-5)


def test_a_dump_replaces_an_older_one(tmp_path):
    (tmp_path / "graph").mkdir()
    for old in ("01_old.txt", "01_old.npz"):
        (tmp_path / "graph" / old).write_bytes(b"")
    compile_graph(import_onnx(model_path("digits")), TINY, Options(dump=tmp_path))
    assert not list((tmp_path / "graph").glob("01_old*"))


# --- refusals -------------------------------------------------------------------------------------

HEAD = "graph g\n  input x : float32[1, 4]\n  constant c : float32[4]\n  "
VALUES = {"c": np.zeros(4, np.float32), "r@axis": np.zeros(3), "short": np.zeros(3, np.float32)}
REFUSED = {
    "r: y = Rleu(x) : float32[1, 4]": "column 10: expected an operator (Add, ArgReduce,",
    "r: y = Relu(z) : float32[1, 4]": "column 15: expected operands defined before their use, "
                                      "found z",
    "r: y = Relu() : float32[1, 4]": "column 10: expected 1 operands (data) of Relu, found 0",
    "r: y = Relu(x, x) : float32[1, 4]": "column 10: expected at most 1 operands (data) of Relu, "
                                         "found 2",
    "r: y = Relu(x) low=1 : float32[1, 4]": "column 18: expected a field of Relu (none is left), "
                                            "found low",
    "r: y = Clip(x) low=1 low=2 : float32[4]": "column 24: expected a field of Clip (high), "
                                               "found low",
    "r: y = Clip(x) low=1 : float32[1, 4]": "column 10: expected the fields of Clip, found none "
                                            "for high",
    'r: y = Clip(x) low="1" : float32[1]': "column 22: expected low: a number, found '1'",
    "r: y = QClip(x) requant=Requant(zero=3)": "column 27: expected the fields of Requant, "
                                               "found none for scale",
    "r: y = QClip(x) requant=Requant(scale=3)": "column 41: expected scale: numbers in brackets, "
                                                "found 3",
    "r: y = QClip(x) requant=3 : int8[1, 4]": "column 27: expected requant: Requant(…), found 3",
    "r: y = QConv2d(x, c, c) epilogue=(Requant(scale=(1), zero=1))": "column 36: expected "
        "epilogue: AddStep(…) or TableStep(…)s in brackets, found (Requant(",
    "r: y = Softmax(x) axis=0.5 : float32[1]": "column 26: expected axis: a whole number, "
                                               "found 0.5",
    "r: y = Softmax(x) axis=True : float32[1]": "column 26: expected axis: a whole number, "
                                                "found True",
    "r: y = Transpose(x) perm=(1, a) : f": "column 32: expected a value, found 'a'",
    "r: y = MaxPool(x) kernel=(1, 2, 3) : f": "column 28: expected kernel: 2 whole numbers in "
                                              "brackets, found (1, 2, 3)",
    "r: y = MaxPool(x) kernel=3 : f": "column 28: expected kernel: 2 whole numbers in brackets, "
                                      "found 3",
    "r: y = Softmax(x) axis=<3 values> : float32[1, 4]": "column 26: expected axis: a whole "
        "number, found (0.0, 0.0, 0.0)",
    "r: y = Softmax(x) axis=<4 values> : float32[1, 4]": "column 26: expected 4 values for r@axis "
        "among the values, found float64[3]",
    "s: y = Softmax(x) axis=<4 values> : float32[1, 4]": "column 26: expected 4 values for s@axis "
        "among the values, found none",
    "constant d : int8[4]": "column 12: expected int8[4] for d among the values, found none",
    "constant short : float32[4]": "column 12: expected float32[4] for short among the values, "
                                   "found float32[3]",
    "constant x : float32[4]": "column 12: expected a tensor written once, found x again",
    "r: x = Relu(x) : float32[1, 4]": "column 6: expected a tensor written once, found x again",
    "r: y = Relu(x) : float23[1, 4]": "column 20: expected a dtype of float32, int8,",
    "r: y = Relu(x) : float32[-1, 4]": "column 28: expected a size from 0 to 9223372036854775807, "
                                      "found 1",
    "r: y = Relu(x) : float32[1, 4]/0": "column 34: expected a size from 1",
    "r: y = Relu(x) : float32[4]/16": "column 30: expected channel blocks of 2 or 4 dimensions, "
                                      "found 1",
    "r: y = Relu(x) : float32[1, 4] nonsense": "column 34: expected the end of the line, found "
                                               "'nonsense'",
    "r: y = Relu(x) : float32[2, 2]": "column 3: node r (Relu): expected an output of shape "
                                      "[1, 4], found [2, 2]",
    "r: y = Relu(x) : int8[1, 4]": "column 3: node r (Relu): expected a float32 result, found int8",
    "r: y = Relu(x) : float32[1, 4]\n    x": "line 5, column 5: expected float because, the one "
                                             "line below a Relu, found 'x'",
    "r: y = Relu(x) : float32[1, 4]\n  r: z = Relu(x) : float32[1, 4]": "line 5, column 3: "
        "expected a new node's name, found r, as in line 4",
    "f: y = Fused(x) : float32[1, 4]": "expected the parts of the Fused above, found",
    "f: y = Fused(x) : float32[1, 4]\n    r: z = Relu(x) : float32[1, 4]": "column 6: expected z "
        "and its type, as the last part writes it, found y",
    "output y": "column 10: expected an output that is a tensor above or below, found y",
}  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_refusals(line):
    with pytest.raises(ParseError) as caught:
        parse_graph(HEAD + line, VALUES)
    assert REFUSED[line] in str(caught.value)
    assert "line " in REFUSED[line] or caught.value.line in (4, 5)


IMAGE = """graph g
  input x : float32[1, 4, 4, 4]
  constant w : float32[4, 1, 1, 1]
  output y
  """
WINDOWS = {
    "strides=(0, 1) groups=4": "strides of at least 1, found [0, 1]",
    "dilations=(1, 0) groups=4": "dilations of at least 1, found [1, 0]",
    "pads=(-1, 0, 0, 0) groups=4": "pads of at least 0, found [-1, 0, 0, 0]",
    "groups=0": "at least 1 group, found 0",
}


@pytest.mark.parametrize("field", WINDOWS)
def test_windows_that_are_none(field):
    text = f"{IMAGE}c: y = Conv2d(x, w) {field} : float32[1, 4, 4, 4]"
    with pytest.raises(ParseError) as caught:
        parse_graph(text, {"w": np.zeros((4, 1, 1, 1), np.float32)})
    assert f"line 5, column 3: node c (Conv2d): expected {WINDOWS[field]}" in str(caught.value)


def test_what_is_no_graph(tmp_path):
    for text in ("", "func f():\n    pass", "graph"):
        with pytest.raises(ParseError, match="line 1, column "):
            parse_graph(text, {})
    (tmp_path / "g.txt").write_bytes(b"graph \xff")
    with pytest.raises(ParseError, match="expected UTF-8"):
        read_graph(tmp_path / "g.txt")


def test_a_constant_called_as_a_field_is():
    graph = small()
    tensors = {"conv@requant.scale": F32}
    with pytest.raises(GraphError, match=r"expected no constant called conv@requant\.scale"):
        beside(
            graph.copy(
                tensors=tensors, constants={"conv@requant.scale": np.zeros((1, 4), np.float32)}
            )
        )


# --- corruption -----------------------------------------------------------------------------------

PIECES = ("(", ")", "[", "]", "<", ">", ",", ":", "=", "/", "*", "@", "-", "0", "3", "99999999999",
          "1.5", "inf", "None", "True", "input", "output", "constant", "Relu", "x", "y",
          "float because", "\n", "  ", "#", '"', "`", "\\", "é", "<10 values>")  # fmt: skip


@lru_cache
def digits() -> Graph:
    return placed_graph(import_onnx(model_path("digits")), TINY)[0]


@pytest.mark.parametrize("graph", [small, digits])
@settings(max_examples=300, derandomize=True,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(data=st.data())
def test_a_corrupted_text_is_a_graph_or_refused(graph, data):
    values = beside(graph())
    text = format_graph(graph())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from((0, 0, 1, 1, 2, 5, 40))))
        text = text[:start] + data.draw(st.sampled_from(("", *PIECES))) + text[end:]
    refused = None
    try:
        found = parse_graph(text, values)
    except ParseError as error:
        refused = error
    if refused:
        assert 1 <= refused.line <= text.count("\n") + 1
    else:
        graph_reads_back(found)


def test_a_region_may_give_a_tensor_twice():
    """A turn's result that is stacked, and what the next turn gets."""
    text = (
        "graph g\n  input x : float32[4]\n  output h\n  output all\n"
        "  s: h, all = Scan(x) carried=1 turns=3 scanned=0 : float32[4], float32[3, 4]\n"
        "    graph s.body\n      input turn : int64[]\n      input state : float32[4]\n"
        "      output next\n      output next\n"
        '      t: next = Unary(state) function="tanh" alpha=0.0 beta=0.0 : float32[4]\n'
    )
    assert format_graph(parse_graph(text, {})) == text


def test_a_part_calls_functions_that_stand_elsewhere():
    """As a region that ``--dump`` writes to a file of its own; of a whole graph, all are there."""
    part = (
        "graph part\n  input x : float32[4]\n  output y\n"
        '  c: y = Call(x) function="f" shapes=((4)) dtypes=("float32") : float32[4]\n'
    )
    assert format_graph(parse_graph(part, {})) == part
    function = "graph g\n  input z : float32[4]\n  output z\n"
    with pytest.raises(ParseError, match=r"expected a function of the graph \(g\), found f"):
        parse_graph(part + function, {})
