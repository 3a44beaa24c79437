"""Programs that fault, hang, or are stopped by somebody else; the next one runs."""

from dataclasses import replace

import numpy as np
import pytest
from c_boards import DONE, Zynq

from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.program import Program
from vdla.isa.registers import BUSY, RESET, register

TINY = load_config("tiny")
HANGS = "GEMM pop_prev uop_count=1\nFINISH"
FAULTS = [
    ("LOAD x_size=1 y_size=1 z_size=1 dram_base=0x40000\nFINISH", "ADDRESS", 0),
    ("LOAD x_size=0\nFINISH\nLOAD x_size=0\nFINISH", "ILLEGAL", 32),
]


def with_program(module, text):
    """The module with another program in its accelerator's place, and the program's first byte."""
    ((name, old),) = module.programs.items()
    base = Program.from_bytes(old, TINY).base
    return replace(
        module, programs={name: replace(assemble(text, TINY), base=base).to_bytes()}
    ), base


def error_of(net, inputs):
    with pytest.raises(RuntimeError) as caught:
        net.run(**inputs)
    return str(caught.value)


def assert_runs(reached, digits, folder):
    (logits,) = reached.open(digits.module, folder, "next").run(**digits.inputs).values()
    assert np.array_equal(logits, digits.run.outputs["logits"])


@pytest.mark.parametrize(("text", "fault", "at"), FAULTS)
def test_a_fault_is_named_and_the_next_program_runs(text, fault, at, uio, digits, tmp_path):
    module, base = with_program(digits.module, text)
    net = uio.open(module, tmp_path)
    assert error_of(net, digits.inputs) == (
        f"step 1 (program0): expected a program that ends, found fault {fault} "
        f"at the instruction at byte {base + at:08x}"
    )
    assert_runs(uio, digits, tmp_path)


def test_a_bus_error(ways, digits, tmp_path):
    zynq = Zynq(TINY, tmp_path / "root", errors=(0x1000, 0x1004))
    reached = ways.uio(zynq.root)
    net = reached.open(digits.module, tmp_path)
    assert "found fault BUS at the instruction at byte " in error_of(net, digits.inputs)
    reached.board.way.taken = 0x2000  # beside the bad bytes
    assert_runs(reached, digits, tmp_path)
    reached.close()
    zynq.close()


@pytest.mark.parametrize("kind", ["uio", "serial"])
def test_a_program_that_hangs_is_reset_and_the_next_one_runs(
    kind, ways, port, request, digits, tmp_path
):
    reached = request.getfixturevalue("uio") if kind == "uio" else ways.serial(port().path)
    net = reached.open(with_program(digits.module, HANGS)[0], tmp_path)
    reached.board.way.run_us = 50_000
    assert error_of(net, digits.inputs) == (
        "step 1 (program0): expected a program that ends in time, found it still running; "
        "the core was reset"
    )
    reached.board.way.run_us = 60_000_000
    assert_runs(reached, digits, tmp_path)
    if kind == "serial":
        reached.close()


def test_somebody_else_resets_the_core(uio, zynq, digits, tmp_path):
    net = uio.open(digits.module, tmp_path)

    def reset(status):
        """Another program's reset, as the core has finished."""
        if status & DONE:
            zynq.board.write(register("CONTROL").offset, RESET)
            return 0
        return status

    zynq.answer = reset
    assert error_of(net, digits.inputs) == (
        "step 1 (program0): expected DONE, found neither DONE nor FAULT: the core was reset"
    )
    zynq.answer = lambda status: status
    assert_runs(uio, digits, tmp_path)


def test_a_core_that_does_not_stop(uio, zynq, digits, tmp_path):
    net = uio.open(digits.module, tmp_path)
    zynq.answer = lambda status: BUSY
    assert error_of(net, digits.inputs) == (
        "board: expected the core to stop, found a transfer that doesn't end; reload the bitstream"
    )
    assert all(value == RESET for _, value in zynq.log)
