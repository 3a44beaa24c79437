"""Intrinsics of one config in a kernel for another: refused where they aren't the same."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import vdla
from vdla import te
from vdla.compiler.targets.accelerator.description.fit import IntrinsicError, check_intrinsics
from vdla.compiler.tir.ir import Evaluate, PrimFunc
from vdla.compiler.tir.visitor import walk
from vdla.isa.config import load_config

OTHER = re.compile(
    r"main: expected intrinsics of config (\w+), where an entry of (vdla\.\w+) is (\[[\d, ]+\]), "
    r"found (\w+) of config (\w+) with (\[[\d, ]+\]); tensorize with the intrinsics of \1, as "
    r"vdla\.intrinsics gives them"
)


def plus_one(config, lanes=16):
    """X + 1 on ten vectors of so many lanes, by the intrinsics of a config."""
    ins, width = vdla.intrinsics(config), vdla.intrinsics(config).alu_add.output.shape[0]
    x = te.placeholder((10, lanes), "int32", "X")
    y = te.compute(x.shape, lambda i, l: x[i, l] + 1, "Y")
    s = te.create_schedule(y)
    made = s.cache_write(y, vdla.ACC)
    for stage in (y, made, s.cache_read(x, vdla.ACC, [made])):
        _, inner = s[stage].split(s[stage].axis[1], width)
        s[stage].tensorize(inner, ins)
    return s, [x, y]


def product(config):
    """A product of one row, by the intrinsics of a config."""
    ins, config = vdla.intrinsics(config), load_config(config)
    n, m = config.block_in, config.block_out
    a, w = te.placeholder((1, n), "int8", "A"), te.placeholder((1, m, n), "int8", "W")
    k = te.reduce_axis((0, n), "k")

    def value(i, o):
        return te.sum(a[i, k].astype("int32") * w[0, o, k].astype("int32"), axis=k)

    c = te.compute((1, m), value, "C")
    s = te.create_schedule(c)
    made = s.cache_write(c, vdla.ACC)
    copies = s.cache_read(a, vdla.INP, [made]), s.cache_read(w, vdla.WGT, [made])
    for stage in (c, made, *copies):
        s[stage].tensorize(s[stage].axis[1], ins)
    return s, [a, w, c]


@pytest.mark.parametrize(
    ("own", "target"), [("paper", "tiny"), ("tiny", "paper"), ("paper", "wide")]
)
@pytest.mark.parametrize("program", [plus_one, product])
def test_a_schedule_for_another_config_is_refused(own, target, program):
    s, args = program(own)
    with pytest.raises(IntrinsicError) as error:
        vdla.build(s, args, target)
    wanted, _, _, _, found, _ = OTHER.fullmatch(str(error.value)).groups()
    assert (wanted, found) == (target, own)


def test_the_message_says_which_intrinsic_and_what_would_help():
    s, args = plus_one("paper")
    with pytest.raises(IntrinsicError) as error:
        vdla.build(s, args, "tiny")
    assert str(error.value) == (
        "main: expected intrinsics of config tiny, where an entry of vdla.acc is [4], found "
        "load_acc of config paper with [16]; tensorize with the intrinsics of tiny, as "
        "vdla.intrinsics gives them"
    )


def test_a_text_for_another_config_is_refused():
    s, args = plus_one("paper")
    text = vdla.build(s, args, "paper").passes["loops"]
    with pytest.raises(IntrinsicError, match="found load_acc of config paper"):
        vdla.build(vdla.parse(text, "paper"), target="tiny")


def test_an_intrinsic_that_promises_more_than_a_field_holds_is_refused():
    config = load_config("tiny")
    s, _ = plus_one("tiny")
    add = vdla.intrinsics("tiny").alu_add_imm
    wider = replace(add, laws=replace(add.laws, ranges={"imm": (-(1 << 40), 1 << 40)}))
    call = next(x.call for x in walk(s.lower().body) if _calls(x, add))
    func = PrimFunc("main", (), Evaluate(replace(call, intrin=wider)))
    with pytest.raises(IntrinsicError) as error:
        check_intrinsics(func, config)
    assert str(error.value) == (
        "main: expected intrinsics of config tiny, where imm is from -2147483648 to 2147483647, "
        "found alu_add_imm of config tiny with -1099511627776 to 1099511627776; tensorize with "
        "the intrinsics of tiny, as vdla.intrinsics gives them"
    )


def _calls(stmt, intrin):
    return isinstance(stmt, Evaluate) and stmt.call.intrin is intrin


@pytest.mark.parametrize("setting", ["acc_bytes=8192", "memory.latency=9", "token_queue=2"])
def test_configs_with_the_same_blocks_have_the_same_intrinsics(setting):
    s, args = plus_one("tiny")
    kernel = vdla.build(s, args, "tiny", [setting])
    x = np.arange(160, dtype=np.int32).reshape(10, 16)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize("config", ["tiny", "paper"])
def test_the_processor_takes_intrinsics_of_any_config(config):
    """They run there by what they declare, on vectors of their own length."""
    s, args = plus_one(config)
    x = np.arange(160, dtype=np.int32).reshape(10, 16)
    y = np.zeros_like(x)
    vdla.build(s, args, "cpu")(x, y)
    np.testing.assert_array_equal(y, x + 1)
