"""NVIDIA's driver as a library of C functions: those that running kernels takes, with their types.

The driver compiles PTX itself, so no toolkit is needed. Names that end in ``_v2`` are those that
CUDA's header gives to programs today: 64 bits wide, and in every driver since CUDA 4.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY, NO_DEVICE, NOT_FOUND = 2, 100, 500
MAX_THREADS, MAX_SIDES, MAX_SHARED = 1, (2, 3, 4), 8  # attributes of devices
CAPABILITY = (75, 76)  # the compute capability's two numbers
LOG, LOG_BYTES = 5, 6  # the compiler's options: where its complaint goes, and how long it may be

HANDLE, ADDRESS = c_void_p, c_uint64
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(HANDLE), c_int),
    "cuCtxPushCurrent_v2": (HANDLE,),
    "cuCtxPopCurrent_v2": (POINTER(HANDLE),),
    "cuCtxSynchronize": (),
    "cuModuleLoadDataEx": (POINTER(HANDLE), c_char_p, c_uint, POINTER(c_int), POINTER(c_void_p)),
    "cuModuleUnload": (HANDLE,),
    "cuModuleGetFunction": (POINTER(HANDLE), HANDLE, c_char_p),
    "cuMemAlloc_v2": (POINTER(ADDRESS), c_size_t),
    "cuMemFree_v2": (ADDRESS,),
    "cuMemcpyHtoD_v2": (ADDRESS, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, ADDRESS, c_size_t),
    "cuLaunchKernel": (
        HANDLE, *[c_uint] * 6, c_uint, HANDLE, POINTER(c_void_p), POINTER(c_void_p),
    ),
    "cuEventCreate": (POINTER(HANDLE), c_uint),
    "cuEventRecord": (HANDLE, HANDLE),
    "cuEventElapsedTime": (POINTER(c_float), HANDLE, HANDLE),
    "cuEventDestroy_v2": (HANDLE,),
}  # fmt: skip


class CudaError(Exception):
    """Status that a function of the driver's returned, if not success."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class LibCuda:
    """The driver, ready for use.

    Raises:
        OSError: there is no such library.
        AttributeError: it lacks a function.
        CudaError: it doesn't start; where there is no device, with the status ``NO_DEVICE``.
    """

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self._functions: dict[str, Any] = {}
        for name, takes in FUNCTIONS.items():
            function = getattr(library, name)
            function.argtypes, function.restype = takes, c_int
            self._functions[name] = function
        self.call("cuInit", 0)

    def call(self, name: str, *args: Any) -> None:
        """Calls a function by its name.

        Raises:
            CudaError: it doesn't return success.
        """
        status = self._functions[name](*args)
        if status:
            raise CudaError(status, self._text(status))

    def try_call(self, name: str, *args: Any) -> None:
        """Calls a function that gives something back, which a lost device has taken already."""
        self._functions[name](*args)

    def number(self, name: str, kind: Any, *args: Any) -> Any:
        """Calls a function that leaves a value of a kind where its first argument points."""
        result = kind()
        self.call(name, ctypes.byref(result), *args)
        return result.value

    def _text(self, status: int) -> str:
        """A status as the driver calls it."""
        result = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = c_char_p()
            if self._functions[name](status, ctypes.byref(text)) == 0 and text.value:
                result.append(text.value.decode(errors="replace"))
        return ": ".join(result) or f"status {status}"


@functools.cache
def load(path: str) -> LibCuda:
    """The driver, which is loaded once per process; see ``LibCuda``."""
    return LibCuda(path)
