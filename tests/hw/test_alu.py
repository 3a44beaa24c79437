"""ALU: each operation against Python's integers, a micro-op in every cycle, GEMM's among them."""

from __future__ import annotations

from random import Random

import pytest
from arithmetic import near, simulate, wrapped
from plain_operations import result

from vdla.hw.alu import Alu
from vdla.hw.multipliers import DEPTH
from vdla.hw.options.tables import LOOKED_UP
from vdla.isa.config import load_config
from vdla.isa.instructions import AluOp, operations
from vdla.isa.numbers import pack_scale
from vdla.isa.operations import X
from vdla.isa.options.tables import tables

OPERATIONS = {  # of configs with an option, or without
    option: operations(load_config("tiny", [option]))
    for option in ("table_bytes=0", "table_bytes=512", "reciprocal_units=1")
}
PLAIN = OPERATIONS["table_bytes=0"]
RESULTS = [Random(4).randrange(-(1 << 15), 1 << 15) for _ in range(256)]  # of the table


def micro_op(random, op):
    """A micro-op with what GEMM would add to it; ``op`` None is GEMM's own. ``word`` is what the
    units have of its y."""
    y, imm = near(random, 32), near(random, 32)
    if op == AluOp.RQ:
        y, imm = pack_scale(random.random()), pack_scale(random.random())
    elif op is not None and op.imm == "scale":
        y, imm = (random.getrandbits(24) | random.randrange(64) << 24 for _ in range(2))
    return {
        "gemm": op is None,
        "op": random.choice(PLAIN) if op is None else op,
        "first": random.random() < 0.2,
        "x": near(random, 32),
        "y": y,
        "imm": imm,
        "use_imm": random.randrange(2),
        "weight": near(random, 24),
        "sums": near(random, 24),
        "carry": random.randrange(2),
        "word": random.getrandbits(30),
        **{name: near(random, 9) for name in ("zero", "low", "high")},
    }


def reads_late(u):
    """Whether the operation uses the accumulator that late."""
    return u["gemm"] or not (u["first"] or u["op"].x is not X.LATE)


def inverts(u):
    return u["op"].serial and not (u["gemm"] or u["first"])


def looks_up(u):
    return u["op"] == AluOp.TABLE and not (u["gemm"] or u["first"])


def expected(u):
    """What the manual says."""
    x, y = u["x"], u["y"]
    if u["use_imm"] and not u["op"].y_from_acc:
        y = u["imm"]
    if u["gemm"]:
        return wrapped(x + u["sums"] + u["carry"], 32)
    if u["first"]:
        return y
    if looks_up(u):
        return RESULTS[y % 256]
    if inverts(u):
        return u["word"]
    fields = (u[name] for name in ("imm", "weight", "zero", "low", "high"))
    return wrapped(result(u["op"], x, y, *fields), 32)


def stream(micro_ops, option="table_bytes=512"):
    """The results of micro-ops given in consecutive cycles, on a config with an option."""
    config = load_config("tiny", [option])
    unit, results = Alu(config), []
    idle = micro_op(Random(0), AluOp.ADD)
    padded = [*[idle] * DEPTH, *micro_ops, *[idle] * DEPTH]

    async def drive(ctx):
        index = 0
        for n in range(DEPTH, len(padded)):
            early, late, now = padded[n], padded[n - DEPTH + 1], padded[n - DEPTH]
            for name in ("op", "use_imm", "imm", "weight"):
                ctx.set(getattr(unit, name), early[name])
            ctx.set(unit.x[0], early["x"])
            ctx.set(unit.y[0], early["y"])
            for name in ("op", "use_imm", "imm", "first", "gemm"):
                ctx.set(getattr(unit, f"late_{name}"), late[name])
            for name in ("zero", "low", "high"):
                ctx.set(getattr(unit, name), late[name])
            none = now["word"] if inverts(now) else 0
            ctx.set(unit.late_x[0], now["x"] if reads_late(now) else none)
            ctx.set(unit.sums[0], now["sums"] if now["gemm"] else 0)
            ctx.set(unit.carry, now["carry"])
            if tables(config):
                found = looks_up(late)
                ctx.set(unit.looked_up, found)
                ctx.set(unit.results[0], RESULTS[index] if found else -1)
                index = ctx.get(unit.indices[0])  # of the micro-op that is ``late`` next
                assert n < DEPTH + LOOKED_UP or index == padded[n - LOOKED_UP]["y"] % 256
            await ctx.tick()
            results.append(ctx.get(unit.result[0]))

    simulate(unit, drive)
    return results[DEPTH : DEPTH + len(micro_ops)]


@pytest.mark.parametrize("op", [*AluOp, None], ids=lambda op: op.name if op is not None else "GEMM")
def test_operation(op):
    random = Random(1)
    micro_ops = [micro_op(random, op) for _ in range(200)]
    for option, known in OPERATIONS.items():
        if op is None or op in known:
            assert stream(micro_ops, option) == [expected(u) for u in micro_ops], option


@pytest.mark.parametrize("option", OPERATIONS)
def test_operations_in_turn(option):
    random, ops = Random(2), [*OPERATIONS[option], None]
    micro_ops = [micro_op(random, random.choice(ops)) for _ in range(1000)]
    assert stream(micro_ops, option) == [expected(u) for u in micro_ops]


def test_every_shift():
    random = Random(3)
    micro_ops = [
        {**micro_op(random, AluOp.SHR), "first": False, "x": x, "y": y + 64 * n, "imm": y + 64 * n}
        for n, y in enumerate(range(-32, 32))
        for x in (-(1 << 31), (1 << 31) - 1, -1, 1, 0x12345678, -0x12345678, 0x15555, 0x2AAAA)
    ]
    assert stream(micro_ops) == [expected(u) for u in micro_ops]
