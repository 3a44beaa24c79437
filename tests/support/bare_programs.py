"""Host functions as programs for machines without Python: linked by ziglang, run by an emulator.

A program has one image of a module's tensors, as the runtime has it: it reads it, calls the
functions one after the other, and writes it. It brings its own start, an allocator, what threads
would need, and ziglang's runtime library of the compiler; functions of libm that aren't there end
the program when they are called. The allocator is a stack, since functions give back what they took
last; how much they had at once stands behind the image.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from vdla.compiler.targets.processor.description.processor import Processor, find_processor
from vdla.compiler.targets.processor.part import native_code
from vdla.compiler.tir.ir import PrimFunc
from vdla.runtime import Module, TensorInfo
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.plan import Host

HERE = Path(__file__).parent
ARENA_BYTES = 8 << 20  # of the allocator
ALIGNMENT_BYTES = 64
ZIG = (sys.executable, "-m", "ziglang")
BARE = ("-ffreestanding", "-O1", "-fno-builtin", "-fno-sanitize=all", "-static")


@dataclass(frozen=True)
class Emulator:
    """A command that runs a program, and how ziglang makes one for it."""

    command: tuple[str, ...]
    zig: tuple[str, ...]
    package: str

    @property
    def absent(self) -> str | None:
        """Reason why it can't be used here."""
        if not find_spec("ziglang"):
            return "no ziglang"
        if not shutil.which(self.command[0]):
            return f"no {self.command[0]}: apt-get install {self.package}"
        return None


EMULATORS = {
    "riscv64-linux": Emulator(
        ("qemu-riscv64",),
        ("-target", "riscv64-freestanding-none", "-mcpu=baseline_rv64", "-DLINUX"), "qemu-user",
    ),
    "aarch64-linux": Emulator(
        ("qemu-aarch64", "-cpu", "cortex-a53"),
        ("-target", "aarch64-freestanding-none", "-DLINUX"), "qemu-user",
    ),
    "cortex-a76": Emulator(  # dot products of int8
        ("qemu-aarch64", "-cpu", "cortex-a76"),
        ("-target", "aarch64-freestanding-none", "-DLINUX"), "qemu-user",
    ),
    "neoverse-v1": Emulator(  # and of uint8 and int8, which qemu's own machine has
        ("qemu-aarch64", "-cpu", "max"),
        ("-target", "aarch64-freestanding-none", "-DLINUX"), "qemu-user",
    ),
    "arm-linux": Emulator(
        ("qemu-arm", "-cpu", "cortex-a8"),
        ("-target", "arm-freestanding-eabihf", "-mcpu=cortex_a8", "-DLINUX"), "qemu-user",
    ),
    "thumbv7em": Emulator(
        ("qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting-config",
         "enable=on,target=native", "-kernel"),
        ("-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp",
         f"-Wl,-T,{HERE / 'bare_cortex_m.ld'}"), "qemu-system-arm",
    ),
    "wasm32": Emulator(("node", str(HERE / "bare_wasm.cjs")), (), "nodejs"),
}  # fmt: skip


class PackagedProgram:
    """A packaged network in a folder, for a processor of EMULATORS: one inference of raw bytes."""

    def __init__(self, name: str, target: str, folder: Path, sizes: tuple[int, int]) -> None:
        self.folder, self.sizes, self.emulator = folder, sizes, EMULATORS[target]
        (folder / "calls.h").write_text(packaged_text(name, sum(sizes)))
        sources = [HERE / "bare_program.c", folder / f"lib{name}.a"]
        _run(
            [*ZIG, "cc", *self.emulator.zig, *BARE, "-I", folder, *sources,
             "-o", folder / "program"]
        )  # fmt: skip

    def run(self, given: bytes) -> bytes:
        """The outputs' bytes, of the inputs'."""
        (self.folder / "before").write_bytes(given + bytes(self.sizes[1]))
        command = [*self.emulator.command, str(self.folder / "program")]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        return (self.folder / "after").read_bytes()[len(given) : sum(self.sizes)]


PACKAGED = """\
#include "{name}.h"
enum {{ IMAGE_BYTES = {size}, ARENA_BYTES = {arena} }};
static unsigned char image[];
#ifdef LINUX
MISSING(pthread_create) MISSING(pthread_join) MISSING(pthread_setaffinity_np)
MISSING(sched_getaffinity) MISSING(sched_getcpu)
#endif
static void calls(void) {{
  static _Alignas(64) unsigned char memory[{upper}_MEMORY];
  struct vdla *net;
  struct vdla_tensor tensor;
  unsigned char *at = image;
  if ({name}_open(memory, sizeof memory, NULL, &net)) __builtin_trap();
  for (uint32_t n = 0; vdla_input(net, n, &tensor) == VDLA_OK; n++, at += tensor.bytes)
    __builtin_memcpy(tensor.data, at, tensor.bytes);
  if (vdla_run(net)) __builtin_trap();
  for (uint32_t n = 0; vdla_output(net, n, &tensor) == VDLA_OK; n++, at += tensor.bytes)
    __builtin_memcpy(at, tensor.data, tensor.bytes);
}}
"""


