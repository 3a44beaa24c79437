"""Instructions whose effects the digest in isa/options/weights4.py stands for."""

from vdla.isa.instructions import Load
from vdla.isa.options.weights4 import WGT4

TITLE, SETTINGS = "weights of 4 bits", ["weights4=1"]


def instructions(**nest):
    """LOADs of WGT4 with and without padding, in rows and one by one."""
    return [
        Load(memory=WGT4, sram_base=1, dram_base=64, x_size=3, y_size=2, z_size=2, x_stride=stride,
             y_stride=5, z_stride=7, pad_x0=pad, pad_x1=2 * pad, pad_y1=pad, pad_value=-3,
             zero=-128)
        for stride in (1, 2)
        for pad in (0, 1)
    ]  # fmt: skip
