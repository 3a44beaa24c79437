"""VDLA in Amaranth: one unit per file. ``core.py`` puts them together."""