def packaged_text(name: str, size: int) -> str:
    """One inference of a packaged network in C: its inputs are the image's first bytes, its outputs
    the rest."""
    return PACKAGED.format(name=name, upper=name.upper(), size=size, arena=ARENA_BYTES)


class Program:
    """A module of host functions alone, for a processor of EMULATORS, in a folder of its own."""

    def __init__(self, name: str, module: Module, folder: Path) -> None:
        self.name, self.module, self.folder = name, module, folder
        self.emulator, self.peak_bytes = EMULATORS[name], 0
        assert module.host is not None
        assert all(isinstance(step, Host) for step in module.steps)
        (folder / "code.o").write_bytes(module.host.code)
        (self._webassembly if name == "wasm32" else self._executable)()

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs."""
        image = np.zeros(self.module.dram_bytes, np.uint8)
        image[: len(self.module.constants)] = np.frombuffer(self.module.constants, np.uint8)
        for name, value in inputs.items():
            self._tensor(image, name)[...] = value
        image.tofile(self.folder / "before")
        command = [*self.emulator.command, str(self.folder / "program")]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, f"{command}: {done.returncode} {done.stderr[-2000:]}"
        after = np.fromfile(self.folder / "after", np.uint8)
        (self.peak_bytes,) = after[len(image) :].view(np.uint32)
        return {name: self._tensor(after, name).copy() for name in self.module.outputs}

    def _tensor(self, image: np.ndarray, name: str) -> np.ndarray:
        info = self.module.tensors[name]
        part = image[info.offset : info.offset + info.nbytes]
        return part.view(dtype_of(info.dtype)).reshape(info.shape)

    def _calls(self) -> list[tuple[str, list[int]]]:
        """Each function with where its tensors are."""
        tensors = self.module.tensors
        return [(s.function, [tensors[name].offset for name in s.args]) for s in self.module.steps]

    def _executable(self) -> None:
        (self.folder / "calls.h").write_text(calls_text(self._calls(), self.module.dram_bytes))
        sources = [HERE / "bare_program.c", self.folder / "code.o"]
        _run(
            [*ZIG, "cc", *self.emulator.zig, *BARE, "-I", self.folder, *sources,
             "-o", self.folder / "program"]
        )  # fmt: skip

    def _webassembly(self) -> None:
        lines = [f"{name} {' '.join(map(str, at))}" for name, at in self._calls()]
        (self.folder / "program").write_text("\n".join([str(self.module.dram_bytes), *lines]))
        exports = sorted({f"--export={name}" for name, _ in self._calls()})
        _run(
            [*ZIG, "wasm-ld", "--no-entry", "--export=__heap_base", "--allow-undefined",
             "-z", "stack-size=1048576", *exports, self.folder / "code.o",
             "-o", self.folder / "program.wasm"]
        )  # fmt: skip


def calls_text(calls: Sequence[tuple[str, list[int]]], size: int) -> str:
    """The calls in C, and the image's size."""
    names = dict.fromkeys(name for name, _ in calls)
    lines = [f"enum {{ IMAGE_BYTES = {size}, ARENA_BYTES = {ARENA_BYTES} }};"]
    lines += ["static unsigned char image[];", "static void calls(void) {"]
    lines += [f'  extern void f{n}(void **) __asm__("{name}");' for n, name in enumerate(names)]
    numbers = {name: n for n, name in enumerate(names)}
    for name, at in calls:
        places = ", ".join(f"image + {offset}" for offset in at)
        lines.append(f"  {{ void *buffers[] = {{{places}, 0}}; f{numbers[name]}(buffers); }}")
    return "\n".join([*lines, "}", ""])


def _run(command: Sequence[object]) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def processor_of(name: str) -> Processor:
    """The processor, whose objects are linked here."""
    return replace(find_processor(name), shared=False)


def module_of(functions: Sequence[PrimFunc], processor: Processor) -> Module:
    """A module that calls functions of distinct names one after the other, each with tensors of
    its own: ``FUNCTION.n`` is parameter n, and the last one is its result."""
    tensors, steps, end = {}, [], 0
    for func in functions:
        names = tuple(f"{func.name}.{n}" for n in range(len(func.params)))
        for name, param in zip(names, func.params, strict=True):
            tensors[name] = info = TensorInfo(param.shape, param.dtype, end)
            end += -(-info.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        steps.append(Host(func.name, func.name, names))
    inputs = [name for step in steps for name in step.args[:-1]]
    outputs = [step.args[-1] for step in steps]
    host = native_code(functions, processor)
    return Module(tensors, inputs, outputs, end, tuple(steps), host=host)
