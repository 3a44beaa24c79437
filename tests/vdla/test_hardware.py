"""The commands about hardware: lockstep, Verilog, the device rtl."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from vdla.isa.config import load_config
from vdla.isa.registers import SPACE_BYTES
from vdla.runtime.rtl.verilate import verilator_root


def test_lockstep_json_has_the_contract_keys(vdla):
    done = vdla("lockstep", "-c", "tiny", "--programs", 5, "--seed", 7, "--json")
    assert done.code == 0
    assert set(done.json) == {
        "config", "programs", "instructions", "mismatches", "max_cycle_error",
        "rtl_cycles_per_second", "sim_cycles_per_second",
        "ended", "faulted", "deadlocked", "unexpected_endings",
    }  # fmt: skip
    assert (done.json["config"], done.json["programs"]) == ("tiny", 5)
    assert (done.json["mismatches"], done.json["max_cycle_error"]) == (0, 0)


def test_lockstep_of_a_model(vdla):
    done = vdla("lockstep", "-c", "tiny", "--model", "digits")
    assert done.code == 0
    assert "tiny: equal in every cycle and byte" in done.out


@pytest.fixture(scope="module")
def verilog(tmp_path_factory):
    """The Verilog of config tiny, as the command writes it."""
    from vdla.commands import hardware

    path = tmp_path_factory.mktemp("verilog") / "vdla.v"
    hardware.verilog("tiny", path, [])
    return path


def test_verilator_finds_nothing_to_warn_of(verilog):
    root = verilator_root()
    command = [root / "bin" / "verilator_bin", "--lint-only", "--top-module", "vdla", verilog]
    done = subprocess.run(
        command, env={**os.environ, "VERILATOR_ROOT": str(root)}, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "Warning" not in done.stdout + done.stderr
    assert "lint_off" not in verilog.read_text()  # nothing is silenced either


def test_ports_are_named_as_axi_tools_expect(verilog):
    text = verilog.read_text()
    (ports,) = re.findall(r"^module vdla\(([^)]*)\)", text, re.MULTILINE)
    names = {name.strip() for name in ports.split(",")}
    for channel, signals in {
        "aw": "addr len size burst lock cache prot qos id valid ready",
        "w": "data strb last valid ready",
        "b": "id resp valid ready",
        "ar": "addr len size burst lock cache prot qos id valid ready",
        "r": "id data resp last valid ready",
    }.items():
        assert {f"m_axi_{channel}{s}" for s in signals.split()} <= names
    for channel, signals in {
        "aw": "addr prot valid ready",
        "w": "data strb valid ready",
        "b": "resp valid ready",
        "ar": "addr prot valid ready",
        "r": "data resp valid ready",
    }.items():
        assert {f"s_axi_{channel}{s}" for s in signals.split()} <= names
    assert {"aclk", "aresetn", "irq"} <= names


def test_ports_are_as_wide_as_axi_has_them(verilog):
    """AMBA AXI4 (IHI 0022), chapters A2 and B1; ids of one bit, config tiny's port of 32."""
    address = {"addr": 32, "len": 8, "size": 3, "burst": 2, "lock": 1, "cache": 4, "prot": 3,
               "qos": 4, "id": 1, "valid": 1, "ready": 1}  # fmt: skip
    burst = {
        "aw": address,
        "w": {"data": 32, "strb": 4, "last": 1, "valid": 1, "ready": 1},
        "b": {"id": 1, "resp": 2, "valid": 1, "ready": 1},
        "ar": address,
        "r": {"id": 1, "data": 32, "resp": 2, "last": 1, "valid": 1, "ready": 1},
    }
    want = {f"m_axi_{c}{name}": bits for c, ports in burst.items() for name, bits in ports.items()}
    handshake, registers = (
        {"valid": 1, "ready": 1},
        {"addr": (SPACE_BYTES - 1).bit_length(), "prot": 3},
    )
    lite = {
        "aw": {**registers, **handshake},
        "w": {"data": 32, "strb": 4, **handshake},
        "b": {"resp": 2, **handshake},
        "ar": {**registers, **handshake},
        "r": {"data": 32, "resp": 2, **handshake},
    }
    want |= {f"s_axi_{c}{name}": bits for c, ports in lite.items() for name, bits in ports.items()}
    want |= {"aclk": 1, "aresetn": 1, "irq": 1}
    assert load_config("tiny").port_bytes == 4
    top = verilog.read_text().partition("\nmodule vdla(")[2].partition("endmodule")[0]
    found = {
        name: int(high) + 1 if high else 1
        for high, name in re.findall(r"^  (?:input|output) (?:\[(\d+):0\] )?(\w+);", top, re.M)
    }
    assert {name: found.get(name) for name in want} == want


def test_verilog_goes_to_stdout(vdla, verilog):
    done = vdla("hw", "verilog", "-c", "tiny")
    assert done.code == 0
    assert done.out == verilog.read_text()


def test_run_on_the_rtl(vdla, tmp_path):
    rtl, sim = (
        vdla("run", "digits", "-c", "tiny", "--device", device, "--json").json
        for device in ("rtl", "sim")
    )
    assert rtl["device"] == "rtl"
    assert (rtl["cycles"], rtl["outputs"]) == (sim["cycles"], sim["outputs"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lockstep", "-c", "none"), "config none: expected a .toml file or one of"),
        (("lockstep", "--programs", "0"), "Invalid value for '--programs': 0 is not in"),
        (("hw", "verilog", "--set", "block_in=3"), "config paper: expected block_in bytes to be a"),
        (
            ("run", "digits", "--device", "sim", "--trace", "waves.fst"),
            "--trace waves.fst: expected --device rtl for waves, found sim",
        ),
        (
            ("run", "digits", "--device", "gate"),
            "--device: expected one of sim, rtl, cpu, gpu, board",
        ),
    ],
)
def test_wrong_input(vdla, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = vdla(*arguments)
    assert done.code == 2
    (line,) = done.err.strip().splitlines()
    assert line.startswith(f"vdla: {message}")
    assert not list(tmp_path.iterdir())
