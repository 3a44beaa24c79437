"""Code for machines: `llvm` for the host."""
