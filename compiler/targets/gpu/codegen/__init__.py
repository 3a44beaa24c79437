"""Code for GPUs: ``opencl`` writes OpenCL C, ``ptx`` PTX."""
