"""The code in docs/control.md runs as it stands, and prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "control.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_code_prints_what_stands_below_it(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files that it writes
    names: dict[str, object] = {}
    for code, printed in BLOCKS:
        exec(compile(code, "model.py", "exec"), names)
        assert capsys.readouterr().out == printed


def test_all_code_is_run():
    assert len(BLOCKS) == PAGE.count("```python") == 9
