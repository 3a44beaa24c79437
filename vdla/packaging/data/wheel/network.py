"""A network compiled by vdla, as a shared library behind C's interface.

    run(image=array)             the outputs by their names, one inference
    Network(threads=2)           a network of one's own, for several at once or more threads

``inputs`` and ``outputs`` say what there is. Lists are lists of arrays, and None stands for an
optional output that isn't there.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import re
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
    Value = Union[Array, list["Value"], None]  # noqa: UP007  Python 3.10

TYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
)  # those of C's enum vdla_type; behind them are types that are only stored
STORED = ("uint16", *("uint8",) * 10)  # bytes of these
LIBRARIES = ("libm.so.6", "libgcc_s.so.1")  # what the library calls beside the C library
MEMORY, OK = 4, 0  # statuses of C
AXES = 8


class NetworkError(RuntimeError):
    """An error of the network, in its words."""


class _Tensor(ctypes.Structure):
    """``struct vdla_tensor``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("type", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("shape", ctypes.c_size_t * AXES),
        ("sizes", ctypes.c_void_p),
        ("is_list", ctypes.c_uint32),
    )

    @property
    def dtype(self) -> str:
        """The name of numpy's type."""
        return (TYPES + STORED)[self.type]

    @property
    def title(self) -> str:
        """The tensor's name."""
        return str(self.name, "utf-8")

    @property
    def sides(self) -> tuple[int, ...]:
        """The lengths of the tensor's axes."""
        return tuple(self.shape[: self.rank])

    def array(self) -> Array:
        """A view of its elements."""
        import numpy as np

        memory = (ctypes.c_uint8 * self.bytes).from_address(self.data)
        return np.frombuffer(memory, self.dtype).reshape(self.sides)

    def value(self) -> Value:
        """A copy of its elements, a list of such, or None."""
        if not self.data:
            return [] if self.is_list else None
        array = self.array()
        if not self.is_list:
            return array.copy()
        if not self.sizes:
            return [each.copy() for each in array]
        axes = self.rank - 1
        sizes = (ctypes.c_int64 * (axes * len(array))).from_address(self.sizes)
        parts = (sizes[n * axes : (n + 1) * axes] for n in range(len(array)))
        return [each[tuple(map(slice, own))].copy() for each, own in zip(array, parts, strict=True)]


class Network:
    """A network; threads that share one take turns."""

    def __init__(self, threads: int | None = None) -> None:
        self._lock, self._net = threading.Lock(), ctypes.c_void_p()
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        status = self._open()
        if status == MEMORY:
            self._memory = mmap.mmap(-1, _library().vdla_memory(self._net))
            status = self._open()
        self._check(status)
        self._check(_library().vdla_start(self._net, threads or _processors()))

    def __del__(self) -> None:
        if getattr(self, "_net", None):
            _library().vdla_close(self._net)

    @property
    def inputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """(type, shape) of each input, by its name."""
        return {t.title: (t.dtype, t.sides) for t in self._tensors("input")}

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs; of those in a list ``y[0]``, ``y[1]`` …"""
        return [tensor.title for tensor in self._tensors("output")]

    def run(self, *arrays: object, **named: object) -> dict[str, Value]:
        """The outputs by their names, of one array for each input, in order or by name."""
        import numpy as np

        with self._lock:
            tensors = self._tensors("input")
            names = [tensor.title for tensor in tensors]
            given = {**dict(zip(names, arrays, strict=False)), **named}
            if len(arrays) > len(names) or given.keys() != {*names}:
                raise TypeError(f"inputs: expected {', '.join(names)}, found {', '.join(given)}")
            for tensor in tensors:
                array = np.asarray(given[tensor.title])
                if array.shape != tensor.sides or array.dtype != tensor.dtype:
                    raise TypeError(
                        f"input {tensor.title}: expected {tensor.dtype}{list(tensor.sides)}, "
                        f"found {array.dtype}{list(array.shape)}"
                    )
                tensor.array()[...] = array
            self._check(_library().vdla_run(self._net))
            return _grouped((t.title, t.value()) for t in self._tensors("output"))

    def _open(self) -> int:
        place = (ctypes.c_uint8 * len(self._memory)).from_buffer(self._memory)
        opened = getattr(_library(), f"{__name__.rpartition('.')[2]}_open")
        size = ctypes.c_size_t(len(self._memory))
        status: int = opened(ctypes.byref(place), size, None, ctypes.byref(self._net))
        return status

    def _tensors(self, kind: str) -> list[_Tensor]:
        made: list[_Tensor] = []
        get = getattr(_library(), f"vdla_{kind}")
        while True:
            tensor = _Tensor()
            if get(self._net, ctypes.c_uint32(len(made)), ctypes.byref(tensor)) != OK:
                return made
            made.append(tensor)

    def _check(self, status: int) -> None:
        if status != OK:
            raise NetworkError(_library().vdla_error(self._net).decode())


def run(*arrays: object, **named: object) -> dict[str, Value]:
    """The outputs by their names, of one array for each input, in order or by name."""
    return _network().run(*arrays, **named)


def __getattr__(name: str) -> object:
    if name in ("inputs", "outputs"):
        return getattr(_network(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _network() -> Network:
    return Network()


@functools.cache
def _library() -> ctypes.CDLL:
    for name in LIBRARIES:
        with contextlib.suppress(OSError):  # musl's C library has all
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib.so"))
    library.vdla_memory.restype = ctypes.c_size_t
    library.vdla_error.restype = ctypes.c_char_p
    for name in ("memory", "error", "run", "close"):
        getattr(library, f"vdla_{name}").argtypes = [ctypes.c_void_p]
    library.vdla_start.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    return library


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return min(len(os.sched_getaffinity(0)), 64)
    return 1


def _grouped(values: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Values by name; those of a list, ``y[0]``, ``y[1]`` …, in a list."""
    result: dict[str, Value] = {}
    for name, value in values:
        whole, *places = re.findall(r"^.*?(?=(?:\[\d+\])*$)|\[\d+\]", name)
        if not places:
            result[name] = value
            continue
        here = result.setdefault(whole, [])
        if here is None:  # an optional list that isn't there, of which this would be an element
            continue
        assert isinstance(here, list)
        for _ in places[:-1]:
            inner = here[-1] if here else None
            if not isinstance(inner, list):
                inner = []
                here.append(inner)
            here = inner
        here += value if isinstance(value, list) else [value]
    return result
