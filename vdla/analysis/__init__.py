"""Analyses of models and machines: comparisons, their pages, lockstep, coverage. Whoever imports a
part has the options."""

import vdla.analysis.options  # noqa: F401
