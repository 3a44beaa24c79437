"""VDLA in Amaranth: one unit per file or folder. ``core/`` puts them together."""
