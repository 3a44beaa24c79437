"""What a model is built from and kept under; Verilator and the compiler are pretended."""

from __future__ import annotations

import pytest

from vdla.isa.config import load_config
from vdla.runtime.errors import DeviceError
from vdla.runtime.rtl import build as build_

TINY = load_config("tiny")
NAMES = ("inp", "wgt", "acc", "uop")
MEMORIES = [f"VlUnpacked<VlWide<4>, 64> vdla__DOT__core__DOT__{name}__DOT__mem;" for name in NAMES]


@pytest.fixture
def made(monkeypatch, tmp_path):
    """What was asked of the tools, one call behind the other; the model's header on top."""
    calls = []
    header = tmp_path / "header"
    header.write_text("\n".join(MEMORIES))

    def verilate(work, top, sources, *, trace):
        (work / "model").mkdir()
        (work / "model" / "Vvdla___024root.h").write_text(header.read_text())
        texts = [(work / name).read_text() for name in sources]
        calls.append(("verilate", top, texts, trace))

    def compile_model(work, bench, output, *, trace):
        calls.append(("compile", bench.name, (work / "names.h").read_text(), trace))
        (work / output).write_text("library")

    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build_, "verilog", lambda config: f"module {config.name}")
    monkeypatch.setattr(build_, "need_tools", lambda: None)
    monkeypatch.setattr(build_, "need_headers", lambda: calls.append("headers"))
    monkeypatch.setattr(build_, "verilate", verilate)
    monkeypatch.setattr(build_, "compile_model", compile_model)
    calls.append(header)
    return calls


def test_a_model_is_built_once_per_config_with_and_without_waves(made, capsys):
    plain = build_.build(TINY)
    assert plain.read_text() == "library"
    (_, top, (public, verilog), traced), (_, bench, names, both) = made[1:]
    assert (top, bench, verilog, traced, both) == ("vdla", "bench.cpp", "module tiny", False, False)
    assert '-module "vdla.core.wgt" -var "mem"' in public
    assert "VDLA_SCRATCHPAD(3, vdla__DOT__core__DOT__uop__DOT__mem)" in names
    assert "#define VDLA_PORT_BYTES 4\n" in names
    assert '/runtime/rtl/dram.h"\n' in names
    said = capsys.readouterr().err
    assert said == "vdla: building the RTL of config tiny, once for these sources\n"
    assert build_.build(TINY) == plain
    assert capsys.readouterr().err == ""
    assert len(made) == 3
    waves = build_.build(TINY, trace=True)
    assert waves.parent.name == f"{plain.parent.name}-trace"
    assert made[3] == "headers"
    assert [call[-1] for call in made[4:]] == [True, True]
    assert build_.build(load_config("paper")) not in (plain, waves)


@pytest.mark.parametrize("memories", [MEMORIES[:2] + MEMORIES[3:], [*MEMORIES, "acc"]])
def test_a_model_names_each_scratchpad_once(made, memories):
    """Verilator may call them otherwise one day."""
    twice = MEMORIES[2].replace("vdla__DOT__", "copy__DOT__")
    made[0].write_text("\n".join(twice if line == "acc" else line for line in memories))
    with pytest.raises(DeviceError, match=r"^device rtl: expected one memory named acc, found \["):
        build_.build(TINY)
