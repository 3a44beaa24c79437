"""The schedule function of docs/tutorial.md, "Knobs of your own", is searched as it stands."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import vdla
from vdla import te

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()


def test_the_schedule_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    section = PAGE[PAGE.index("## Knobs of your own") :]
    code = section.split("```python\n")[1].split("```")[0]
    A = te.placeholder((16, 32), "float32", "A")
    C = te.compute((16, 32), lambda y, x: A[y, x] * A[y, x], "C")
    names = {"vdla": vdla, "C": C, "x": C.op.axis[1]}
    exec(code.replace("trials=64", 'trials=6, searcher="random"'), names)
    result = names["result"]
    assert result.task.trials == 6
    a = np.random.default_rng(0).standard_normal((16, 32)).astype("float32")
    c = np.zeros_like(a)
    result.build([A, C])(a, c)
    np.testing.assert_allclose(c, a * a, rtol=1e-6)
    s = te.create_schedule(C)
    names["schedule"](s, vdla.Knobs(rows=8, order="rows", vector=False))
    vdla.build(s, [A, C], "cpu")(a, c)
    np.testing.assert_allclose(c, a * a, rtol=1e-6)
