"""Makes LLVM's text of loops and its machine code, which ship in ``sim/compiled/shipped``.

    python -m vdla.compiler.ship_loops

numba makes each text for x86-64-v3: LLVM makes the most of vectors of that length on other
processors, too. A text whose sources say the same as before, but for comments and docstrings, stays
as it is and is listed with their new digest. Run it on Linux and x86-64, as machine code is made
for what it runs on.
"""

from __future__ import annotations

import ast
import json
import lzma
import os
from hashlib import sha256
from tempfile import TemporaryDirectory

import llvmlite.binding as llvm
import numpy as np

from vdla.compiler.targets.accelerator.codegen.accesses import Accesses
from vdla.compiler.targets.accelerator.codegen.order import reorder
from vdla.compiler.targets.accelerator.codegen.tokens import place_tokens
from vdla.compiler.targets.accelerator.operators.recurrence import COLUMNS, Timing, estimates
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Load, Mem
from vdla.isa.options import OPTIONS
from vdla.sim.checker import check
from vdla.sim.checker.progress import prove_progress
from vdla.sim.compiled import LOOPS, Loop, native, shipped
from vdla.sim.counts import counts_of
from vdla.sim.machine import warm_up
from vdla.sim.stream import Stream
from vdla.support.files import write_bytes

COMMAND = "python -m vdla.compiler.ship_loops"
VERSION = ".".join(map(str, llvm.llvm_version_info))
LEVEL = {"NUMBA_CPU_NAME": shipped.PROCESSOR, "NUMBA_CPU_FEATURES": ""}
CONFIGS = ("tiny", "paper-ring", "ulx3s")  # one without options, with a vector engine, with banks


def use_loops() -> None:
    """Has machine code of every loop ready, for all kinds of arguments that it gets."""
    configs = [load_config(name) for name in CONFIGS]
    engines = (option.parameter for option in OPTIONS if option.engine)
    configs += [load_config("ulx3s", [f"{each.name}={each.high}"]) for each in engines]
    for config in configs:
        warm_up(config)
    none, tiny = np.zeros(0, np.int64), configs[0]
    program = [Load(memory=Mem.UOP, x_size=1, y_size=1, z_size=1), Finish()]
    dram = np.zeros(4096, np.uint8)
    counts_of(Stream.of(tiny, program, 2048), dram)
    check(tiny, program, dram, 2048)
    prove_progress(tiny, program)
    place_tokens(none, Accesses(np.zeros(1, np.int64), none, none, none, none, none, 0), tiny)
    reorder([])
    estimates(np.ones((1, len(COLUMNS))), Timing(1.0, 1.0, 1.0, True))


def meaning_of(loop: Loop) -> str:
    """A digest of what the sources say that a loop's machine code depends on."""
    own = native.own_file(loop)
    files = [path for room in native.ROOMS for path in sorted(room.rglob("*.py"))]
    result = sha256()
    for path in [*files, *([own] if own else [])]:
        result.update(ast.dump(_without_docstrings(ast.parse(path.read_text()))).encode())
    return result.hexdigest()[:16]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            del body[0]
    return tree


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def ship() -> None:
    """Brings what ships up to date with the sources."""
    meanings = {loop.name: meaning_of(loop) for loop in LOOPS}
    digests = {loop.name: native.sources_of(loop) for loop in LOOPS}
    kept = [entry for entry in shipped.entries() if meanings.get(entry.loop) == entry.meaning]
    kept = [entry._replace(sources=digests[entry.loop]) for entry in kept]
    _write_index(kept)
    use_loops()
    used = {(loop.name, kinds) for loop in LOOPS for kinds in loop.code}
    entries = [entry for entry in kept if (entry.loop, entry.kinds) in used]
    for loop, kinds, packed in native.made:
        name = f"{loop.removeprefix('vdla.')}-{sha256(kinds.encode()).hexdigest()[:6]}"
        entry = shipped.Entry(loop, kinds, digests[loop], meanings[loop], name, VERSION)
        write_bytes(entry.text, packed)
        entry.code.unlink(missing_ok=True)
        entries.append(entry)
        print(f"{entry.text.name}: {len(packed):,} bytes")
    entries = [_with_code(entry) for entry in sorted(entries)]
    _write_index(entries)
    for path in shipped.FOLDER.glob("*.xz"):
        if path not in {path for entry in entries for path in (entry.text, entry.code)}:
            path.unlink()


def _with_code(entry: shipped.Entry) -> shipped.Entry:
    """An entry whose machine code is there."""
    if entry.code.exists():
        return entry
    write_bytes(entry.code, lzma.compress(code_of(entry), preset=9))
    print(f"{entry.code.name}: {entry.code.stat().st_size:,} bytes")
    return entry._replace(llvm=VERSION)


def code_of(entry: shipped.Entry) -> bytes:
    """The machine code of an entry's text, by this version of LLVM."""
    text = lzma.decompress(entry.text.read_bytes()).decode()
    return native.compiled_text(text, shipped.PROCESSOR, "")


def _write_index(entries: list[shipped.Entry]) -> None:
    shipped.FOLDER.mkdir(exist_ok=True)
    text = json.dumps([entry._asdict() for entry in entries], indent=1)
    write_bytes(shipped.INDEX, f"{text}\n".encode())
    shipped.by_use.cache_clear()


def main() -> None:
    """Makes what has to be made, with a cache of its own."""
    os.environ.update(LEVEL)
    with TemporaryDirectory() as folder:
        os.environ["VDLA_CACHE"] = folder
        ship()


if __name__ == "__main__":
    main()
