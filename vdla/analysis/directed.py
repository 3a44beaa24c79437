"""Sound programs for lockstep, made for what chance reaches too seldom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import Alu, AluOp, Finish, Gemm, Instruction, Load, Mem, Store
from vdla.isa.numbers import MANTISSA_BITS, MAX_SHIFT
from vdla.isa.program import Program
from vdla.isa.ring import ring_of
from vdla.sim.random_programs import DATA_AT, DRAM_BYTES
from vdla.support.seams import Seam

RESULTS_AT = 20480  # in DRAM, behind the data
ONE = {"x_size": 1, "y_size": 1, "z_size": 1}

Makers = Mapping[str, Callable[[Config, Random], Program]]  # of programs, by their names
PROGRAMS: Seam[Callable[[Config], Makers]] = Seam()  # of options


def directed(config: Config) -> Makers:
    """Makers of the programs, by their names; those of options are there where these are on."""
    makers: dict[str, Callable[[Config, Random], Program]] = {
        "many STOREs": _stores,
        "ties": _ties,
        "numbers": _numbers,
    }
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


def _numbers(config: Config, rng: Random) -> Program:
    """Products of numbers of every size: of GEMM, of ALU, and requantized to what int8 holds, so
    that each bit of a product decides about some result."""
    n = _vectors(config)
    tiles = min(4, n, config.depth("wgt"))
    values = [_number(rng, 32) for _ in range(n * config.block_out)]
    scales = [_fitting_scale(rng, value) for value in values]
    others = [rng.randrange(1 << 32) for _ in values]
    whole = {"x_size": n, "y_size": 1, "z_size": 1}
    loads = [
        Load(memory=Mem.UOP, **ONE),
        *(Load(memory=Mem.ACC, dram_base=DATA_AT, sram_base=at * n, **whole) for at in range(6)),
        Load(memory=Mem.ACC, dram_base=DATA_AT + 4096, sram_base=n, **whole),
        Load(memory=Mem.ACC, dram_base=DATA_AT + 12288, sram_base=7 * n, **whole),
        Load(memory=Mem.INP, dram_base=DATA_AT + 8192, **ONE),
        Load(memory=Mem.WGT, dram_base=DATA_AT + 8192, **{**ONE, "x_size": tiles}),
    ]
    nest = {"extent_0": n, "dst_0": 1, "src_0": 1, "uop_count": 1}
    work: list[Instruction] = [
        Alu(alu_op=AluOp.RQ, dst_base=2 * n, src_base=n, low=-256, high=255, **nest),
        Alu(alu_op=AluOp.MUL, dst_base=3 * n, src_base=7 * n, **nest),
        Alu(alu_op=AluOp.SHR, dst_base=4 * n, src_base=7 * n, **nest),
        Alu(alu_op=AluOp.WADD, dst_base=5 * n, src_base=7 * n, imm=_number(rng, 24),
            weight=_number(rng, 24), **nest),
        Gemm(dst_base=6 * n, extent_0=tiles, wgt_0=1, dst_0=1, uop_count=1),
    ]  # fmt: skip
    narrow = Store(memory=Mem.ACC8, dram_base=RESULTS_AT, x_size=1, y_size=1, z_size=n,
                   z_pitch=1, z_stride=1, scale_base=n)  # fmt: skip
    wide = Store(memory=Mem.ACC, dram_base=RESULTS_AT + 4096, sram_base=2 * n,
                 **{**whole, "x_size": 4 * n + tiles})  # fmt: skip
    pass_token(config, loads[-1], narrow)
    for engine in {ring_of(config).engine_of(each) for each in work}:
        own = [each for each in work if ring_of(config).engine_of(each) == engine]
        pass_token(config, loads[-1], own[0])
        pass_token(config, own[-1], wide)
    words = {DATA_AT: values, DATA_AT + 4096: scales, DATA_AT + 12288: others}
    data = {at: np.array(part, np.int64).astype(np.int32).tobytes() for at, part in words.items()}
    data[DATA_AT + 8192] = rng.randbytes(tiles * config.block_in * config.block_out)
    return Program(config, [*loads, *work, narrow, wide, Finish()], DRAM_BYTES // 2, data)


def _vectors(config: Config) -> int:
    """Vectors of numbers that ACC holds nine times, and DRAM's room for results five times: none
    where ACC is small, and then the program moves nothing."""
    room = (DRAM_BYTES // 2 - RESULTS_AT - 4096) // config.acc_entry // 5
    return min(12, config.depth("acc") // 9, room)


def _number(rng: Random, bits: int) -> int:
    """A signed number of at most so many bits, of any magnitude."""
    size = rng.randrange(bits)
    return rng.choice((-1, 1)) * rng.randrange(1 << size)


def _fitting_scale(rng: Random, value: int) -> int:
    """A scale word that makes some nine bits of a value at most."""
    mantissa = rng.randrange(1 << rng.choice((MANTISSA_BITS, rng.randint(1, MANTISSA_BITS))))
    shift = abs(value).bit_length() + mantissa.bit_length() - rng.randint(4, 9)
    return min(max(shift, 0), MAX_SHIFT) << MANTISSA_BITS | mantissa


def pass_token(config: Config, giver: Instruction, taker: Instruction) -> None:
    """Sets the flags of a token from one instruction to another."""
    ring = ring_of(config)
    queue = ring.token_queue(ring.engine_of(giver), ring.engine_of(taker))
    setattr(giver, queue.push, 1)
    setattr(taker, queue.pop, 1)
