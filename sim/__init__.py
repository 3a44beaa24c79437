"""The simulator: exact in every cycle and every number. Whoever imports a part has the options."""

import vdla.sim.options  # noqa: F401
