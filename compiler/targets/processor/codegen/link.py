"""From an object file to a shared object: what a board loads without LLVM.

LLVM brings no linker, so one that is installed is run: GNU's for the target, LLVM's, or the one
inside the package ziglang. What the code calls of the C library stays open; the runtime gives it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.support.install import pip_install


def find_linker(processor: Processor) -> list[str]:
    """The command that links for a target.

    Raises:
        TargetError: there is none.
    """
    tools, inside, package = _linkers(processor)
    for tool in tools:
        path = shutil.which(tool)
        if path:
            return [path]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", inside]
    raise TargetError(
        f"target {processor.name}: expected a linker ({', '.join(tools)} or ziglang), found none; "
        f"install with: apt-get install {package}, or {pip_install('arm')}"
    )


def _linkers(processor: Processor) -> tuple[Sequence[str], str, str]:
    """Linkers for a target: those that a system has, ziglang's, and Debian's package of one."""
    if processor.machine == "wasm32":
        return ("wasm-ld",), "wasm-ld", "lld"
    own = "ld" if processor.is_native else f"{processor.gnu}-ld"
    return (own, "ld.lld"), "ld.lld", f"binutils-{processor.gnu.replace('_', '-')}"


def run_linker(flags: Sequence[str], given: Mapping[str, bytes], processor: Processor) -> bytes:
    """The file that a target's linker makes of some files, of which objects are named to it.

    Raises:
        TargetError: there is no linker, or it refuses.
    """
    linker = find_linker(processor)
    with TemporaryDirectory() as folder:
        for name, data in given.items():
            Path(folder, name).write_bytes(data)
        objects = [name for name in given if name.endswith(".o")]
        done = subprocess.run(
            [*linker, *flags, "-o", "linked", *objects],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            first = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
            raise TargetError(
                f"target {processor.name}: expected {linker[0]} to link, found: {first}"
            )
        return Path(folder, "linked").read_bytes()


def link_shared(code: bytes, processor: Processor) -> bytes:
    """The shared object with everything that the object file ``code`` exports.

    Raises:
        TargetError: there is no linker, or it refuses.
    """
    return run_linker(("-shared", "--strip-all"), {"code.o": code}, processor)
