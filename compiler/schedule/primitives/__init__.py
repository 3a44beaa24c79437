"""The primitives of a stage, a file for each family.

A primitive finds the loops and buffers that tensors and variables mean, has the function rewritten
by the modules around this folder (``loops``, ``attach``, ``cache`` …), and records itself.
"""
