"""What others published, with its source: drawn and printed beside our figures.

Utilization is the share of peak multiply-adds over a layer.
"""

from __future__ import annotations

from dataclasses import dataclass


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


def vta_utilization(layer: str, macs: int) -> float | None:
    """Of open VTA on a layer of table 2; None where there is no record."""
    if layer not in VTA_MILLISECONDS:
        return None
    return 2 * macs / (VTA_MILLISECONDS[layer] * 1e-3) / (VTA_PEAK_GOPS * 1e9)
