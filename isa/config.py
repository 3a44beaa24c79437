"""Configs: the parameters of one accelerator and of the memory it is attached to.

A config is a TOML file. Its top-level keys describe the hardware and make up the **config hash**
that every program carries; its ``[memory]`` table describes the DRAM behind the port and is not
part of the hash, since one bitstream meets many memories; nor is its ``[clock]`` table, which says
where the clock comes from (``clock.py``).

    name = "paper"
    block_in = 16        # lanes of an INP vector
    [memory]
    latency = 64         # cycles from a read request to its first beat
    [memory.banks]       # only if the memory has banks
    count = 4
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from vdla.isa.clock import TABLE, Clock, at_clock, clock_of
from vdla.isa.memory import Banks, Memory
from vdla.isa.options import OPTIONS, options_of
from vdla.isa.parameters import (
    ConfigError,
    check_ranges,
    pace,
    parameter,
    parameter_line,
    parameters,
    typed,
)
from vdla.isa.scratchpads import Mem
from vdla.support.named_toml import names_in, read_toml
from vdla.support.names import check_name

T = TypeVar("T")

CONFIG_DIR = Path(__file__).parent / "configs"
INT32_BYTES = 4
PAGE_BYTES = 4096  # no burst crosses a page (AXI4, section A3.4.1)
MEMORY, BANKS = "memory.", "memory.banks."  # scopes of keys; those of the config itself have none
TABLES = (TABLE, "memory", "banks")  # keys whose values are tables


def _with_options(cls: type[T]) -> type[T]:
    """Adds the options' parameters to a config's, in front of the last one."""
    *own, last = cls.__annotations__.items()
    added = {option.parameter.name: option.parameter for option in OPTIONS}
    cls.__annotations__ = {**dict(own), **dict.fromkeys(added, "int"), **dict([last])}
    for name, each in added.items():
        setattr(cls, name, parameter(each.doc, each.off, each.low, each.high))
    return cls


@dataclass(frozen=True, eq=False)
@_with_options
class Config:
    """One accelerator. Sizes are in bytes unless they say otherwise.

    It has a parameter for each option, too, which the option's file in ``isa/options`` declares.
    ``clock`` says where the clock comes from; configs that differ in nothing else are equal.
    """

    name: str = field(metadata={"doc": "the config's name"})
    block_in: int = parameter("lanes of an INP vector: input channels per GEMM step", high=256)
    block_out: int = parameter("lanes of an ACC vector: output channels per GEMM step", high=256)
    inp_bytes: int = parameter("activation buffer, int8 vectors of block_in lanes")
    wgt_bytes: int = parameter("weight buffer, int8 tiles of block_out × block_in")
    acc_bytes: int = parameter("accumulator buffer, int32 vectors of block_out lanes")
    uop_bytes: int = parameter("micro-op buffer")
    port_bytes: int = parameter("width of the memory port; one beat", 8, low=4, high=128)
    clock_mhz: int = pace("nominal clock, for GOPS and seconds", 200)
    command_queue: int = pace("instructions waiting in front of each engine", 16, low=2)
    token_queue: int = pace("tokens a dependency queue holds", 64, low=1)
    burst_beats: int = pace("longest burst, in beats", 16, high=256)
    reads_in_flight: int = pace("read bursts LOAD keeps in flight", 32, high=512)
    read_buffer_beats: int = pace("beats LOAD can have requested and not yet written", 256)
    writes_in_flight: int = pace("write bursts STORE keeps in flight", 16, high=512)
    clock: Clock = field(default_factory=Clock)
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        check_name(self.name, "config", ConfigError)
        check_ranges(f"config {self.name}", self)
        port = self.port_bytes
        for what, entry in (
            ("block_in", self.inp_entry),
            ("block_out", self.out_entry),
            ("block_in × block_out", self.wgt_entry),
        ):
            self._expect(
                entry % port == 0,
                f"{what} bytes to be a multiple of port_bytes = {port}, found {entry}",
            )
        low, high = sorted((self.block_in, self.block_out))
        self._expect(
            high % low == 0,
            "one of block_in, block_out to divide the other, "
            f"found {self.block_in} and {self.block_out}",
        )
        self._expect(port & (port - 1) == 0, f"port_bytes to be a power of two, found {port}")
        burst = self.burst_beats * port
        self._expect(burst <= PAGE_BYTES, f"burst_beats × port_bytes ≤ {PAGE_BYTES}, found {burst}")
        self._expect(
            self.read_buffer_beats >= self.burst_beats,
            f"read_buffer_beats ≥ burst_beats = {self.burst_beats}, found {self.read_buffer_beats}",
        )
        if banks := self.memory.banks:
            self._expect(
                banks.row_bytes >= port,
                f"memory.banks.row_bytes ≥ port_bytes = {port}, found {banks.row_bytes}",
            )
        for option in OPTIONS:
            for holds, expected in option.checks(self):
                self._expect(holds, expected)
        self._expect(
            len(self.fourth_engines) <= 1,
            f"one fourth engine at most, found {' and '.join(self.fourth_engines)}; "
            "set one of them to 0",
        )
        for buffer in ("inp", "wgt", "acc", "uop"):
            self._expect(
                self.depth(buffer) >= 2,
                f"{buffer}_bytes to hold at least 2 entries of {self.entry(buffer)} bytes, "
                f"found {getattr(self, buffer + '_bytes')}",
            )

    def _expect(self, holds: bool, expected: str) -> None:
        """Raises an error unless the config ``holds`` to what is expected of it."""
        if not holds:
            raise ConfigError(f"config {self.name}: expected {expected}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _key(self) -> str:
        values = asdict(self)
        del values[TABLE]
        return json.dumps(values, sort_keys=True)

    @cached_property
    def _hash(self) -> int:  # a config keys many caches
        return hash(self._key)

    # What follows from the parameters -------------------------------------------------------

    @property
    def inp_entry(self) -> int:
        """Bytes of one INP vector."""
        return self.block_in

    @property
    def wgt_entry(self) -> int:
        """Bytes of one WGT tile."""
        return self.block_in * self.block_out

    @property
    def acc_entry(self) -> int:
        """Bytes of one ACC vector."""
        return self.block_out * INT32_BYTES

    @property
    def out_entry(self) -> int:
        """Bytes of one ACC vector narrowed to int8: what ACC8 moves."""
        return self.block_out

    @cached_property
    def uop_entry(self) -> int:
        """Bytes of one micro-op: the power of two that holds its fields."""
        bits = 1 + 2 * self.index_bits("acc") + self.index_bits("wgt")
        bits += max(self.index_bits("inp") - self.index_bits("acc"), 0)
        size = 4
        while size * 8 < bits:
            size *= 2
        return size

    @cached_property
    def uops_per_word(self) -> int:
        """Micro-ops in one UOP entry: LOAD moves whole port words."""
        return max(self.port_bytes // self.uop_entry, 1)

    def entry(self, buffer: str) -> int:
        """Bytes of one entry of a memory in DRAM: ``inp``, ``wgt``, ``acc``, ``acc8``, ``uop`` or
        one that an option adds.
        """
        return self._entries[buffer] if buffer in self._entries else self._entry(buffer)

    @cached_property
    def _entries(self) -> dict[str, int]:
        """Bytes of the entries asked for so far: those of micro-ops depend on the others."""
        return {}

    def _entry(self, buffer: str) -> int:
        self._entries[buffer] = Mem.named(buffer.upper()).entry(self)
        return self._entries[buffer]

    def size(self, buffer: str) -> int:
        """Bytes of a buffer."""
        return int(getattr(self, Mem.named(buffer.upper()).size))

    def depth(self, buffer: str) -> int:
        """Entries of a buffer."""
        return self.size(buffer) // self.entry(Mem.named(buffer.upper()).buffer)

    def index_bits(self, buffer: str) -> int:
        """Bits that address a buffer's entries."""
        return max((self.depth(buffer) - 1).bit_length(), 1)

    @property
    def bytes_per_cycle(self) -> int:
        """The most bytes that cross the port in a cycle: what it can take, or the memory give."""
        return min(self.port_bytes, self.memory.bytes_per_cycle)

    @property
    def uop_depth(self) -> int:
        """Micro-ops the UOP buffer holds."""
        return self.depth("uop") * self.uops_per_word

    @cached_property
    def fourth_engines(self) -> tuple[str, ...]:
        """The options that are on and put a further engine into the ring."""
        return tuple(o.parameter.name for o in options_of(self) if o.engine is not None)

    @property
    def channel_block(self) -> int:
        """Channels that lie together in a DRAM tensor: ``[N, C/block, H, W, block]``."""
        return max(self.block_in, self.block_out)

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-adds of one GEMM step."""
        return self.block_in * self.block_out

    @property
    def peak_gops(self) -> float:
        """Peak throughput; a multiply-add counts as two operations."""
        return 2 * self.macs_per_cycle * self.clock_mhz / 1000

    @property
    def at_clock(self) -> str:
        """The phrase behind each time at this clock: ``at 200 MHz (asked)``."""
        return at_clock(self.clock_mhz, self.clock.source)

    @cached_property
    def untimed(self) -> Config:
        """The config with a neutral memory and pace, without options that change no instruction:
        kernels are the same on all configs that are the same so."""
        paces = (f for f in parameters(Config) if f.metadata.get("pace"))
        neutral = {f.name: f.metadata["low"] for f in paces}
        options = (option.parameter for option in OPTIONS if option.parameter.pace)
        neutral |= {each.name: each.off for each in options}
        return replace(self, **neutral, clock=Clock(), memory=Memory())

    @cached_property
    def hash(self) -> str:
        """8 hex digits over every hardware parameter; the name, the memory and the clock's origin
        are left out."""
        values = self.machine
        del values["memory"]
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    # Reading, overriding, writing -------------------------------------------------------------

    def override(self, settings: Iterable[str]) -> Config:
        """The config with ``KEY=VALUE`` settings; a key is a parameter or ``memory.`` and one.

        The order means nothing: the machine is checked once, with all of them applied. Another
        machine than this one, which has another hash, has a clock that is asked.

        Raises:
            ConfigError: a setting can't be read, or they describe an impossible machine.
        """
        values = {"name": self.name, **self.machine}
        tables = _tables(values)
        for setting in settings:
            key, equals, text = setting.partition("=")
            scope, name = _scope(key.strip())
            scope, name = (scope, name) if scope in tables else (MEMORY, key.strip())
            if not equals or name not in _names(scope):
                expected = (scope + each for each in _names(scope))
                raise ConfigError(
                    f"--set {setting}: expected KEY=VALUE with KEY one of "
                    f"{', '.join(expected)}, found {key.strip()!r}"
                )
            try:
                tables[scope][name] = int(text.strip().replace("_", ""), 0)
            except ValueError:
                raise ConfigError(f"--set {setting}: expected an integer, found {text!r}") from None
        result = parse_config(values, self.name, f"config {self.name}")
        return replace(result, clock=self.clock) if result.hash == self.hash else result

    @property
    def machine(self) -> dict[str, Any]:
        """The config as ``parse_config`` reads it, without its name and its clock's origin."""
        values = self.to_dict()
        del values["name"]
        values.pop(TABLE, None)
        return values

    def to_dict(self) -> dict[str, Any]:
        """The config as ``parse_config`` reads it: every parameter but options that are off, and
        the clock's origin where that is asked, and a DRAM's ``clock_ratio`` of 1.

        A machine without an option is the one that it was before anybody thought of the option. So
        it keeps its hash, and the keys of the records, modules and bitstreams made for it.
        """
        values = asdict(self)
        for option in OPTIONS:
            if not option.is_on(self):
                del values[option.parameter.name]
        banks = values["memory"]["banks"]
        if banks is None:
            del values["memory"]["banks"]
        elif banks["clock_ratio"] == 1:
            del banks["clock_ratio"]
        del values[TABLE]
        return values if self.clock.is_asked else {**values, TABLE: self.clock.to_dict()}

    def to_toml(self) -> str:
        """The config as a TOML file with each parameter's meaning."""
        parts = {"": self, "[memory]": self.memory, "[memory.banks]": self.memory.banks}
        lines = [f'name = "{self.name}"']
        for title, part in parts.items():
            if part is not None:
                lines += ["", title] if title else []
                lines += [parameter_line(f, getattr(part, f.name)) for f in parameters(type(part))]
            if part is self and not self.clock.is_asked:
                lines += ["", self.clock.to_toml()]
        return "\n".join(lines) + "\n"


