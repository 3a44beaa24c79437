"""Wrong expressions, schedules and arguments of the Python API: errors of users', each pinned."""

from __future__ import annotations

import numpy as np
import pytest

import vdla
from vdla import te
from vdla.compiler.build import compile_graph
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.parser import read_graph
from vdla.isa.config import load_config

A = te.placeholder((4, 4), "int32", "A")
F = te.placeholder((4, 4), "float32", "F")
B = te.compute((4, 4), lambda i, j: A[i, j] + 1, "B")
NAMES = "bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, float64"

EXPRESSIONS = {
    "a name for a size": (
        lambda: te.placeholder(("n", 4)),
        "placeholder: expected a shape of positive ints, found ('n', 4)",
    ),
    "half a row": (
        lambda: te.compute((2.5, 4), lambda i, j: A[i, j], "C"),
        "C: expected a shape of positive ints, found (2.5, 4)",
    ),
    "no shape": (
        lambda: te.placeholder(None, name="X"),
        "X: expected a shape of positive ints, found None",
    ),
    "a shape below 1": (
        lambda: te.placeholder((-1, 4), "int8", "X"),
        "buffer X: expected a shape of positive ints, found (-1, 4)",
    ),
    "an unknown dtype": (
        lambda: te.placeholder((4,), "int33", "X"),
        f"buffer X: expected a dtype of {NAMES}, found 'int33'",
    ),
    "a promise beyond the dtype": (
        lambda: te.placeholder((4,), "int8", "X", value_range=(0, 300)),
        "buffer X: expected a value_range (low, high) within int8, found (0, 300)",
    ),
    "half a promise": (
        lambda: te.placeholder((4,), "int8", "X", value_range=5),
        "X: expected a value_range of two integers (low, high), found 5",
    ),
    "mixed dtypes": (
        lambda: te.compute((4, 4), lambda i, j: A[i, j] + F[i, j]),
        "add: expected operands of one dtype, found int32 and float32; cast one of them",
    ),
    "an index of another kind": (
        lambda: te.compute((4, 4), lambda i, j: A[i, "x"]),
        "expected a number or an expression, found 'x'",
    ),
    "a slice": (
        lambda: te.compute((4, 4), lambda i, j: A[i, 0:2]),
        "expected a number or an expression, found slice(0, 2, None)",
    ),
    "a function that forgets to return": (
        lambda: te.compute((4, 4), lambda i, j: None),
        "expected a number or an expression, found None",
    ),
    "a tensor as a whole": (
        lambda: te.compute((4, 4), lambda i, j: te.max(A, 0)),
        "expected an element of A, by its indices, found it as a whole",
    ),
    "no function": (
        lambda: te.compute((4, 4), 3, "C"),
        "C: expected a function of 2 indices, found 3",
    ),
    "a domain without a start": (
        lambda: te.reduce_axis(4, "k"),
        "k: expected a domain (0, n) with n >= 1, found 4",
    ),
    "a domain of halves": (
        lambda: te.reduce_axis((0, 4.5), "k"),
        "k: expected a domain (0, n) with n >= 1, found (0, 4.5)",
    ),
    "threads by name": (
        lambda: te.thread_axis("vthread", "two"),
        "thread_axis: expected threads >= 1 and the tag vthread, found two and vthread",
    ),
    "threads that no target has": (
        lambda: te.thread_axis("threadIdx.w"),
        "thread_axis: expected a tag of vthread, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, "
        "threadIdx.y, threadIdx.z, found 'threadIdx.w'",
    ),
    "groups that share steps": (
        lambda: te.thread_axis("blockIdx.x", 2),
        "thread_axis: expected threads >= 1 and the tag vthread, found 2 and blockIdx.x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_expressions(case):
    make, line = EXPRESSIONS[case]
    with pytest.raises(vdla.UserError) as error:
        make()
    assert str(error.value) == line


SCHEDULES = {
    "a loop by number": (
        lambda s: s[B].split(0, 2), "split B: expected a loop, as B.axis[0], found 0"
    ),
    "loops as a list": (
        lambda s: s[B].reorder(list(B.axis)), "reorder B: expected a loop, as B.axis[0], found ["
    ),
    "a list to fuse": (
        lambda s: s[B].fuse(list(B.axis)), "fuse B: expected a loop, as B.axis[0], found ["
    ),
    "no thread": (
        lambda s: s[B].bind(B.axis[0], "vthread"),
        "bind B.i: expected a thread, as te.thread_axis(\"vthread\"), found 'vthread'",
    ),
    "an intrinsic by name": (
        lambda s: s[B].tensorize(B.axis[1], "gemm"),
        "tensorize B.j: expected an intrinsic, or several as vdla.intrinsics gives them, "
        "found 'gemm'",
    ),
    "no intrinsic": (
        lambda s: s[B].tensorize(B.axis[1], None),
        "tensorize B.j: expected an intrinsic, or several as vdla.intrinsics gives them, "
        "found None",
    ),
    "no stage": (
        lambda s: s[3], "stage: expected a tensor, an operation or a name, found 3"
    ),
    "a copy for nobody": (
        lambda s: s.cache_read(A, vdla.ACC, [3]),
        "stage: expected a tensor, an operation or a name, found 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEDULES)
def test_schedules(case):
    primitive, line = SCHEDULES[case]
    with pytest.raises(vdla.UserError) as error:
        primitive(te.create_schedule(B))
    assert str(error.value).startswith(line)


def test_one_reader_needs_no_list():
    s = te.create_schedule(B)
    copy = s.cache_read(A, vdla.ACC, B)
    assert copy.name == "A_acc"
    assert s.trace[0].args == {"scope": vdla.ACC, "readers": ["B"]}


BUILDS = {
    "arguments": (
        lambda s: vdla.build(s, A, "cpu"), "build: expected a list of arguments, found "
    ),
    "a target": (
        lambda s: vdla.build(s, [A, B], 3),
        "config: expected a config, its name or TOML file, found int",
    ),
    "no target": (
        lambda s: vdla.build(s, [A, B], None),
        "config: expected a config, its name or TOML file, found NoneType",
    ),
    "settings": (
        lambda s: vdla.build(s, [A, B], "tiny", "acc_bytes=64"),
        "settings: expected a list of KEY=VALUE, found 'acc_bytes=64'",
    ),
    "intrinsics": (
        lambda s: vdla.intrinsics(3), "config: expected a config, its name or TOML file, found int"
    ),
    "a text": (lambda s: vdla.parse(3), "parse: expected a text, found int"),
}  # fmt: skip


@pytest.mark.parametrize("case", BUILDS)
def test_builds(case):
    call, line = BUILDS[case]
    with pytest.raises(vdla.UserError) as error:
        call(te.create_schedule(B))
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("name", "expression", "line"),
    [
        (3, lambda x: x, "register_operator: expected domain::OpType with a domain of your own, "
                         "found 3"),
        ("mine::Op", 3, "register_operator mine::Op: expected an expression as a function, "
                        "found 3"),
    ],
)  # fmt: skip
def test_operators(name, expression, line):
    with pytest.raises(vdla.UserError) as error:
        vdla.register_operator(name, expression)
    assert str(error.value) == line


def test_a_graph_that_is_laid_out_already(tmp_path):
    vdla.compile("digits", "tiny", dump=tmp_path)
    graph = read_graph(next((tmp_path / "graph").glob("*_layout.txt")))
    with pytest.raises(GraphError) as error:
        compile_graph(graph, load_config("tiny"))
    assert str(error.value).endswith(
        " in blocks of 4 channels; a graph after the pass layout or block_images is laid out for "
        "its device and doesn't compile again"
    )


def test_whatever_numpy_has_is_a_number():
    for value in (np.float32(2), np.int8(2), np.bool_(True), np.array(2.0)):
        assert te.const(value, "float32").value == float(value)
