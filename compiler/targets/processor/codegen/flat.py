"""Functions as code is emitted from them: checked, of loops alone."""

from __future__ import annotations

from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.tir.in_bounds import check_all_bounds
from vdla.compiler.tir.ir import PrimFunc
from vdla.compiler.tir.lower import flatten_blocks
from vdla.compiler.tir.partition import partition_loops
from vdla.compiler.tir.spec import FLAT
from vdla.compiler.tir.verify import verify


def flat_function(func: PrimFunc, processor: Processor) -> PrimFunc:
    """The function without blocks, in loops without conditions on their ends; of vectors, without
    any where the processor has no masks.

    Raises:
        IRError: it isn't one that code can be emitted for.
    """
    blocks = flatten_blocks(check_all_bounds(verify(func)))
    flat = partition_loops(blocks, masks=processor.vectors.masks)
    FLAT.check(flat)
    return flat