Part = type[Config] | type[Memory] | type[Banks]
PARTS: dict[str, Part] = {"": Config, MEMORY: Memory, BANKS: Banks}


def load_config(name: str | Path, settings: Iterable[str] = ()) -> Config:
    """Reads a config by its name or from a TOML file, then applies ``KEY=VALUE`` settings.

    Raises:
        ConfigError: no such config, not TOML, an unknown or ill-typed key, an impossible machine.
    """
    data, path = read_toml("config", name, CONFIG_DIR, ConfigError)
    return parse_config(data, path.stem, str(path)).override(settings)


def parse_config(data: Mapping[str, Any], name: str, where: str) -> Config:
    """Builds a config from decoded TOML; ``where`` names the source in errors."""
    hardware = {"name": name, **data}
    tables = _tables(hardware, where)
    for scope, values in tables.items():
        _check_keys(values, scope, where)
    check_name(hardware["name"], where, ConfigError)
    tables[MEMORY]["banks"] = Banks(**tables[BANKS]) if BANKS in tables else None
    parts: dict[str, object] = {"memory": Memory(**tables[MEMORY])}
    if TABLE in hardware:
        parts[TABLE] = clock_of(hardware[TABLE], hardware.get("clock_mhz"), where)
    return Config(**{**hardware, **parts})


