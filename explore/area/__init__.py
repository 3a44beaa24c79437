"""Area of cores: estimated in a millisecond, or mapped by yosys in minutes."""

import vdla.explore.area.options  # noqa: F401
from vdla.explore.area.mapping import map_config
from vdla.explore.area.model import Area, Counts, estimate, fits

__all__ = ["Area", "Counts", "estimate", "fits", "map_config"]
