"""Code for machines: ``llvm`` for the host, ``vdla`` for the accelerator."""
