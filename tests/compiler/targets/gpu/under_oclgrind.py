"""Runs small kernels on Oclgrind and says of each whether it wrote anything to its log."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[4]))

from tests.support.kernels import SCHEDULES, plain, tiled
from vdla import te
from vdla.compiler.targets.gpu.description import ANY
from vdla.compiler.targets.gpu.lower import kernels_of, lower_function
from vdla.compiler.tir import Barrier, PrimFunc, Seq
from vdla.compiler.tir.visitor import rewrite
from vdla.runtime.gpu.base import places
from vdla.runtime.gpu.opencl import find_gpu
from vdla.runtime.kernels import Kernels

LOG = Path(sys.argv[1]).open("w")  # noqa: SIM115  # Oclgrind begins a log of its own anew for every context
os.dup2(LOG.fileno(), 2)


def words() -> int:
    return os.fstat(LOG.fileno()).st_size


def run(kernels: Kernels) -> bool:
    """Whether Oclgrind says anything of a run over ones.

    The image is uploaded at once: of several uploads to one buffer, Oclgrind takes the first bytes
    for uninitialized.
    """
    ((name, function),) = kernels.functions.items()
    offsets, size = places(function.params)
    before = words()
    program = find_gpu().load(kernels, size)
    program.upload(0, np.ones(size // 4, np.float32))
    program.launch(name, offsets)
    program.finish()
    return words() > before


def elementwise():
    x = te.placeholder((7, 9), "int8", "X")
    return plain(te.compute((7, 9), lambda i, j: (x[i, j].astype("int32") * 3) % 7, "Y"))


def many_outputs():
    x = te.placeholder((5, 80), "float32", "X")
    k = te.reduce_axis((0, 80), "k")
    return plain(te.compute((5,), lambda i: te.max(x[i, k], axis=k), "Y"))


def halves():
    return tiled(16, 8, 2, 4, dtype="float16")


def made(func: PrimFunc) -> Kernels:
    return kernels_of([lower_function(func, ANY)], ANY)


schedules = {**SCHEDULES, "element-wise": elementwise, "maxima": many_outputs, "halves": halves}
for name, make in schedules.items():
    print(f"{name}: {'reported' if run(made(make().mod)) else 'silent'}")

lowered = lower_function(tiled(16, 8, 2, 4).mod, ANY)
body = rewrite(lowered.body, lambda s: Seq(()) if isinstance(s, Barrier) else s)
faulty = kernels_of([PrimFunc(lowered.name, lowered.params, body)], ANY)
print(f"race: {'reported' if run(faulty) else 'silent'}")
