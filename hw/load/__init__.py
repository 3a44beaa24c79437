"""LOAD: from DRAM into the scratchpads, by a side that requests beats and one that writes them."""

from vdla.hw.load.load import Load, results_port

__all__ = ["Load", "results_port"]
