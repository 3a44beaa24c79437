"""Loops as machine code: what ships, what numba makes, and a cache that may be damaged."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import lzma
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from itertools import product
from unittest.mock import Mock

import numpy as np
import pytest

from vdla.compiler import ship_loops
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Load, Mem
from vdla.sim.checker import check
from vdla.sim.compiled import LOOPS, arguments, native, shipped
from vdla.sim.machine import simulate, warm_up
from vdla.sim.timing.state import Request
from vdla.support.errors import UserError

USE = """
import sys
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish
from vdla.sim.checker import check
from vdla.sim.machine import simulate, warm_up
for name in ("tiny", "paper-full", "ulx3s"):
    warm_up(load_config(name))
assert check(load_config("tiny"), [Finish()]) == []
print("numba" in sys.modules)
"""


def run(code, **environment):
    """What Python prints on both outputs."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True,
        text=True, check=True, timeout=300,
    )  # fmt: skip
    return done.stdout, done.stderr


# What ships -------------------------------------------------------------------------------------


ELSEWHERE = """
from vdla.sim.compiled import shipped
shipped.FEATURES = ("what no processor has",)
"""


def test_a_first_run_compiles_nothing(tmp_path):
    """Options have no loops of their own to wait for."""
    assert run(USE, VDLA_CACHE=str(tmp_path)) == ("False\n", "")
    assert not list(tmp_path.rglob("*.o"))


def test_another_processor_compiles_the_text_once(tmp_path):
    """And says nothing: that takes two seconds."""
    for _ in range(2):
        assert run(ELSEWHERE + USE, VDLA_CACHE=str(tmp_path)) == ("False\n", "")
        (loop,) = tmp_path.rglob("vdla.sim.semantics._run-*.o")
        made = loop.stat().st_mtime_ns
    assert loop.stat().st_mtime_ns == made


def test_a_cache_is_not_needed(tmp_path):
    """A home that can't be written, as in a container."""
    (tmp_path / "file").write_text("")
    cache = str(tmp_path / "file" / "cache")
    assert run(USE, VDLA_CACHE=cache) == run(ELSEWHERE + USE, VDLA_CACHE=cache) == ("False\n", "")


def test_without_numba_loops_run_as_python():
    """As whoever looks for a fault in them, or measures what tests notice, has them run."""
    assert run(USE, NUMBA_DISABLE_JIT="1")[0] == "False\n"


def test_without_the_package_numba_an_edited_source_is_an_error(monkeypatch):
    """One line, with what to install; loops that ship need no numba."""
    missing = metadata.PackageNotFoundError("numba")
    monkeypatch.setattr(metadata, "version", Mock(side_effect=missing))
    monkeypatch.setattr(native.shipped, "entry_of", lambda *_: None)
    with pytest.raises(UserError, match="expected the package numba, which compiles") as error:
        native.code_of(LOOPS[0], "kinds", ())
    assert str(error.value).startswith(f"{LOOPS[0].title}: ")
    assert "pip install" in str(error.value)


def test_what_ships_is_made_of_these_sources():
    by_name = {loop.name: loop for loop in LOOPS}
    entries = [each for each in shipped.entries() if each.loop in by_name]
    assert {each.loop for each in entries} == {name for name in by_name if name.startswith("vdla.")}
    for each in entries:
        stale = each.sources != native.sources_of(by_name[each.loop])
        assert not stale, f"{each.loop}: its sources have changed; run {ship_loops.COMMAND}"
    files = {path for each in shipped.entries() for path in (each.text, each.code)}
    assert files == {*shipped.FOLDER.glob("*.xz")}


MADE_AGAIN = """
import hashlib, json
from vdla.compiler import ship_loops
from vdla.sim.compiled import shipped
codes = {each.file: ship_loops.code_of(each) for each in shipped.entries()}
print(json.dumps({name: hashlib.sha256(code).hexdigest() for name, code in codes.items()}))
"""


def test_machine_code_that_ships_is_made_of_the_text():
    """By the version of LLVM that the index names; another one makes other code. In a process of
    its own: in one that had run thousands of tests, LLVM once gave a loop other registers."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip(f"machine code for {sys.platform} on {platform.machine()} doesn't ship")
    entries = shipped.entries()
    if (found := {each.llvm for each in entries}) != {ship_loops.VERSION}:
        pytest.skip(f"it was made by LLVM {found}, and this is {ship_loops.VERSION}")
    done = subprocess.run(
        [sys.executable, "-c", MADE_AGAIN], capture_output=True, text=True, check=True
    )
    made = json.loads(done.stdout)
    for each in entries:
        own = hashlib.sha256(lzma.decompress(each.code.read_bytes())).hexdigest()
        assert own == made[each.file], each.file


def test_comments_and_docstrings_mean_nothing(tmp_path, monkeypatch):
    path, loop = tmp_path / "loop.py", LOOPS[0]
    monkeypatch.setattr(native, "ROOMS", ())
    monkeypatch.setattr(native, "own_file", lambda loop: path)

    def meaning(text):
        path.write_text(text)
        return ship_loops.meaning_of(loop)

    plain = meaning("def f(x):\n    return x + 1\n")
    assert meaning('def f(x):\n    """One more."""\n    return x + 1  # one\n') == plain
    assert meaning("def f(x):\n    return x + 2\n") != plain


@pytest.mark.long
def test_numba_makes_what_ships(tmp_path, monkeypatch):
    """The text of every loop once more, byte for byte."""
    before = {path.name: path.read_bytes() for path in shipped.FOLDER.iterdir()}
    code = f"""
