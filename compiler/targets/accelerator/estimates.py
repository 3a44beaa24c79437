"""Cycles of a layer by the analytic model alone: no instruction is made, nothing simulated.

The model that chooses a layer's schedule says how long it takes. That is neither a bound nor exact,
but it follows the buffers' sizes and the memory, and it says where no tile of the layer fits.
"""

from __future__ import annotations

from collections.abc import Hashable

from vdla.compiler.targets.accelerator.operators.cost import estimate
from vdla.compiler.targets.accelerator.operators.template import Operator
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.isa.config import Config

MOST_KNOWN = (
    4096  # layers whose cycles are kept; a search for designs asks for few, again and again
)

_known: dict[Hashable, float] = {}


def layer_cycles(op: Operator, config: Config, vthreads: int) -> float:
    """Cycles of a layer by itself, by the analytic model; where a template has none, those that
    its multiply-adds or bytes take at least.

    Raises:
        TilingError: no tile fits.
    """
    least = max(op.macs / config.macs_per_cycle, op.dram_bytes / config.bytes_per_cycle)
    key = op.template.geometry, config, vthreads
    if key not in _known:
        if len(_known) == MOST_KNOWN:
            _known.clear()
        _known[key] = _cycles(op, config, vthreads)
    return max(least, _known[key])


def _cycles(op: Operator, config: Config, vthreads: int) -> float:
    """Cycles by the model; 0 where it doesn't know the template."""
    template = op.template.geometry
    tile = default_tile(template, config, vthreads, None)
    try:
        cost = template.cost(tile, config)
    except NotImplementedError:
        return 0.0
    return float(estimate(cost, config)[0])
