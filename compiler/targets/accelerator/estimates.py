"""Cycles of a layer by the analytic model alone: no instruction is made, nothing simulated.

The model that chooses a layer's schedule says how long it takes. That is neither a bound nor exact,
but it follows the buffers' sizes and the memory, and it says where no tile of the layer fits.
"""

from __future__ import annotations

from functools import lru_cache

from vdla.compiler.targets.accelerator.operators.cost import estimate
from vdla.compiler.targets.accelerator.operators.template import AnyTemplate, Operator
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.isa.config import Config


def layer_cycles(op: Operator, config: Config, vthreads: int) -> float:
    """Cycles of a layer by itself, by the analytic model; where a template has none, those that
    its multiply-adds or bytes take at least.

    Raises:
        TilingError: no tile fits.
    """
    least = max(op.macs / config.macs_per_cycle, op.dram_bytes / config.bytes_per_cycle)
    return max(least, _cycles(op.template.geometry, config, vthreads))


@lru_cache(maxsize=4096)
def _cycles(template: AnyTemplate, config: Config, vthreads: int) -> float:
    tile = default_tile(template, config, vthreads, None)
    try:
        cost = template.cost(tile, config)
    except NotImplementedError:
        return 0.0
    return float(estimate(cost, config)[0])