def _tables(values: dict[str, Any], where: str = "") -> dict[str, dict[str, Any]]:
    """A config's tables by the scope of their keys; those within ``values`` are made its own."""
    tables = {"": values}
    for scope, (above, name) in {MEMORY: ("", "memory"), BANKS: (MEMORY, "banks")}.items():
        if scope == BANKS and tables[above].get(name) is None:  # a memory without any
            continue
        table = tables[above].get(name, {})
        if not isinstance(table, Mapping):
            raise ConfigError(f"{where}: expected {scope[:-1]} to be a table, found {table!r}")
        tables[above][name] = tables[scope] = dict(table)
    return tables


def _scope(key: str) -> tuple[str, str]:
    """A key's scope, and its name there."""
    scope = next((each for each in (BANKS, MEMORY) if key.startswith(each)), "")
    return scope, key.removeprefix(scope)


def _names(scope: str) -> list[str]:
    """The parameters that a scope has."""
    return [f.name for f in parameters(PARTS[scope])]


def engine_options() -> tuple[str, ...]:
    """The options that put a fourth engine into the ring; a config has one at most."""
    return tuple(option.parameter.name for option in OPTIONS if option.engine is not None)


def config_names() -> list[str]:
    """The bundled configs."""
    return names_in(CONFIG_DIR)


def _check_keys(data: Mapping[str, Any], scope: str, where: str) -> None:
    known = {f.name: f for f in fields(PARTS[scope])}
    for key, value in data.items():
        if key not in known:
            expected = ", ".join(scope + k for k in known if k not in TABLES)
            raise ConfigError(f"{where}: expected one of {expected}, found {scope}{key}")
        if key in TABLES:
            continue
        kind, article = (str, "a string") if key == "name" else (int, "an integer")
        if not typed(value, (kind,)):
            raise ConfigError(f"{where}: expected {scope}{key} to be {article}, found {value!r}")
    for k, f in known.items():
        if k not in data and f.default is MISSING and f.default_factory is MISSING:
            raise ConfigError(f"{where}: expected {scope}{k}, found no such key")
