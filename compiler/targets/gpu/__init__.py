"""A GPU as a target: its limits, passes over kernels, code, and schedules of operators."""
