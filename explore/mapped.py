"""Areas of a front by yosys, in place of the model's estimates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

from vdla.explore.evaluate import excess, family_of
from vdla.explore.search import Exploration


def with_mapped_areas(
    result: Exploration, part: str, progress: Callable[[str, int, int], None]
) -> Exploration:
    """A search whose designs of the front have areas that yosys counted, a minute or two each.

    A design that doesn't fit its part so leaves the front, and one that its area dominated enters
    it with the area estimated.

    Raises:
        BoardError: yosys is missing or fails.
    """
    from vdla.explore.area import map_config  # with Amaranth, which not everybody has

    evaluations = dict(result.evaluations)
    for done, point in enumerate(result.front):
        progress("mapping by yosys", done, len(result.front))
        each = evaluations[point]
        area = map_config(each.config, family_of(part))
        reasons = tuple(excess(area, part))
        total = inf if reasons else each.total
        evaluations[point] = replace(each, area=area, mapped=True, reasons=reasons, total=total)
    return replace(result, evaluations=evaluations)
