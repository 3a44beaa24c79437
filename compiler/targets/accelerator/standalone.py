"""A linked stream as a program of its own: a DRAM image with its tensors, micro-ops and stream."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.graph.plan import align, alignment
from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.kernels import kernel_of
from vdla.compiler.targets.accelerator.lower import UOPS, Linked, Linker
from vdla.compiler.targets.accelerator.operators.template import Operator, Tile
from vdla.isa.config import Config
from vdla.isa.program import Program
from vdla.isa.ring import Engine
from vdla.sim.checker import Finding, check
from vdla.support.machine import memory_bytes

ADDRESSES = 1 << 32  # bytes that an instruction's address reaches

Array = NDArray[Any]


@dataclass(frozen=True)
class Standalone:
    """A program, where its tensors lie, and the DRAM it starts from.

    ``addresses`` are bytes from the image's start, by tensor, ``ends`` those after the last;
    ``dram`` holds the constants, the micro-ops and the stream, and zeros elsewhere.
    """

    program: Program
    linked: Linked
    addresses: Mapping[str, int]
    ends: Mapping[str, int]
    dram: NDArray[np.uint8]

    def check(self) -> list[Finding]:
        """Findings of the static checker in the stream: none, unless the compiler is wrong."""
        program = self.program
        tensors = {name: (low, self.ends[name]) for name, low in self.addresses.items()}
        return check(program.config, program.instructions, self.dram, program.base, tensors)


def standalone(
    linker: Linker,
    sizes: Mapping[str, int],
    constants: Mapping[str, Array],
    *,
    alone: Collection[Engine] = (),
) -> Standalone:
    """Lays out DRAM for the kernels of a linker and links them.

    Args:
        linker: holds the kernels.
        sizes: bytes of every tensor that a caller fills or reads.
        constants: tensors that are known.
        alone: engines that work while no other one does.

    Raises:
        AllocationError: they are more than addresses of 32 bits reach, or than this machine has.
    """
    known = {**constants, UOPS: np.frombuffer(linker.uops, np.uint8)}
    addresses, ends, end = {}, {}, 0
    for name, size in [*sizes.items(), *((n, a.nbytes) for n, a in known.items())]:
        addresses[name] = end
        ends[name] = end + size
        end = align(end + max(size, 1), alignment(linker.config))
    _check_size(linker.config, end, sizes)
    linked = linker.link(addresses, end, alone=alone)
    program = Program(linker.config, linked.instructions, end)
    stream = np.frombuffer(program.stream(), np.uint8)
    dram = np.zeros(align(end + stream.size), np.uint8)
    for name, array in known.items():
        raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        dram[addresses[name] : addresses[name] + raw.size] = raw
    dram[end : end + stream.size] = stream
    return Standalone(program, linked, addresses, ends, dram)


def _check_size(config: Config, actual: int, sizes: Mapping[str, int]) -> None:
    """Raises where tensors take more than there can be, before anything is allocated."""
    most = min(ADDRESSES, memory_bytes())
    if actual > most:
        name = max(sizes, key=lambda name: sizes[name])
        raise AllocationError(
            f"config {config.name}: expected tensors of at most {most:,} bytes in DRAM, "
            f"found {actual:,}; the largest, {name}, has {sizes[name]:,}"
        )


@dataclass(frozen=True)
class LayerProgram(Standalone):
    """An accelerator layer by itself."""

    operator: Operator


def layer_program(
    op: Operator, tile: Tile, config: Config, *, alone: Collection[Engine] = ()
) -> LayerProgram:
    """Compiles one operator by itself and cold: nothing is on chip when it starts.

    Tokens have the engines in ``alone`` work while no other one does.
    """
    kernel = kernel_of(op.template, tile, config)
    linker = Linker(config)
    op = op.with_kernel(kernel.tensors)
    linker.add(op.node.name, kernel, op.tensors)
    named = {op.tensors[name]: size for name, size in kernel.tensors.items()}
    sizes = {name: size for name, size in named.items() if name not in op.constants}
    program = standalone(linker, sizes, op.constants, alone=alone)
    return LayerProgram(**vars(program), operator=op)
