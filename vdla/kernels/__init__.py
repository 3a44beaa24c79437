"""Kernels that users write with te: built, parsed, tuned."""
