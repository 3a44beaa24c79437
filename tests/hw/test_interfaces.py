"""The ports: widths and directions of AXI as Arm gives them, and what a unit's neighbour sees."""

from __future__ import annotations

import pytest
from amaranth.lib.wiring import In, Out

from vdla.hw import interfaces
from vdla.hw.fifo import Fifo
from vdla.hw.layout import instruction_bits
from vdla.isa.config import load_config
from vdla.isa.registers import INDEX_BITS, Cause, Fault

# Arm IHI 0022H, table A2: widths of what the manager drives, and of what it is answered. An
# identifier may have any width; the core needs two.
ADDRESS = {
    "addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3, "qos": 4,
    "id": 1, "valid": 1,
}  # fmt: skip


def ports(signature):
    return {name: (port.flow, port.shape) for name, port in signature.members.items()}


@pytest.mark.parametrize("name", ["tiny", "narrow", "paper"])
def test_axi4(name):
    config = load_config(name)
    width = 8 * config.port_bytes
    out = {f"{channel}{port}": bits for channel in ("aw", "ar") for port, bits in ADDRESS.items()}
    out |= {"wdata": width, "wstrb": width // 8, "wlast": 1, "wvalid": 1, "bready": 1, "rready": 1}
    answered = {"awready": 1, "arready": 1, "wready": 1, "bid": 1, "bresp": 2, "bvalid": 1}
    answered |= {"rid": 1, "rdata": width, "rresp": 2, "rlast": 1, "rvalid": 1}
    expected = {port: (Out, bits) for port, bits in out.items()}
    expected |= {port: (In, bits) for port, bits in answered.items()}
    assert ports(interfaces.axi4(config)) == expected


def test_axi_lite():
    """Arm IHI 0022H, chapter B1."""
    out = {f"{c}{port}": bits for c in ("aw", "ar") for port, bits in (("addr", 12), ("prot", 3))}
    out |= {"awvalid": 1, "arvalid": 1, "wdata": 32, "wstrb": 4, "wvalid": 1, "bready": 1}
    out |= {"rready": 1}
    answered = {"awready": 1, "arready": 1, "wready": 1, "bresp": 2, "bvalid": 1}
    answered |= {"rdata": 32, "rresp": 2, "rvalid": 1}
    expected = {port: (Out, bits) for port, bits in out.items()}
    expected |= {port: (In, bits) for port, bits in answered.items()}
    assert ports(interfaces.axi_lite(12)) == expected


def test_what_units_tell_each_other():
    """Pulses and flags are one bit; directions are those of the unit that names the port."""
    config = load_config("tiny")
    assert ports(interfaces.command(config)) == {
        "waiting": (Out, 1), "ready": (Out, 1), "word": (Out, instruction_bits(config)),
        "index": (Out, INDEX_BITS), "start": (In, 1), "finish": (In, 1), "push_prev": (In, 1),
        "push_next": (In, 1),
    }  # fmt: skip
    assert ports(interfaces.activity()) == {"idle": (Out, 1), "cause": (Out, Cause)}
    assert ports(interfaces.fault())["valid"] == (Out, 1)
    assert ports(interfaces.fault())["cause"] == (Out, Fault)
    beats = range(config.burst_beats + 1)
    assert ports(interfaces.read_request(config)) == {
        "valid": (Out, 1), "ready": (In, 1), "address": (Out, 32), "beats": (Out, beats),
    }  # fmt: skip
    assert ports(interfaces.read_data(config)) == {
        "valid": (Out, 1), "last": (Out, 1), "data": (Out, 8 * config.port_bytes),
    }  # fmt: skip
    assert ports(interfaces.write_request(config)) == {
        "valid": (Out, 1), "ready": (In, 1), "first": (Out, 1), "last": (Out, 1),
        "address": (Out, 32), "beats": (Out, beats), "data": (Out, 8 * config.port_bytes),
        "answered": (In, 1),
    }  # fmt: skip
    assert ports(interfaces.read_port(9, 5)) == {
        "enable": (Out, 1), "address": (Out, range(9)), "data": (In, 5),
    }  # fmt: skip
    assert ports(interfaces.write_port(9, 5, 3)) == {
        "enable": (Out, 3), "address": (Out, range(9)), "data": (Out, 5),
    }  # fmt: skip
    assert ports(interfaces.write_port(9, 5))["enable"] == (Out, 1)


def test_a_queue_of_bits():
    """Both hand-overs are one bit each, as whoever inverts them takes for granted."""
    assert ports(Fifo(width=8, depth=4).signature) == {
        "w_en": (In, 1), "w_rdy": (Out, 1), "w_data": (In, 8), "r_en": (In, 1), "r_rdy": (Out, 1),
        "r_data": (Out, 8),
    }  # fmt: skip
