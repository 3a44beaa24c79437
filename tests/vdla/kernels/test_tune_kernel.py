"""``vdla tune FILE.py:FUNCTION`` and ``build(…, records=…)``: a user's kernel, and what is none."""

from __future__ import annotations

import json

import numpy as np
import pytest
from processor import HAS_VNNI

import vdla
from vdla import te
from vdla.compiler.search.records import load
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.support.errors import UserError

FILE = """
from vdla import te

def matmul(n, m=32, k=16):
    a, b = te.placeholder((n, k), "float32", "a"), te.placeholder((k, m), "float32", "b")
    r = te.reduce_axis((0, k), "r")
    return te.compute((n, m), lambda y, x: te.sum(a[y, r] * b[r, x], axis=r), "c")

def scheduled():
    s = te.create_schedule(matmul(24))
    s["c"].split("c.y", factor=4)
    return s

def with_arrays():
    a, b = (te.placeholder((24, 24), "float32", name) for name in "ab")
    r = te.reduce_axis((0, 24), "r")
    c = te.compute((24, 24), lambda y, x: te.sum(a[y, r] * b[r, x], axis=r), "c")
    return te.create_schedule(c.op), [a, b, c]

def arrays():
    return list(with_arrays()[1])

def number():
    return 3

def broken():
    return 1 // 0

def unknown():
    n = te.var("n")
    a = te.placeholder((n,), "float32", "a")
    return te.compute((n,), lambda i: a[i] + a[i], "twice")

def two():
    a = te.placeholder((8,), "float32", "a")
    b, c = (te.compute((8,), lambda i: a[i] + x, name) for x, name in ((1.0, "b"), (2.0, "c")))
    return te.create_schedule([b, c])
"""
SKETCH = {"target": "cpu", "strategy": "sketch", "searcher": "random"}


def refused(done) -> str:
    assert done.code == 2, done
    assert done.out == ""
    (line,) = done.err.strip().splitlines()
    return line.removeprefix("vdla: ")


WIDE = pytest.mark.skipif(not HAS_VNNI, reason="expected a processor with VNNI")


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of kernels in this folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(FILE)
    return tmp_path / "own.py"


def matmul(n, m, k):
    """[n, m] sums over k, scheduled badly."""
    a, b = te.placeholder((n, k), "float32", "a"), te.placeholder((k, m), "float32", "b")
    r = te.reduce_axis((0, k), "r")
    c = te.compute((n, m), lambda y, x: te.sum(a[y, r] * b[r, x], axis=r), "c")
    s = te.create_schedule(c)
    x, y = s[c].axis[1], s[c].axis[0]
    s[c].reorder(x, y)
    return s, [a, b, c]


def test_the_command_tunes_a_function_of_a_file(vdla, file, tmp_path):
    asked = ("tune", "own.py:matmul", "--shape", "n=40", "--target", "cpu", "--strategy", "sketch")
    done = vdla(*asked, "--searcher", "random", "--trials", 3, "--log", "log", "--json")
    assert done.code == 0, done
    (function,) = done.json["functions"]
    assert (function["layers"], function["trials"]) == (["c"], 3)
    assert len(load(tmp_path / "log", FunctionRecord)) == 3


def test_build_takes_what_was_found(tmp_path):
    log = tmp_path / "log"
    s, args = matmul(40, 32, 16)
    (task,) = vdla.tune(s, log, trials=4, **SKETCH)
    assert task.trials == 4
    record = next(r for r in map(json.loads, log.read_text().splitlines()) if r["status"] == "ok")
    log.write_text(json.dumps(record | {"seconds": 1.0, "reference": 2.0}) + "\n")
    plain = vdla.build(s, args, "cpu")
    tuned = vdla.build(s, args, "cpu", records=log)
    assert tuned.passes["loops"] != plain.passes["loops"]
    unused = log.with_name("slow")
    unused.write_text(json.dumps(record | {"seconds": 2.0, "reference": 1.0}) + "\n")
    assert vdla.build(s, args, "cpu", records=unused).passes["loops"] == plain.passes["loops"]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype("float32") for shape in ((40, 16), (16, 32)))
    c = np.zeros((40, 32), "float32")
    tuned(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_a_users_schedule_is_what_counts_as_default(tmp_path):
    s, _ = matmul(40, 32, 16)
    (task,) = vdla.tune(s, tmp_path / "log", trials=1, **SKETCH)
    assert task.function.default == s.trace
    s[task.function.result].split(s[task.function.result].axis[0], factor=4)
    (task,) = vdla.tune(s, tmp_path / "template", trials=2, **SKETCH | {"strategy": "template"})
    (knob,) = task.space.sketches[0].knobs
    assert knob.values == (1, 2, 4, 5, 8, 10, 20, 40)


def test_indices_stay_within_what_they_point_into(tmp_path):
    at, table = te.placeholder((64,), "int32", "at"), te.placeholder((10, 32), "float32", "table")
    rows = te.compute((64, 32), lambda i, j: table[at[i], j] + table[at[i], j], "rows")
    (task,) = vdla.tune(te.create_schedule(rows), tmp_path / "log", trials=2, **SKETCH)
    assert task.counts["ok"] == 2


@WIDE
def test_products_of_bytes_use_the_processors_instruction(tmp_path):
    a, b = te.placeholder((32, 4, 4), "uint8", "a"), te.placeholder((4, 16, 4), "int8", "b")
    k, word = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 4), "word")
    first = te.placeholder((16,), "int32", "first")
    product = lambda i, j: a[i, k, word].astype("int32") * b[k, j, word].astype("int32")  # noqa: E731
    c = te.compute((32, 16), lambda i, j: te.sum(product(i, j), axis=[k, word], init=first[j]), "c")
    s, log = te.create_schedule(c), tmp_path / "log"
    vdla.tune(s, log, trials=4, **SKETCH)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    record = next(r for r in lines if any(t["primitive"] == "tensorize" for t in r["trace"]))
    log.write_text(json.dumps(record | {"seconds": 1.0, "reference": 2.0}) + "\n")
    kernel = vdla.build(s, [a, b, first, c], "cpu", records=log)
    assert "dot4x16" in kernel.passes["loops"]
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (32, 4, 4)).astype("uint8")
    y = rng.integers(-128, 127, (4, 16, 4)).astype("int8")
    z = np.zeros((32, 16), "int32")
    start = np.arange(16, dtype="int32")
    kernel(x, y, start, z)
    np.testing.assert_array_equal(z, start + np.einsum("ikw,kjw->ij", x.astype(int), y.astype(int)))


