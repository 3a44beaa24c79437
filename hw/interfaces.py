"""The ports between units.

Rules that hold for every port of the core:

1. Everything is synchronous to one clock; outputs are functions of registers, except where a port's
   rules say otherwise. docs/timing.md says in which cycle things happen.
2. Where a port has ``valid`` and ``ready``, a transfer takes place in each cycle in which both are
   high. ``valid`` doesn't wait for ``ready``, and once high it stays, with its payload, until then
   or until the core is IDLE.
3. A pulse (``start``, ``finish``, ``enable``) acts in the cycle in which it is high.
"""

from __future__ import annotations

from amaranth.lib.wiring import FlippedInterface, In, Out, PureInterface, Signature

from vdla.hw.layout import instruction_bits
from vdla.isa.config import Config
from vdla.isa.instructions import DRAM_BITS
from vdla.isa.registers import INDEX_BITS, Cause, Fault
from vdla.isa.ring import ring_of

# A unit's side of a port; which signature it has, its name or a comment says.
Port = PureInterface | FlippedInterface


def pushes(config: Config) -> tuple[str, ...]:
    """The flags of the tokens that an instruction gives: of each side, whether it gives one."""
    return tuple(f"push_{side}" for side in ring_of(config).sides)


def command(config: Config) -> Signature:
    """From the token unit to an engine: the next instruction, and when it may start.

    * ``waiting``: the engine's queue holds an instruction; ``word`` and ``index`` are its own.
    * ``ready``: it waits, the tokens it pops are there, the slots it pushes to are free.
    * ``start``: the engine takes it in this cycle; only when ``ready``. Depends on ``ready``.
    * ``finish``: the engine's oldest instruction finishes in this cycle, and pushes.
    """
    return Signature(
        {
            "waiting": Out(1),
            "ready": Out(1),
            "word": Out(instruction_bits(config)),
            "index": Out(INDEX_BITS),
            "start": In(1),
            "finish": In(1),
            **{flag: In(1) for flag in pushes(config)},
        }
    )


def activity() -> Signature:
    """Activity of an engine in a cycle: its cause (docs/timing.md, section 10), when not ``idle``.

    ``idle`` stands for the last three lines of the table: token, drain or fetch, which the core
    tells apart. Both may depend on ``ready``, not on ``start``: where nothing is under way, what is
    ready starts.
    """
    return Signature({"idle": Out(1), "cause": Out(Cause)})


def fault() -> Signature:
    """A fault of a unit, or of one side of it, in this cycle, and its instruction's number."""
    return Signature({"valid": Out(1), "cause": Out(Fault), "index": Out(INDEX_BITS)})


def read_request(config: Config) -> Signature:
    """From a unit to the DMA: one burst that doesn't cross a page.

    ``address`` counts from DRAM_BASE. As rule 2 says, a request stays until it is taken: the DMA
    shows it to the bus as it is, and keeps nothing of it. The core isn't IDLE before what has been
    shown is taken.
    """
    return Signature(
        {
            "valid": Out(1),
            "ready": In(1),
            "address": Out(DRAM_BITS),
            "beats": Out(range(config.burst_beats + 1)),
        }
    )


def read_data(config: Config) -> Signature:
    """From the DMA to a unit: a beat each cycle that ``valid`` is high; the unit always has room.

    ``last`` marks the last beat of a burst.
    """
    return Signature({"valid": Out(1), "last": Out(1), "data": Out(8 * config.port_bytes)})


def write_request(config: Config) -> Signature:
    """From STORE to the DMA: bursts of data, their address with the first beat.

    * ``valid``: a beat waits; it is taken when ``ready`` is high.
    * ``first``: it opens a burst of ``beats`` at ``address`` (counted from DRAM_BASE), which hold
      as long as ``first`` does; ``last``: it closes the burst.
    * ``answered``: pulse, the oldest unanswered burst has been answered.
    """
    return Signature(
        {
            "valid": Out(1),
            "ready": In(1),
            "first": Out(1),
            "last": Out(1),
            "address": Out(DRAM_BITS),
            "beats": Out(range(config.burst_beats + 1)),
            "data": Out(8 * config.port_bytes),
            "answered": In(1),
        }
    )


def read_port(depth: int, width: int) -> Signature:
    """From a unit to a scratchpad: data follows in the cycle after ``enable``, and stays."""
    return Signature({"enable": Out(1), "address": Out(range(depth)), "data": In(width)})


def write_port(depth: int, width: int, columns: int = 1) -> Signature:
    """From a unit to a scratchpad: writes the columns that ``enable`` names.

    A write in cycle t is seen by reads with ``enable`` in t + 1 and later.
    """
    return Signature({"enable": Out(columns), "address": Out(range(depth)), "data": Out(width)})


def claims() -> Signature:
    """From GEMM to an engine of ALU beside it: the ports of ACC that GEMM takes in any case.

    * ``reads``: the first read port, in this cycle; ``will_read``: LATE_READ cycles on;
    * ``will_write``: the write port, WRITE cycles on.

    All come from registers. What is taken later is known when the micro-op is in READ.
    """
    return Signature({"reads": Out(1), "will_read": Out(1), "will_write": Out(1)})


def axi4(config: Config) -> Signature:
    """An AXI4 manager. IDs: 0 fetch, 1 LOAD; writes use 0 (Arm IHI 0022, chapter A2)."""
    bits = 8 * config.port_bytes
    address = {
        "addr": Out(DRAM_BITS),
        "len": Out(8),
        "size": Out(3),
        "burst": Out(2),
        "lock": Out(1),
        "cache": Out(4),
        "prot": Out(3),
        "qos": Out(4),
        "id": Out(1),
        "valid": Out(1),
        "ready": In(1),
    }
    members = {f"aw{name}": port for name, port in address.items()}
    members |= {
        "wdata": Out(bits),
        "wstrb": Out(config.port_bytes),
        "wlast": Out(1),
        "wvalid": Out(1),
        "wready": In(1),
        "bid": In(1),
        "bresp": In(2),
        "bvalid": In(1),
        "bready": Out(1),
    }
    members |= {f"ar{name}": port for name, port in address.items()}
    members |= {
        "rid": In(1),
        "rdata": In(bits),
        "rresp": In(2),
        "rlast": In(1),
        "rvalid": In(1),
        "rready": Out(1),
    }
    return Signature(members)


def axi_lite(address_bits: int) -> Signature:
    """An AXI4-Lite subordinate's port of 32 bits, as its manager sees it."""
    return Signature(
        {
            "awaddr": Out(address_bits),
            "awprot": Out(3),
            "awvalid": Out(1),
            "awready": In(1),
            "wdata": Out(32),
            "wstrb": Out(4),
            "wvalid": Out(1),
            "wready": In(1),
            "bresp": In(2),
            "bvalid": In(1),
            "bready": Out(1),
            "araddr": Out(address_bits),
            "arprot": Out(3),
            "arvalid": Out(1),
            "arready": In(1),
            "rdata": In(32),
            "rresp": In(2),
            "rvalid": In(1),
            "rready": Out(1),
        }
    )


__all__ = [
    "Cause",
    "Fault",
    "In",
    "Out",
    "Port",
    "activity",
    "axi4",
    "axi_lite",
    "claims",
    "command",
    "fault",
    "pushes",
    "read_data",
    "read_port",
    "read_request",
    "write_port",
    "write_request",
]
