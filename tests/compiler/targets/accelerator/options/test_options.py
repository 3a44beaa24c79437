"""What each option gives the compiler, and what it says where a config hasn't it."""

from __future__ import annotations

import pytest

import vdla
from vdla.compiler.targets.accelerator.description.declared import Declared
from vdla.compiler.targets.accelerator.description.engines import alu_beside_gemm
from vdla.compiler.targets.accelerator.description.gemm import from_zero
from vdla.compiler.targets.accelerator.description.intrinsics import add_intrinsics
from vdla.compiler.targets.accelerator.options.forwarding import no_forwarding
from vdla.compiler.targets.accelerator.options.reciprocals import no_reciprocals
from vdla.compiler.targets.accelerator.options.tables import no_tables, no_two_tables
from vdla.compiler.targets.accelerator.options.window import gemm_window
from vdla.compiler.targets.accelerator.passes.added import added_passes
from vdla.isa.config import load_config

PLAIN = load_config("tiny")
INTRINSICS = {
    "table_bytes=512": ["load_tab", "alu_table"],
    "forwarding=1": ["keep8", "keep8_pad"],
    "reciprocal_units=2": ["alu_scale", "alu_scale_imm", "alu_reciprocal", "alu_rsqrt"],
    "window_taps=2": [],
    "vector_engine=1": [],
    "weights4=1": ["load_wgt4"],
}


@pytest.mark.parametrize("setting", INTRINSICS)
def test_an_options_intrinsics(setting):
    plain = [each.name for each in vdla.intrinsics("tiny")]
    names = [each.name for each in vdla.intrinsics("tiny", [setting])]
    assert [name for name in names if name not in plain] == INTRINSICS[setting]
    assert [name for name in names if name in plain] == plain


def test_intrinsics_by_name():
    ins = vdla.intrinsics("tiny")
    assert ins["alu_add"] is ins.alu_add is vdla.intrinsics("tiny").alu_add
    assert "alu_add" in dir(ins)
    assert "alu_wsub         x - y, of 18 bits each\n" in str(ins)
    assert "keep8" not in str(ins)
    with pytest.raises(AttributeError, match="Intrinsics: expected an intrinsic, found alu_sine"):
        _ = ins.alu_sine
    with pytest.raises(ValueError, match="intrinsics: expected other names than gemm_zero"):
        add_intrinsics(Declared("gemm_zero", "again", from_zero))


def test_what_refusals_say():
    assert no_tables(PLAIN) == "config tiny has no tables for functions (table_bytes = 0)"
    assert no_tables(PLAIN, "exponentials").startswith("config tiny has no tables for exponentials")
    assert no_two_tables(load_config("tiny", ["table_bytes=512"])) == (
        "config tiny has no two tables for functions"
    )
    assert no_reciprocals(PLAIN) == "config tiny has no reciprocals (reciprocal_units = 0)"
    assert no_forwarding(PLAIN) == "config tiny has no STORE to INP (forwarding = 0)"


def test_a_config_with_all_options_is_refused_nothing():
    full = load_config("paper-full")
    refusals = no_tables, no_two_tables, no_reciprocals, no_forwarding
    assert [refusal(full) for refusal in refusals] == [None] * len(refusals)


def test_loops_of_a_window_have_a_pass_more():
    windowed = load_config("tiny", ["window_taps=2"])
    assert [each.name for each in added_passes(windowed)] == ["window_rows"]
    assert added_passes(PLAIN) == []
    assert gemm_window(1, 2, windowed) is gemm_window(1, 2, windowed)


def test_alu_beside_gemm():
    assert alu_beside_gemm(load_config("tiny", ["vector_engine=1"]))
    assert not alu_beside_gemm(PLAIN)
