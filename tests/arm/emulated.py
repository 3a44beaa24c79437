"""A board's processor, emulated: qemu-user with Debian's Python for ARM (see install.sh).

There the board's side of vdla runs, ``isa`` and ``runtime``, and NumPy; here the accelerator does.
``compare`` runs one operator there and here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np

from vdla.compiler.targets.processor.description.processor import NATIVE, find_processor
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.part import native_code
from vdla.isa.config import parse_config
from vdla.runtime import Executor, Module, ModuleError, TensorInfo
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.plan import Host, accelerator_steps

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TINY = np.finfo("float32").tiny  # below it, numbers are subnormal
SYSTEMS = {"cortex-a9": ("qemu-arm", "armhf"), "cortex-a53": ("qemu-aarch64", "arm64")}


def missing(processor: str) -> str | None:
    """What isn't there of what an emulated board takes."""
    qemu, debian = SYSTEMS[processor]
    if shutil.which(qemu) is None:
        return f"no {qemu}: see `make qemu`"
    if not (ROOT / "build/arm" / debian / "ready").exists():
        return f"no build/arm/{debian}: see `make qemu`"
    return None


class Board:
    """One process; runs as many modules as it is given."""

    def __init__(self, processor: str, folder: Path) -> None:
        self.target, self.folder = find_processor(processor), folder
        qemu, debian = SYSTEMS[processor]
        system = ROOT / "build/arm" / debian
        package = folder / "vdla"
        package.mkdir()
        # What a board runs, and the names that vdla/__init__.py reads from the front.
        for part in ("vdla/__init__.py", "vdla/api", "support", "isa", "runtime"):
            (package / Path(part).name).symlink_to(ROOT / part)
        self.process = subprocess.Popen(
            [qemu, "-cpu", processor, "-L", system, next((system / "usr/bin").glob("python3.*")),
             HERE / "on_board.py"],
            env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip

    def run(self, module: Module, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs. ModuleError: what the runtime there says of the module."""
        names = ("module", "inputs.npz", "outputs.npz", "dram")
        paths = {name.split(".")[0]: str(self.folder / name) for name in names}
        module.save(paths["module"])
        np.savez(paths["inputs"], **inputs)
        answer = self._ask(paths)
        while "run" in answer:
            answer = self._ask({"cycles": self._accelerate(module, answer["run"], paths["dram"])})
        if "error" in answer:
            raise ModuleError(answer["error"])
        with np.load(paths["outputs"]) as file:
            return dict(file)

    def _accelerate(self, module: Module, number: int, path: str) -> int:
        """Runs a program over the shared DRAM; its cycles."""
        names = [step.program for step in accelerator_steps(module.steps)]
        device = SimDevice(parse_config(module.config, "module", "header"))
        dram = np.memmap(path, np.uint8, "r+")
        return device.load(module.programs[names[number]], dram)().cycles

    def _ask(self, request: dict) -> dict:
        print(json.dumps(request), file=self.process.stdin)
        line = self.process.stdout.readline()
        assert line, f"the emulated board ended with {self.process.wait()}"
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait(timeout=30)


# One operator ----------------------------------------------------------------------------------


def values(kind, rng: np.random.Generator) -> np.ndarray:
    """Random elements; of floats, some near zero and some subnormal."""
    if kind.dtype == "float32":
        exponents = rng.choice([3.0, 1.0, 1e-20, 1e-39], kind.physical, p=[0.6, 0.2, 0.1, 0.1])
        return (rng.standard_normal(kind.physical) * exponents).astype("float32")
    limits = np.iinfo(kind.dtype)
    return rng.integers(limits.min, limits.max, kind.physical, kind.dtype, endpoint=True)


def module_of(kernel, target) -> Module:
    """A module of one host function whose operands are all inputs."""
    names = [p.name for p in kernel.func.params]
    tensors, end = {}, 0
    for param in kernel.func.params:
        tensors[param.name] = info = TensorInfo(param.shape, param.dtype, end)
        end += -(-info.nbytes // 64) * 64
    step = Host("f", kernel.func.name, tuple(names))
    host = native_code([kernel.func], target)
    return Module(tensors, names[:-1], names[-1:], end, (step,), host=host)


def _prepared(node, graph, known, target):
    """A node's module for a processor, and what it is given."""
    kernel = node_function(node, graph, "f", target)
    given = {**known, **kernel.constants}
    inputs = {
        param.name: given[name].reshape(param.shape)
        for name, param in zip(kernel.args, kernel.func.params[:-1], strict=False)
    }
    return module_of(kernel, target), inputs


def compare(board, node, graph, known=None, *, ulps=0, flushed=False, apart=0.0, seed=0):
    """One node of a graph, here and on the board, over random operands but for the known ones.

    ``flushed``: subnormal results may be zero. ``apart``: how far results may be from each other.
    """
    rng = np.random.default_rng(seed)
    known = {**graph.constants, **(known or {})}
    for name in node.inputs:
        if name not in known:
            known[name] = values(graph.tensors[name], rng)
    here, there = (_prepared(node, graph, known, target) for target in (NATIVE, board.target))
    (want,) = Executor(here[0]).run(here[1]).outputs.values()
    (found,) = board.run(*there).values()
    if flushed:
        want, found = (np.where(np.abs(x) < TINY, np.float32(0), x) for x in (want, found))
    if apart:
        np.testing.assert_allclose(found, want, rtol=apart, atol=apart)
    elif ulps:
        np.testing.assert_array_max_ulp(found, want, ulps)
    else:
        bits = f"u{want.itemsize}"  # as integers: 0.0 is not -0.0
        np.testing.assert_array_equal(found.view(bits), want.view(bits))
