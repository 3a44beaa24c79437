"""Clocks of designs: estimated in a millisecond, or by static timing of what yosys maps."""
