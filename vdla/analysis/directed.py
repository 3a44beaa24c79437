"""Sound programs for lockstep, made for what chance reaches too seldom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp, Finish, Instruction, Load, Mem, Store
from vdla.isa.numbers import MANTISSA_BITS
from vdla.isa.options.forwarding import forwards
from vdla.isa.options.tables import tables
from vdla.isa.program import Program
from vdla.isa.ring import ring_of
from vdla.sim.random_programs import DATA_AT, DRAM_BYTES

ONE = {"x_size": 1, "y_size": 1, "z_size": 1}


def directed(config: Config) -> Mapping[str, Callable[[Config, Random], Program]]:
    """Makers of the programs, by their names; those of options are there where these are on."""
    makers = {"many STOREs": _stores, "ties": _ties}
    if tables(config) > 1:
        makers["a table beside another"] = _tables
    if forwards(config):
        makers["STOREs to INP beside LOADs"] = _forwards
    return makers


def _stores(config: Config, rng: Random) -> Program:
    """More than may be in flight, as fast as they can be read."""
    port = config.port_bytes
    return Program(config, [
        *(Store(memory=Mem.ACC8, dram_base=DATA_AT + port * rng.randrange(64), **ONE)
          for _ in range(20)),
        Finish(),
    ], DRAM_BYTES // 2)  # fmt: skip


def _ties(config: Config, rng: Random) -> Program:
    """Odd halves and quarters of both signs, by ALU and by STORE, within their limits."""
    n = min(4, config.depth("acc") // 2)  # vectors
    lanes = n * config.block_out
    values = [rng.randrange(-250, 250) | 1 for _ in range(lanes)]
    scales = [rng.choice((1, 2)) << MANTISSA_BITS | rng.choice((1, 3)) for _ in range(lanes)]
    halves = [v * 2 if s >> MANTISSA_BITS == 2 else v for v, s in zip(values, scales, strict=True)]
    load = Load(memory=Mem.ACC, x_size=n, y_size=1, z_size=1)
    at = {"dst_base": 0, "extent_0": n, "dst_0": 1, "uop_count": 1}
    scales_in = load.replace(dram_base=DATA_AT + 4096, sram_base=n)
    narrow = Store(memory=Mem.ACC8, dram_base=DATA_AT + 8192, x_size=1, y_size=1, z_size=n,
                   z_pitch=1, z_stride=1, scale_base=n)  # fmt: skip
    rounded = Alu(alu_op=AluOp.RQ, low=-256, high=255, src_base=n, src_0=1, **at)
    wide = Store(memory=Mem.ACC, dram_base=DATA_AT + 12288, x_size=n, y_size=1, z_size=1)
    stream = [load.replace(dram_base=DATA_AT), scales_in, narrow, rounded, wide, Finish()]
    _pass_token(config, scales_in, narrow)
    _pass_token(config, scales_in, rounded)
    _pass_token(config, narrow, rounded)
    _pass_token(config, rounded, wide)
    words = {DATA_AT: halves, DATA_AT + 4096: scales}
    data = {at: np.array(part, np.int32).tobytes() for at, part in words.items()}
    return Program(config, stream, DRAM_BYTES // 2, data)


def _tables(config: Config, rng: Random) -> Program:
    """One table is filled, with rows and padding, while every lane reads another one."""
    words = config.depth("tab") // tables(config)
    read, filled = rng.sample(range(tables(config)), 2)
    entries = min(config.depth("acc") // 2, 64)
    most = min(Alu.extent_0.bounds(config)[1], 9)
    load = Load(memory=Mem.TAB, z_size=1)
    values = Load(memory=Mem.ACC, x_size=entries, y_size=1, z_size=1, dram_base=DATA_AT + 4096)
    look_up = Alu(alu_op=AluOp.TABLE, uop_count=1, extent_0=rng.randint(1, most),
                  extent_1=entries, src_1=1, dst_1=1, dst_base=entries, imm=read)  # fmt: skip
    _pass_token(config, values, look_up)
    stream = [
        load.replace(x_size=words, y_size=1, dram_base=DATA_AT, sram_base=read * words),
        values,
        look_up,
        load.replace(x_size=rng.randint(1, words // 2), y_size=2, y_stride=1, dram_base=DATA_AT,
                     sram_base=filled * words),
        load.replace(pad_x0=rng.randint(1, words // 4), y_size=1, sram_base=filled * words),
        Finish(),
    ]  # fmt: skip
    data = {DATA_AT: rng.randbytes(4096 + entries * config.acc_entry)}
    return Program(config, stream, DRAM_BYTES // 2, data)


def _pass_token(config: Config, giver: Instruction, taker: Instruction) -> None:
    """Sets the flags of a token from one instruction to another."""
    ring = ring_of(config)
    queue = ring.token_queue(ring.engine_of(giver), ring.engine_of(taker))
    setattr(giver, queue.push, 1)
    setattr(taker, queue.pop, 1)


def _forwards(config: Config, rng: Random) -> Program:
    """STOREs write the upper half of INP, and some DRAM, while LOAD fills the lower half.

    ACC holds zeros, so that each STORE writes its own ``zero`` everywhere.
    """
    half = config.depth("inp") // 2
    room = half * config.inp_entry // config.out_entry  # vectors that STORE may write there
    most = min(config.depth("acc"), room, 12)
    stores = []
    for _ in range(12):
        x, zero = rng.randint(1, most), rng.randint(-128, 127)
        store = Store(memory=Mem.ACC8, dram_base=DATA_AT + 12288, x_size=x, y_size=1, z_size=1,
                      x_stride=rng.choice((0, 1)), zero=zero)  # fmt: skip
        if rng.random() < 0.75:
            at = half * config.inp_entry + rng.randint(0, room - x) * config.out_entry
            store = store.replace(memory=Mem.INP, dram_base=at)
        stores.append(store)
    wide = min(half, 40)
    load = Load(memory=Mem.INP, y_size=1, z_size=1, dram_base=DATA_AT)
    loads = [load.replace(x_size=rng.randint(0, wide // 2), pad_x0=wide // 2) for _ in range(8)]
    stream: list[Instruction] = [*stores, *loads]
    rng.shuffle(stream)
    data = {DATA_AT: rng.randbytes(wide * config.inp_entry)}
    return Program(config, [*stream, Finish()], DRAM_BYTES // 2, data)
