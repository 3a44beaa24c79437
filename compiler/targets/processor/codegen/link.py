"""From an object file to a shared object: what a board loads without LLVM.

LLVM brings no linker, so one that is installed is run: GNU's for the target, LLVM's, or the one
inside the package ziglang. What the code calls of the C library stays open; the runtime gives it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
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
    own = "ld" if processor.is_native else f"{processor.gnu}-ld"
    for tool in (own, "ld.lld"):
        path = shutil.which(tool)
        if path:
            return [path]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "ld.lld"]
    raise TargetError(
        f"target {processor.name}: expected a linker "
        f"({processor.gnu}-ld, ld.lld or ziglang), found none; "
        f"install with: apt-get install binutils-{processor.gnu.replace('_', '-')}, "
        f"or {pip_install('arm')}"
    )


def link_shared(code: bytes, processor: Processor) -> bytes:
    """The shared object with everything that the object file ``code`` exports.

    Raises:
        TargetError: there is no linker, or it refuses.
    """
    linker = find_linker(processor)
    with TemporaryDirectory() as folder:
        source, linked = Path(folder, "code.o"), Path(folder, "code.so")
        source.write_bytes(code)
        command = [*linker, "-shared", "--strip-all", "-o", str(linked), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            first = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
            raise TargetError(
                f"target {processor.name}: expected {linker[0]} to link, found: {first}"
            )
        return linked.read_bytes()
