"""Forwarding: STOREs beyond INP, and STOREs to INP beside LOADs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from vdla.analysis.cases import OUTSIDE
from vdla.analysis.directed import ONE, PROGRAMS
from vdla.isa.config import Config
from vdla.isa.instructions import Finish, Instruction, Load, Mem, Store
from vdla.isa.options.forwarding import forwards
from vdla.isa.program import Program
from vdla.sim.random_programs import DATA_AT, DRAM_BYTES


@OUTSIDE.add
def outside(config: Config) -> Mapping[str, Instruction]:
    """STOREs that begin beyond INP, or end there."""
    if not forwards(config):
        return {}
    end = config.depth("inp") * config.inp_entry
    last = max(end - config.out_entry, 0)
    two = {**ONE, "x_size": 2}
    return {
        "a STORE beyond INP": Store(memory=Mem.INP, dram_base=end, **ONE),
        "a STORE that leaves INP": Store(memory=Mem.INP, dram_base=last, **two),
    }


@PROGRAMS.add
def programs(config: Config) -> Mapping[str, Callable[[Config, Random], Program]]:
    """Two engines that write INP at once."""
    return {"STOREs to INP beside LOADs": _forwards} if forwards(config) else {}


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