from pathlib import Path
from vdla.sim.compiled import shipped
shipped.FOLDER = Path({str(tmp_path)!r})
shipped.INDEX = shipped.FOLDER / "index.json"
from vdla.compiler.ship_loops import main
main()
"""
    run(code)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.keys() == after.keys()
    for name, data in before.items():
        assert lzma.decompress(data) == lzma.decompress(after[name]) if name.endswith("xz") else 1
    assert before == after


# What numba makes -------------------------------------------------------------------------------

LOOP = """
from vdla.sim.compiled import compiled, inline

@inline
def double(x):
    return x + x

@compiled("doubler")
def twice(numbers, by: float, on: bool) -> int:
    for i in range(numbers.shape[0]):
        numbers[i] = double(numbers[i]) if on else numbers[i] * by
    return numbers.shape[0]
"""
CALL = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else ".")
from loop import twice
numbers = np.arange(5)
assert twice(numbers, 3.0, True) == 5
assert twice(numbers, 3.0, False) == 5
print(numbers.tolist(), "numba" in sys.modules)
"""
SAID = "vdla: building the machine code of the doubler, once for these sources"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a loop that doesn't ship."""
    (tmp_path / "loop.py").write_text(LOOP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(folder):
    return run(CALL, VDLA_CACHE=str(folder / "cache"), PYTHONPATH=str(folder))


def test_numba_makes_what_does_not_ship_once(folder):
    assert call(folder) == ("[0, 6, 12, 18, 24] True\n", f"{SAID}\n")
    assert call(folder) == ("[0, 6, 12, 18, 24] False\n", "")
    (folder / "loop.py").write_text(LOOP.replace("x + x", "x + x + x"))
    result, said = call(folder)
    assert result == "[0, 9, 18, 27, 36] True\n"
    assert re.fullmatch(rf"{SAID}; the last one took \d+ s\n", said)


def empty(path):
    path.write_bytes(b"")


def random(path):
    path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size))


def damages():
    """Every damage of every kind of file; most of them are long."""
    often = {("*.o", empty), ("*.ll.xz", random), ("*.sha256", os.remove)}
    for pattern, damage in product(("*.ll.xz", "*.o", "*.sha256"), (empty, random, os.remove)):
        marks = () if (pattern, damage) in often else pytest.mark.long
        yield pytest.param(pattern, damage, marks=marks)


@pytest.mark.parametrize(("pattern", "damage"), list(damages()))
def test_what_is_damaged_is_made_again(pattern, damage, folder):
    call(folder)
    for path in (folder / "cache").rglob(pattern):
        damage(path)
    assert call(folder)[0].startswith("[0, 6, 12, 18, 24]")
    assert call(folder) == ("[0, 6, 12, 18, 24] False\n", "")


def test_what_is_compiled_waits_for_no_lock(tmp_path):
    """Another process compiles something else meanwhile, for as long as it likes."""
    lock = tmp_path / "code" / os.uname().machine / "lock"
    lock.parent.mkdir(parents=True)
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert run(USE, VDLA_CACHE=str(tmp_path)) == ("False\n", "")


@pytest.mark.parametrize("name", ["tiny", "ulx3s", "paper-ring"])
def test_nothing_is_left_to_compile_after_warming_up(name, monkeypatch):
    """The first image that is timed would have it otherwise."""
    warm_up(load_config(name))
    known = [loop.code.copy() for loop in LOOPS]
    monkeypatch.setattr(native, "code_of", None)
    warm_up(load_config(name))
    assert known == [loop.code for loop in LOOPS]


# Arguments --------------------------------------------------------------------------------------


def test_words_and_kinds_of_arguments():
    array, record = np.zeros((2, 3), np.int32), Request.reset()
    words, kinds = arguments.laid_out((array, (7, True, None), 0.5, record))
    assert kinds == "i4[2] tuple( int bool None ) float Request"
    *before, address = words.tolist()
    bits = np.float64(0.5).view(np.int64)
    assert before == [0, 0, 6, 4, array.ctypes.data, 2, 3, 12, 4, 7, 1, 0, bits]
    record.left = 3
    fields = list(Request.__annotations__)
    seen = (ctypes.c_int64 * len(fields)).from_address(address)
    assert dict(zip(fields, seen, strict=True))["left"] == 3


def frozen(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (np.zeros((4, 4))[:, 1], r"found one of float64\[4\] that is spread"),
        (np.zeros(9, np.uint8)[1:].view(np.int64), r"found one of int64\[1\] that is unaligned"),
        (frozen(np.zeros(4)), r"found one of float64\[4\] that is read-only"),
        ("text", "expected arrays, numbers, records or tuples, found <class 'str'>"),
    ],
)
def test_what_no_loop_takes(argument, text):
    with pytest.raises(TypeError, match=text):
        arguments.laid_out([argument])


def test_memory_that_cannot_be_written_is_read_all_the_same():
    """Bytes, say, that a program is checked and timed on."""
    tiny = load_config("tiny")
    program = [Load(memory=Mem.UOP, x_size=1, y_size=1, z_size=1), Finish()]
    dram = np.zeros(4096, np.uint8)
    cycles = simulate(tiny, program, dram, 2048, numerics=False).cycles
    still = frozen(dram.copy())
    assert check(tiny, program, still, 2048) == check(tiny, program, dram, 2048) == []
    assert simulate(tiny, program, still, 2048, numerics=False).cycles == cycles
