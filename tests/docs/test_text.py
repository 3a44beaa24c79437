"""The texts in docs/text.md are those that the compiler prints."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

import vdla
from vdla import te

PAGE = (Path(__file__).parents[2] / "docs" / "text.md").read_text()


def test_the_program_of_the_page():
    program = next(part for part in PAGE.split("```") if part.startswith("\nfunc main("))[1:]
    A = te.placeholder((6, 4), "int32", "A")
    C = te.compute((6, 4), lambda i, l: A[i, l] + 3, "C")
    s = te.create_schedule(C, [A])
    made = s.cache_write(C, vdla.ACC)
    copy = s.cache_read(A, vdla.ACC, [made])
    for tensor in (copy, made, C):
        s[tensor].tensorize(s[tensor].axis[1], vdla.intrinsics("tiny"))
    kernel = vdla.build(s, [A, C], "tiny")
    assert kernel.passes["loops"] + "\n" == program
    edited = vdla.build(vdla.parse(program.replace("imm=3", "imm=5"), "tiny"), target="tiny")
    a = np.arange(24, dtype=np.int32).reshape(6, 4)
    c = np.zeros_like(a)
    edited(a, c)
    np.testing.assert_array_equal(c, a + 5)


def test_the_python_of_the_page(tmp_path):
    """In a file of its own, since the source is read."""
    start = PAGE.index("## As Python")
    code = PAGE[start:].split("```python\n")[1].split("```")[0]
    path = tmp_path / "own.py"
    path.write_text("import vdla\n\n" + code)
    spec = importlib.util.spec_from_file_location("own", path)
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    a = np.arange(24, dtype=np.int32).reshape(6, 4)
    c = np.zeros_like(a)
    own.kernel(a, c)
    np.testing.assert_array_equal(c, a + 3)
    assert vdla.parse(str(own.added), "tiny") == vdla.parse(own.added.script(), "tiny") == own.added
