"""COMPUTE and VECTOR: a loop nest that issues micro-ops, and the pipeline that computes them."""

from vdla.hw.compute.compute import Compute

__all__ = ["Compute"]
