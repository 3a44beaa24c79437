"""Functions as code is emitted from them: checked, of loops alone."""

from __future__ import annotations

from vdla.compiler.tir.in_bounds import check_all_bounds
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.partition import partition_loops
from vdla.compiler.tir.spec import FLAT
from vdla.compiler.tir.verify import verify


def flat_function(func: PrimFunc) -> PrimFunc:
    """The function without blocks, in loops without conditions on their ends.

    Raises:
        IRError: it isn't one that code can be emitted for.
    """
    flat = partition_loops(flatten_blocks(check_all_bounds(verify(func))))
    FLAT.check(flat)
    return flat
