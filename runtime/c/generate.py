"""Generates ``numbers.h`` and ``boards/link.h``, and LLVM's text of ``runtime.c`` and ``threads.c``
for 64 and 32 bits, and of ``wasm.c``.

    python -m vdla.runtime.c.generate

``numbers.h`` has in C what ``isa`` and ``runtime`` have in Python: registers, faults, types, kinds
of steps; ``boards/link.h`` has what ``runtime/board`` does. The texts of LLVM are made as those of
``runtime/pool`` are, so that whoever packages a module needs no compiler.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from vdla.isa import program, registers
from vdla.isa.registers import Cause, Fault, register
from vdla.isa.ring import Engine
from vdla.runtime import module, plan
from vdla.runtime.board import driver, link, mapped, serial
from vdla.runtime.dtypes import DTYPES, STORED, dtype_of
from vdla.runtime.pool import numbers as pool
from vdla.runtime.pool.generate import agreed, compiled, neutral, ziglang_version
from vdla.support.files import write_bytes

FOLDER = Path(__file__).parent
COMMAND = "python -m vdla.runtime.c.generate"
WASM = "wasm32-freestanding"
TARGETS = {64: ("x86_64-linux-gnu", "aarch64-linux-gnu"), 32: ("arm-linux-gnueabihf", WASM)}
SOURCES: Mapping[str, Mapping[int, Sequence[str]]] = {
    "runtime": TARGETS,
    "threads": TARGETS,
    "wasm": {32: (WASM,)},
}
INCLUDE = re.compile(r'^#include "([\w.]+)"$', re.MULTILINE)
REGISTERS = (
    "ID", "CONTROL", "STATUS", "INTERRUPT_STATUS", "PROGRAM_ISA", "PROGRAM_CONFIG", "PROGRAM_BASE",
    "PROGRAM_LENGTH", "DRAM_BASE", "DRAM_SIZE", "FAULT_CAUSE", "FAULT_INSTRUCTION", "CYCLES_LOW",
)  # fmt: skip


def numbers_header() -> str:
    """The text of ``numbers.h``."""
    return _header("VDLA_NUMBERS_H", _numbers())


def link_header() -> str:
    """The text of ``boards/link.h``."""
    return _header("VDLA_LINK_H", ((f"VDLA_{name}", value) for name, value in _link()))


def _header(guard: str, numbers: Iterable[tuple[str, object]]) -> str:
    lines = [f"// From isa/ and runtime/ by {COMMAND}.", "", f"#ifndef {guard}"]
    lines += [f"#define {guard}", ""]
    lines += [f"#define {name} {value}" for name, value in numbers]
    return "\n".join([*lines, "", "#endif", ""])


def _numbers() -> Iterator[tuple[str, object]]:
    yield "MODULE_MAGIC", _bytes(module.MAGIC)
    yield "MODULE_VERSION", module.FORMAT_VERSION
    yield "PROGRAM_MAGIC", _bytes(program.MAGIC)
    yield "PROGRAM_VERSION", program.VERSION
    yield "PROGRAM_HEADER", program.HEADER_BYTES
    for number, kind in enumerate(plan.STEPS):
        yield f"STEP_IS_{kind.upper()}", number
    yield "TYPE_SIZES", _braces(_item_bytes(name) for name in DTYPES)
    for name in ("POOL_BYTES", "OPEN", "CLOSED", "OVER"):
        yield f"POOL_{name.removeprefix('POOL_')}", getattr(pool, name)
    for name in REGISTERS:
        yield f"REGISTER_{name}", f"{register(name).offset:#x}"
    yield "REGISTER_COUNTERS", f"{registers.COUNTERS_AT:#x}"
    yield "MOST_COUNTERS", len(Engine) * len(Cause)
    yield "CORE_IDENTITY", f"{registers.IDENTITY:#x}u"
    yield "CORE_VERSION", f"{registers.VERSION:#x}u"
    yield "CONTROL_START", registers.START
    yield "CONTROL_RESET", registers.RESET
    yield "STATUS_BUSY", registers.BUSY
    for name in ("DONE", "FAULT"):
        yield f"STATUS_{name}", register("STATUS").field(name).mask
    yield "EVENTS", registers.EVENTS
    yield "FAULT_NAMES", _braces(f'"{fault.name}"' for fault in Fault)


def _link() -> Iterator[tuple[str, object]]:
    for name in (
        "REQUEST_SYNC", "REPLY_SYNC", "REQUEST_HEADER", "REPLY_HEADER", "CHECKSUM", "MOST_WORDS",
    ):  # fmt: skip
        yield name, getattr(link, name)
    yield "SPEED", f"B{link.BAUD}"
    for op in link.Op:
        yield op.name, op.value
    yield "OPS", _braces(f'"{op.name}"' for op in link.Op)
    for status in link.Status:
        yield f"STATUS_{status.name}", status.value
    yield "STATUSES", _braces(f'"{status.name}"' for status in link.Status)
    yield "RETRIES", serial.RETRIES
    yield "GRANULE", serial.GRANULE
    yield "QUIET_US", _microseconds(link.QUIET)
    yield "ANSWER_US", _microseconds(serial.ANSWER)
    yield "RUN_US", _microseconds(driver.RUN_LIMIT)
    yield "REST_US", _microseconds(driver.REST_LIMIT)
    yield "FIRST_POLL_US", _microseconds(driver.FIRST_POLL)
    yield "LONGEST_POLL_US", _microseconds(driver.LONGEST_POLL)
    yield "UIO_NAME", f'"{mapped.UIO_NAME}"'
    yield "BOTH_WAYS", mapped.BOTH_WAYS
    yield "TO_DEVICE", mapped.TO_DEVICE
    yield "FROM_DEVICE", mapped.FROM_DEVICE
    yield "REGISTERS_BYTES", registers.SPACE_BYTES
    yield "CAUSES", _braces(f'"{cause.name}"' for cause in Cause)


def _microseconds(seconds: float) -> int:
    return round(1e6 * seconds)


def _bytes(data: bytes) -> str:
    return _braces(map(str, data))


def _braces(values: Iterable[object]) -> str:
    return f"{{{', '.join(map(str, values))}}}"


def _item_bytes(dtype: str) -> int:
    """Bytes of an element; of one that is only stored, two for bfloat16 and else one."""
    if dtype in STORED:
        return 2 if dtype == "bfloat16" else 1
    return dtype_of(dtype).itemsize


def source_text(name: str) -> str:
    """A source with what it includes of this folder."""
    seen = set[str]()

    def included(match: re.Match[str]) -> str:
        path = match[1]
        if path in seen:
            return ""
        seen.add(path)
        text = numbers_header() if path == "numbers.h" else (FOLDER / path).read_text()
        return INCLUDE.sub(included, text)

    return INCLUDE.sub(included, f'#include "{name}.c"')


def generated_files() -> dict[str, str]:
    """The text of each generated file by its name, as the installed ziglang compiles them."""
    files = {"numbers.h": numbers_header(), "boards/link.h": link_header()}
    for name, by_bits in SOURCES.items():
        text = source_text(name)
        source = sha256(text.encode()).hexdigest()
        head = f"; From {name}.c by {COMMAND}\n; ziglang {ziglang_version()}, SHA-256 {source}\n"
        for bits, targets in by_bits.items():
            texts = {target: neutral(compiled(text, target, f"{name}.c")) for target in targets}
            files[f"{name}{bits}.ll"] = f"{head}\n{agreed(bits, texts)}"
    return files


def main() -> None:
    """Writes the generated files."""
    if ziglang_version() is None:
        sys.exit("runtime.c: expected the package ziglang, found none; pip install 'vdla[dev]'")
    for name, text in generated_files().items():
        write_bytes(FOLDER / name, text.encode())
        print(FOLDER / name)


if __name__ == "__main__":
    main()
