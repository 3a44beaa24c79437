"""Boards: one file each, what stands around the core on them, and how bitstreams are made."""
