"""Engines of micro-ops, as COMPUTE: a loop nest that issues them, and the pipeline behind it."""

from vdla.hw.compute.compute import Compute

__all__ = ["Compute"]
