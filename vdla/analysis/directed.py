"""Sound programs for lockstep, made for what chance reaches too seldom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp, Finish, Instruction, Load, Mem, Store
from vdla.isa.numbers import MANTISSA_BITS
from vdla.isa.program import Program
from vdla.isa.ring import ring_of
from vdla.sim.random_programs import DATA_AT, DRAM_BYTES
from vdla.support.seams import Seam

ONE = {"x_size": 1, "y_size": 1, "z_size": 1}

Makers = Mapping[str, Callable[[Config, Random], Program]]  # of programs, by their names
PROGRAMS: Seam[Callable[[Config], Makers]] = Seam()  # of options


def directed(config: Config) -> Makers:
    """Makers of the programs, by their names; those of options are there where these are on."""
    makers: dict[str, Callable[[Config, Random], Program]] = {"many STOREs": _stores, "ties": _ties}
    for each in PROGRAMS:
        makers |= each(config)
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
    pass_token(config, scales_in, narrow)
    pass_token(config, scales_in, rounded)
    pass_token(config, narrow, rounded)
    pass_token(config, rounded, wide)
    words = {DATA_AT: halves, DATA_AT + 4096: scales}
    data = {at: np.array(part, np.int32).tobytes() for at, part in words.items()}
    return Program(config, stream, DRAM_BYTES // 2, data)


def pass_token(config: Config, giver: Instruction, taker: Instruction) -> None:
    """Sets the flags of a token from one instruction to another."""
    ring = ring_of(config)
    queue = ring.token_queue(ring.engine_of(giver), ring.engine_of(taker))
    setattr(giver, queue.push, 1)
    setattr(taker, queue.pop, 1)
