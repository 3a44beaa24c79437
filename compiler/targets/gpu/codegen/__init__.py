"""Code for GPUs: ``opencl`` writes OpenCL C."""
