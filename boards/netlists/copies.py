"""Sixty-four boards at once: a circuit in ``copies.cpp``, a bit of a word for each."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.boards.netlists.circuit import Circuit, Net
from vdla.boards.netlists.tables import tables_of
from vdla.runtime.rtl.verilate import cached, compile_library
from vdla.support.files import digest

HERE = Path(__file__).parent
COPIES = 64
HANDLE, I32, I64, U64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "new": (HANDLE, [HANDLE] * 9),
    "free": (None, [HANDLE]),
    "save": (None, [HANDLE]),
    "restore": (None, [HANDLE]),
    "set": (None, [HANDLE, I32, U64]),
    "get": (U64, [HANDLE, I32]),
    "evaluate": (None, [HANDLE]),
    "words": (HANDLE, [HANDLE, I32, I32]),
    "send": (None, [HANDLE, ctypes.c_char_p, I32]),
    "receive": (I32, [HANDLE, I32, ctypes.c_char_p, I32]),
    "run": (I64, [HANDLE, I64, I32, U64]),
}


class Copies:
    """A circuit in 64 copies, each with its own state.

    ``to_board`` and ``from_board`` are the nets of the serial line, with ``divisor`` clocks to a
    bit; ``ratio`` is the FAST clock's to CORE's. A clock is one of CORE's.

    Raises:
        DeviceError: there is no g++.
    """

    def __init__(
        self, circuit: Circuit, to_board: Net, from_board: Net, divisor: int, ratio: int
    ) -> None:
        self._rams = circuit.rams
        self._functions = _functions()
        tables = tables_of(circuit)
        counts = (
            len(tables.initial), len(tables.runs) // 3, len(tables.gates) // 6,
            len(circuit.registers), len(circuit.small_rams), len(circuit.multipliers),
            len(circuit.rams), to_board, from_board, divisor, ratio,
        )  # fmt: skip
        arrays = (np.array(counts, np.int32), *tables)
        self._handle = self._functions["new"](*(array.ctypes.data for array in arrays))

    def close(self) -> None:
        """Frees the copies."""
        if getattr(self, "_handle", None) is not None:
            self._functions["free"](self._handle)
            self._handle = None

    __del__ = close

    def set(self, net: Net, word: int) -> None:
        """Sets an input: a bit for each copy."""
        self._call("set", net, word)

    def get(self, net: Net) -> int:
        """Levels of a net: a bit for each copy."""
        return int(self._call("get", net))

    def evaluate(self) -> None:
        """Lets the gates follow the inputs, without a clock."""
        self._call("evaluate")

    def run(self, clocks: int, wanted: int = 0, copies: int = 0) -> int:
        """Lets clocks pass, until ``wanted`` bytes have come from each of some copies; gives the
        number of clocks that passed."""
        return int(self._call("run", clocks, wanted, copies))

    def send(self, messages: Sequence[bytes]) -> None:
        """Begins to send each copy its bytes; all have as many, and the copies left get zeros."""
        size = len(messages[0])
        if any(len(each) != size for each in messages):
            raise ValueError("expected messages of one length")
        spare = bytes(size * (COPIES - len(messages)))
        self._call("send", b"".join(messages) + spare, size)

    def receive(self, copy: int, most: int = 4096) -> bytes:
        """Bytes that have come from a copy."""
        buffer = ctypes.create_string_buffer(most)
        count = self._call("receive", copy, buffer, most)
        return buffer.raw[:count]

    def words(self, ram: int, copy: int, size: int) -> NDArray[np.uint8]:
        """The first bytes of a copy's RAM, to read and write."""
        at = self._call("words", ram, copy)
        return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_uint8)), (size,))

    def save(self) -> None:
        """Keeps the state of all copies, but for what is outside of the chips."""
        self._call("save")

    def restore(self) -> None:
        """Goes back to the state that was kept."""
        self._call("restore")

    def _call(self, name: str, *arguments: object) -> Any:
        return self._functions[name](self._handle, *arguments)


def _functions() -> dict[str, Any]:
    """The library's functions; it is built once, then cached."""
    source = HERE / "copies.cpp"

    def make(work: Path) -> None:
        compile_library(work, source, "libcopies.so")

    key = f"copies-{digest((source,))}"
    library = ctypes.CDLL(str(cached(key, "libcopies.so", "netlists", "64 copies", make)))
    result = {}
    for name, (kind, arguments) in FUNCTIONS.items():
        function = getattr(library, f"vdla_copies_{name}")
        function.restype, function.argtypes = kind, arguments
        result[name] = function
    return result
