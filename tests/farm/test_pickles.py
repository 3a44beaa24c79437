"""Jobs travel to machines that have vdla and no more."""

from __future__ import annotations

import os
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


def test_a_package_in_a_further_folder_of_the_path_travels_by_name(tmp_path):
    """As the dependencies of an installation with a .pth file, or --system-site-packages, are."""
    (tmp_path / "elsewhere.py").write_text("def twice(number):\n    return 2 * number\n")
    script = (
        "import elsewhere; from vdla.farm.pickles import dumps; print(len(dumps(elsewhere.twice)))"
    )

    def size():
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, cwd="/",
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert size() > 100  # whole: no package was installed there
    (tmp_path / "elsewhere-1.0.dist-info").mkdir()
    assert size() < 60
