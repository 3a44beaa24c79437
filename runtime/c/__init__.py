"""The runtime in C, for modules without Python: ``vdla.h`` has its interface, and its rules."""
