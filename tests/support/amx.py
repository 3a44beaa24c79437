"""AMX's tile registers in Python, which code calls in the place of the instructions.

As the Intel SDM has them: ``ldtilecfg`` (palette, bytes of a row, rows of each of eight tiles),
``tileloadd`` and ``tilestored`` of rows some bytes apart, ``tdpbusd``, ``tilerelease``. What the
SDM refuses (a tile that isn't configured, or whose size doesn't fit) is an error here.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager

import llvmlite.binding as llvm
import numpy as np

from vdla.compiler.targets.processor.codegen.builtins import builtins_ir
from vdla.compiler.targets.processor.codegen.llvm import compile_ir, target_machine
from vdla.compiler.targets.processor.codegen.optimize import linked
from vdla.compiler.targets.processor.description.processor import NATIVE

BYTE, SIZE, POINTER = ctypes.c_uint8, ctypes.c_int64, ctypes.c_void_p
ARGUMENTS = {
    "ldtilecfg": (POINTER,),
    "tileloadd64": (BYTE, POINTER, SIZE),
    "tilestored64": (BYTE, POINTER, SIZE),
    "tdpbusd": (BYTE, BYTE, BYTE),
    "tilerelease": (),
}


class Tiles:
    """Eight registers, and how often each instruction ran; ``errors`` are what the SDM refuses."""

    def __init__(self):
        self.registers, self.errors, self.count = None, [], dict.fromkeys(ARGUMENTS, 0)

    def call(self, name, *args):
        """One instruction."""
        self.count[name] += 1
        try:
            getattr(self, name)(*args)
        except (AssertionError, TypeError) as error:  # a callback of C's can't raise
            self.errors.append(f"{name}{args}: {error!r}")

    def ldtilecfg(self, address):
        config = np.frombuffer(ctypes.string_at(address, 64), np.uint8)
        assert config[0] == 1  # the palette
        assert config[1] == 0
        assert not config[2:16].any()
        columns, rows = config[16:32].view(np.uint16), config[48:56]
        assert (columns <= 64).all()
        assert (rows <= 16).all()
        self.registers = [np.zeros((r, c), np.uint8) for r, c in zip(rows, columns, strict=True)]

    def tileloadd64(self, tile, address, stride):
        register = self.registers[tile]
        assert register.size
        for n in range(len(register)):
            row = ctypes.string_at(address + n * stride, register.shape[1])
            register[n] = np.frombuffer(row, np.uint8)

    def tilestored64(self, tile, address, stride):
        register = self.registers[tile]
        assert register.size
        for n, row in enumerate(register):
            ctypes.memmove(address + n * stride, row.tobytes(), len(row))

    def tdpbusd(self, sums, data, weights):
        c, a, b = (self.registers[n] for n in (sums, data, weights))
        assert len(c) == len(a)
        assert c.shape[1] == b.shape[1]
        assert a.shape[1] == 4 * len(b)
        words = b.view(np.int8).reshape(len(b), -1, 4).astype(np.int64)
        products = np.einsum("mkb,knb->mn", a.reshape(len(a), -1, 4).astype(np.int64), words)
        c[:] = (c.view(np.int32) + products).astype(np.int32).view(np.uint8)

    def tilerelease(self):
        self.registers = None


@contextmanager
def emulated(func, tiles):
    """A function as one of arrays, whose instructions are calls of ``tiles``."""
    text = compile_ir([func])
    callbacks = []
    for name, kinds in ARGUMENTS.items():
        text = text.replace(f'llvm.x86.{name}"', f'emulated.{name}"')
        kind = ctypes.CFUNCTYPE(None, *kinds)
        callbacks.append(kind(lambda *args, name=name: tiles.call(name, *args)))
        llvm.add_symbol(f"emulated.{name}", ctypes.cast(callbacks[-1], POINTER).value)
    module = linked(llvm.parse_assembly(each) for each in (text, builtins_ir(NATIVE)))
    engine = llvm.create_mcjit_compiler(module, target_machine(NATIVE))
    engine.finalize_object()
    entry = ctypes.CFUNCTYPE(None, POINTER)(engine.get_function_address(func.name))

    def run(*arrays):
        pointers = (POINTER * (len(arrays) + 1))(*(a.ctypes.data for a in arrays), None)
        entry(pointers)
        assert not tiles.errors, tiles.errors[:3]

    yield run
