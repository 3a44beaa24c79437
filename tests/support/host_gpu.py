"""A GPU that isn't one: modules whose kernels are the LLVM IR of PTX, run by this processor."""

from __future__ import annotations

import re

import numpy as np

from tests.support.host_kernels import Machine, in_turn, together
from vdla.compiler.targets.gpu import lower
from vdla.compiler.targets.gpu.codegen.emit import HOST_BARRIER
from vdla.compiler.targets.gpu.codegen.ptx import llvm_ir
from vdla.runtime.gpu.base import ALIGN, Limits, scratch_offsets


def sources_for_host(monkeypatch) -> None:
    """From now on modules for PTX carry the LLVM IR that it is made of, for this processor."""
    monkeypatch.setattr(lower, "ptx", lambda kernels, _: llvm_ir(kernels, on_host=True))


class HostGpu:
    """Takes such modules."""

    name = "this processor"
    limits = Limits(1024, (1024, 1024, 64), 49152, 1 << 40)

    def load(self, kernels, size):
        return _Program(kernels, size)


class _Program:
    def __init__(self, kernels, size) -> None:
        self.kernels = kernels
        self.scratch, end = scratch_offsets(kernels, size)
        self.memory = np.zeros(end + ALIGN, np.uint8)
        self.machine = Machine(kernels.source)
        bodies = re.findall(r'define void @"(\w+)"(.*?)\n}', kernels.source, re.DOTALL)
        self.waits = {name for name, body in bodies if HOST_BARRIER in body}

    def upload(self, offset, data) -> None:
        self.memory[offset : offset + data.nbytes] = data.reshape(-1).view(np.uint8)

    def download(self, offset, data) -> None:
        data.reshape(-1).view(np.uint8)[:] = self.memory[offset : offset + data.nbytes]

    def launch(self, function, offsets):
        places = (*offsets, *self.scratch[function])
        for launch in self.kernels.functions[function].launches:
            takes = (self.memory.ctypes.data, *(places[n] for n in launch.args))
            run = together if launch.kernel in self.waits else in_turn
            self.machine.launch(launch, takes, run)
        return lambda: 0.0

    def finish(self) -> None:
        pass
