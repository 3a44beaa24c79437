"""Kernels as the PTX printer gives them to LLVM, but compiled for this machine's processor.

A group's threads are threads of the host, which a barrier of Python's holds together. So the
numbers of the LLVM IR, and of LLVM's optimizations of it, are checked without a GPU.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from functools import partial

import llvmlite.binding as llvm
import numpy as np

from vdla.compiler.targets.gpu.codegen.emit import HOST_BARRIER
from vdla.compiler.targets.gpu.codegen.ptx import llvm_ir, optimized
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.gpu.lower import kernel_sources, kernels_of, lower_function
from vdla.compiler.tir.ir import Barrier, PrimFunc
from vdla.compiler.tir.visitor import walk
from vdla.runtime.kernels import Launch

ALIGN = 256
GPU = Gpu(language="ptx", architecture="sm_80")
BARRIER = ctypes.CFUNCTYPE(None)
TIMEOUT = 60
Work = Callable[[], None]
Run = Callable[[list[Work]], None]


def run_on_host(
    func: PrimFunc, arrays: list[np.ndarray], link: Callable[[str], str] = lambda text: text
) -> None:
    """Runs a scheduled function's kernels on one array for each parameter, in place; ``link``
    replaces in the LLVM IR what a host hasn't."""
    lowered = lower_function(func, GPU)
    function = kernels_of([lowered], GPU).functions[lowered.name]
    sizes = (*function.params, *function.scratch)
    ends = list(itertools.accumulate(-(-size // ALIGN) * ALIGN for size in sizes))
    places = [0, *ends[:-1]]
    memory = np.zeros(ends[-1] + ALIGN, np.uint8)
    for place, array in zip(places, arrays, strict=False):
        memory[place : place + array.nbytes] = array.reshape(-1).view(np.uint8)
    sources = kernel_sources(lowered)
    with Machine(link(llvm_ir(sources, on_host=True))) as machine:
        for source, launch in zip(sources, function.launches, strict=True):
            takes = (memory.ctypes.data, *(places[n] for n in launch.args))
            waits = any(isinstance(s, Barrier) for s in walk(source.body))
            machine.launch(launch, takes, together if waits else in_turn)
    for place, array in zip(places, arrays, strict=False):
        array.reshape(-1).view(np.uint8)[:] = memory[place : place + array.nbytes]


class Machine:
    """LLVM IR compiled into this process."""

    def __init__(self, text: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.barrier = threading.Barrier(1)
        self.callback = BARRIER(lambda: self.barrier.wait(TIMEOUT) and None)
        address = ctypes.cast(self.callback, ctypes.c_void_p).value
        llvm.add_symbol(HOST_BARRIER, address)
        self.engine = llvm.create_mcjit_compiler(
            optimized(text, _native(), llvm.get_process_triple()), _native()
        )
        self.engine.finalize_object()

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def launch(self, launch: Launch, takes: tuple[int, ...], run: Run) -> None:
        """Runs a kernel's groups one behind the other, and the threads of each by ``run``."""
        offsets = [ctypes.c_int64] * (len(takes) - 1)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *offsets, *[ctypes.c_int32] * 6)
        entry = kind(self.engine.get_function_address(launch.kernel))
        threads = list(_places(launch.group))
        for block in _places(launch.grid):
            self.barrier = threading.Barrier(len(threads))
            run([partial(entry, *takes, *block, *thread) for thread in threads])


def _native() -> object:
    """This machine's processor, as LLVM knows it."""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3)


def _places(extents) -> itertools.product:
    """All numbers (x, y, z) below some extents."""
    return itertools.product(*map(range, extents))


def in_turn(works: list[Work]) -> None:
    """Runs some works one behind the other."""
    for work in works:
        work()


def together(works: list[Work]) -> None:
    """Runs some works at the same time, in threads that are called by their numbers."""
    threads = [threading.Thread(target=work, name=str(n)) for n, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
