"""Figures of others for a bundled model, with their source: drawn and printed beside ours.

A figure stands beside the model and the machine that it is of, and beside no other: ``published``
answers for ``resnet18-convs``, the layers of table 2 of the OSDI paper, on 16 × 16 multipliers.
Utilization is the share of peak multiply-adds over a layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vdla.compiler.models.networks import RESNET18_CONVS
from vdla.isa.config import Config


@dataclass(frozen=True)
class Peer:
    """Utilization of a system's best layers, without and with latency hiding."""

    name: str
    without: float
    hidden: float
    source: str


OSDI = Peer(
    "VDLA, OSDI 2018",
    0.70,
    0.88,
    "Chen et al., TVM: An Automated End-to-End Optimizing Compiler for Deep Learning, OSDI 2018, "
    "figure 10: peak over ResNet-18's layers; PYNQ board, 16×16 at 200 MHz",
)
SYSML = Peer(
    "VDLA, SysML 2018",
    0.52,
    0.74,
    "Chen et al., TVM: End-to-End Optimization Stack for Deep Learning, SysML 2018; an earlier "
    "design on a PYNQ board",
)
HIDING = (OSDI, SYSML)

# Open VTA on a PYNQ board: milliseconds of the best schedule AutoTVM found, layers as in table 2 of
# the OSDI paper (VTA's own list has no C3). The board's memory isn't modelled: it is measured.
VTA_MILLISECONDS = {
    "C2": 5.70,
    "C4": 2.97,
    "C5": 1.35,
    "C6": 5.18,
    "C7": 2.67,
    "C8": 1.03,
    "C9": 4.93,
    "C10": 3.99,
    "C11": 1.08,
    "C12": 7.35,
}
VTA_PEAK_GOPS = 51.2  # 16×16 at 100 MHz, the board's default clock
VTA_SOURCE = (
    "TopHub's best records for VTA (uwsampl/tvm-distro, vta_v0.10.log), against 51.2 GOPS: "
    "16×16 at PYNQ's default 100 MHz, with a weight buffer eight times as large"
)

# ResNet-18 v1 on VTA's simulator of its Chisel, whose reads and writes don't share a bus.
VTA_RESNET18_CYCLES = 7_729_601
VTA_RESNET18_SOURCE = "VTA, pipelined Chisel, 16×16, tsim; apache/tvm-vta#30"


@dataclass(frozen=True)
class Published:
    """Utilization of others on one model: their best layers', and open VTA's by layer."""

    hiding: tuple[Peer, ...]
    vta: Mapping[str, float]


def published(model: str | Path, config: Config) -> Published | None:
    """Figures that were published of a bundled model on a config's multipliers; None where there
    are none.
    """
    if str(model) != "resnet18-convs" or (config.block_in, config.block_out) != (16, 16):
        return None
    macs = {shape.name: shape.macs for shape in RESNET18_CONVS}
    vta = {
        layer: 2 * macs[layer] / (milliseconds * 1e-3) / (VTA_PEAK_GOPS * 1e9)
        for layer, milliseconds in VTA_MILLISECONDS.items()
    }
    return Published(HIDING, vta)
