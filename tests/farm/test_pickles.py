"""Jobs travel to machines that have vdla and no more."""

from __future__ import annotations

import pickle
import subprocess
import sys

from vdla.farm.pickles import Boxed, dumps

SCRIPT = """
import helper
from dataclasses import dataclass
from vdla.farm.pickles import Boxed, dumps

@dataclass
class Pair:
    first: int
    second: int

def function(number):
    return Pair(number, helper.twice(number))

if __name__ == "__main__":
    import pickle, subprocess, sys
    data = dumps((Boxed(function), (21,)))
    away = (
        "import pickle, sys; f, args = pickle.load(sys.stdin.buffer);"
        "sys.stdout.buffer.write(f(*args))"
    )
    done = subprocess.run([sys.executable, "-c", away], input=data, capture_output=True, cwd="/")
    assert done.returncode == 0, done.stderr.decode()
    value = pickle.loads(done.stdout)
    assert isinstance(value, Pair), type(value)
    print(value)
"""


def test_what_a_script_and_files_beside_it_define_travels_whole(tmp_path):
    (tmp_path / "helper.py").write_text("def twice(number):\n    return 2 * number\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("Pair(first=21, second=42)\n", "")


def test_what_every_machine_has_travels_by_name():
    assert len(dumps(dumps)) < 100
    assert len(dumps(subprocess.run)) < 100


def test_a_boxed_functions_value_is_bytes():
    assert pickle.loads(Boxed(len)("abc")) == 3
