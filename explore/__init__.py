"""Exploration: which accelerator to build for some networks on a part.

Spaces of designs, what each design's cycles, area and energy are, and the search for the best.
"""
