"""The processor that the tests run on, as far as peers' numbers depend on it."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np  # noqa: F401  its OpenBLAS is looked at below
from threadpoolctl import threadpool_info

# Without these instructions onnxruntime adds two products of uint8 by int8 in 16 bits, which
# saturate: its sums are exact for weights of 7 bits alone.
FEATURES = llvm.get_host_cpu_features()
HAS_VNNI = bool(FEATURES.get("avx512vnni"))
EXACT_WEIGHTS = 127 if HAS_VNNI else 63  # the greatest weight with which its sums are exact
# Its sums of floats depend on the width of vectors in their last bits, and so do the scales of what
# it calibrates.
HAS_AVX512 = bool(FEATURES.get("avx512f"))
# numpy's OpenBLAS takes a processor that it doesn't know for an older one, with shorter vectors.
BLAS = {each.get("architecture") for each in threadpool_info()}
HAS_RECORDED_SCALES = HAS_AVX512 and not BLAS & {"Haswell", "Zen"}
