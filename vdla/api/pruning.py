"""Models pruned: ``vdla.prune``."""

from __future__ import annotations

from pathlib import Path

from vdla.compiler.frontend.files import onnx_file
from vdla.compiler.models import pruning
from vdla.compiler.models.pruning import PrunedLayer, Pruning
from vdla.options import Prune
from vdla.options.spelling import UsageError


def prune(model: str | Path, output: str | Path, options: Prune | None = None) -> list[PrunedLayer]:
    """Writes a float model, of a file of any kind that ``compile`` takes, with blocks of weights of
    the least magnitude zero, to ``output``; gives its layers.

    Raises:
        ModelError: the model isn't one of floats, has no such layer, or not what is named.
        UsageError: the share or the blocks are none.
    """
    options = options or Prune()
    if not 0 < options.share < 1:
        raise UsageError(f"--share: expected a share between 0 and 1, found {options.share:g}")
    rows, columns = options.blocks
    if rows < 1 or columns < 1:
        raise UsageError(f"--blocks: expected sizes of at least 1, found {rows}x{columns}")
    recipe = Pruning(options.share, rows, columns, options.layers, options.exclude)
    return pruning.prune(onnx_file(model), output, recipe)
