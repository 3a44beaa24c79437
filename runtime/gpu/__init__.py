"""GPUs that run a module's kernels: ``base`` says what one is, ``opencl`` has OpenCL's devices and
``cuda`` NVIDIA's, and ``find`` takes one."""