@pytest.mark.parametrize("name", ["with_arrays", "arrays"])
def test_what_a_kernels_function_may_return_with_its_arrays(vdla, file, name):
    """As build takes them; or tensors, the result last."""
    done = vdla("tune", f"own.py:{name}", "--target", "cpu", "--strategy", "sketch", "--searcher",
                "random", "--trials", 1, "--log", "log")  # fmt: skip
    assert done.code == 0, done
    assert len(load(file.parent / "log", FunctionRecord)) >= 1


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        ("no.py:f", (), "no.py:f: expected the Python file no.py, found none"),
        ("own.py:conv", (), "own.py: expected a function conv, found matmul, scheduled, "
         "with_arrays, arrays, number, broken, unknown, two"),
        ("own.py:number", (), "own.py:number: expected a tensor or a schedule of te, alone or with "
                              "its arrays, as (schedule, [A, B, C]), found int"),
        ("own.py:broken", (), "own.py:broken: expected a kernel, found ZeroDivisionError: integer "
         "division or modulo by zero"),
        ("own.py:matmul", (), "own.py:matmul: expected --shape n=N, found none"),
        ("own.py:matmul", ("--shape", "n=4", "--shape", "q=4"),
         "sizes: expected those of te.var, none, found q"),
        ("own.py:matmul", ("--shape", "n=4", "--shape", "b=2,2"),
         "sizes: expected b to be a whole number, found (2, 2)"),
        ("own.py:unknown", (), "sizes: expected those of te.var, n, found none"),
        ("own.py:two", (), "kernel: expected one result, found b, c"),
        pytest.param(
            "own.py:matmul", ("--shape", "n=4", "--strategy", "template"),
            "c: expected a kernel that --strategy template can schedule, found nothing to vary in "
            "it; try the other strategy",
            marks=WIDE),
    ],
)  # fmt: skip
def test_what_is_no_kernel(vdla, file, name, more, told):
    asked = ("tune", name, "--target", "cpu", "--strategy", "sketch", "--searcher", "random")
    assert refused(vdla(*asked, *more, "--log", "log")) == told


def test_a_file_that_does_not_run(vdla, file):
    file.write_text("import nowhere_at_all")
    done = vdla("tune", "own.py:f", "--target", "cpu", "--log", "log")
    assert refused(done) == (
        "own.py: expected a file that runs, found ModuleNotFoundError: No module named "
        "'nowhere_at_all'"
    )


@pytest.mark.parametrize("target", ["accelerator", "gpu"])
def test_kernels_are_tuned_on_processors_alone(vdla, file, target):
    done = vdla("tune", "own.py:scheduled", "--target", target, "--log", "log")
    assert refused(done) == (
        "--target: expected one of cpu, x86-64-v3, x86-64-v4 for a kernel of te, found " + target
    )


def test_what_build_refuses_with_records(tmp_path):
    s, args = matmul(8, 8, 8)
    with pytest.raises(UserError) as raised:
        vdla.build(s, args, "sm_80", records="log")
    assert str(raised.value) == (
        'build: expected the target "cpu" or a config with records, found sm_80'
    )
    text = vdla.build(s, args, "cpu").passes["loops"]
    with pytest.raises(UserError) as raised:
        vdla.build(vdla.parse(text, "cpu"), target="cpu", records="log")
    assert str(raised.value) == "build: expected a schedule with records, found a function"
