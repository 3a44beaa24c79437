"""Weights of 4 bits: a memory WGT4, which is WGT seen through int4.

An entry of WGT4 is a tile of ``block_out × block_in`` weights of 4 bits, two's complement, -8 to 7:
half the bytes of an entry of WGT, and whole beats, since blocks are. Byte k has weight 2k in its
low nibble and weight 2k + 1 in its high one. A LOAD of WGT4 widens each weight to int8 in WGT;
padding is ``pad_value``, as in WGT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.options.option import Option, Parameter, Probes
from vdla.isa.scratchpads import Mem

if TYPE_CHECKING:
    from vdla.isa.config import Config

INT4_MIN, INT4_MAX = -8, 7
NIBBLE_BITS = 4

WEIGHTS4 = Parameter("weights4", "whether LOAD may widen WGT's weights from 4 bits; 0: it can't")


def has_weights4(config: Config) -> bool:
    """Whether a LOAD of the config may widen weights of 4 bits."""
    return bool(WEIGHTS4.of(config))


WGT4 = Mem.define(6, "WGT4", "wgt_bytes", lambda config: config.wgt_entry // 2, buffer="wgt")

OPTIONS = (
    Option(
        rank=10,
        title="weights of 4 bits",
        parameter=WEIGHTS4,
        memories=(WGT4,),
        probes=Probes((("a", {WEIGHTS4.name: 1}), ("b", {WEIGHTS4.name: 1})), "d62aa8b4"),
    ),
)
