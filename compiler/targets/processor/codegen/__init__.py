"""Code for machines: ``llvm`` and what it needs."""
