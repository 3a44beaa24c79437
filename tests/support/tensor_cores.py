"""The PTX printer's calls of tensor cores on this machine, where the manual's model answers them.

The LLVM IR is the host's, except that a product is the call which a GPU gets. The call goes to a
function that hands all lanes' registers to ``fragments.Shape.product``, so registers, the order of
their items and what is loaded into them are checked together.
"""

from __future__ import annotations

import ctypes
import re
import threading

import llvmlite.binding as llvm
import numpy as np

from tests.support.fragments import LANES, Shape
from vdla.compiler.targets.gpu.codegen import emit
from vdla.compiler.targets.gpu.mma import MMA

SYMBOL = "vdla_tensor_core"
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
REGISTERS = {"float16": "<2 x half>", "int8": "i32"}
TOTALS = {"float32": "float", "int32": "i32"}
COUNT = 6  # registers of A, four, and of B
TIMEOUT = 60


class TensorCore:
    """A tensor core of 32 threads of the host, which are called by their lanes' numbers."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.calls = shape, 0
        self.barrier = threading.Barrier(LANES)
        self.brought: list[tuple[np.ndarray, np.ndarray]] = [(np.array([]), np.array([]))] * LANES
        self.results = np.array([])
        self.callback = CALLBACK(self.compute)
        llvm.add_symbol(SYMBOL, ctypes.cast(self.callback, ctypes.c_void_p).value)

    def compute(self, registers: int, sums: int) -> None:
        """One lane's part: brings its registers and its sums, and gets its sums."""
        lane = int(threading.current_thread().name)
        factors = np.frombuffer(ctypes.string_at(registers, 4 * COUNT), self.shape.factor)
        totals = np.frombuffer(ctypes.string_at(sums, 16), self.shape.total)
        self.brought[lane] = factors, totals
        if self.barrier.wait(TIMEOUT) == 0:
            self.calls += 1
            count = self.shape.a_items
            a, b = ([f[part] for f, _ in self.brought] for part in (slice(count), slice(count, 99)))
            self.results = self.shape.product(a, b, [c for _, c in self.brought])
        self.barrier.wait(TIMEOUT)
        own = self.results[lane].astype(self.shape.total)
        ctypes.memmove(sums, own.ctypes.data, 16)
        self.barrier.wait(TIMEOUT)

    def link(self, text: str) -> str:
        """LLVM IR whose instructions of tensor cores are calls of this one."""
        found = re.sub(
            r'declare (.*?) @"llvm\.nvvm\.mma\.[^"]*"\(.*\)', lambda _: self.body(), text
        )
        return re.sub(r'@"llvm\.nvvm\.mma\.[^"]*"', '@"tensor_core"', found)

    def body(self) -> str:
        """The function that is called: registers and sums to memory, and sums from there."""
        register, total = REGISTERS[self.shape.factor], TOTALS[self.shape.total]
        result = f"{{{', '.join([total] * 4)}}}"
        takes = [f"{register} %r{n}" for n in range(COUNT)] + [f"{total} %s{n}" for n in range(4)]
        lines = [f"%registers = alloca [{COUNT} x {register}]", f"%sums = alloca [4 x {total}]"]
        for kind, name, place, count in (
            (register, "r", "registers", COUNT), (total, "s", "sums", 4),
        ):  # fmt: skip
            for n in range(count):
                lines.append(f"%{name}p{n} = getelementptr {kind}, ptr %{place}, i32 {n}")
                lines.append(f"store {kind} %{name}{n}, ptr %{name}p{n}")
        lines.append(f"call void @{SYMBOL}(ptr %registers, ptr %sums)")
        last = "undef"
        for n in range(4):
            lines.append(f"%d{n} = load {total}, ptr %sp{n}")
            lines.append(f"%all{n} = insertvalue {result} {last}, {total} %d{n}, {n}")
            last = f"%all{n}"
        inner = "\n".join([*lines, f"ret {result} {last}"])
        return (
            f"declare void @{SYMBOL}(ptr, ptr)\n"
            f'define {result} @"tensor_core"({", ".join(takes)}) noinline {{\n{inner}\n}}'
        )


def calls_on_host(monkeypatch) -> None:
    """From now on host code has a GPU's calls of tensor cores."""
    loop = emit._Emitter.loop

    def with_calls(self, each):
        if MMA not in dict(each.annotations):
            return loop(self, each)
        return emit.emit_product(self.values, each, self.lane)

    monkeypatch.setattr(emit._Emitter, "loop", with_calls)
