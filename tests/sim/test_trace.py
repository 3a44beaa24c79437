"""What the records of a run say an instruction waited for."""

from __future__ import annotations

from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.sim.machine import simulate
from vdla.sim.stream import memory_image
from vdla.sim.trace import records

# LOAD may be two tokens ahead of the ALU, whose first instruction takes long.
AHEAD = """
ALU alu_op=ADD uop_count=1 extent_0=120 extent_1=9 dst_0=1 use_imm imm=1
LOAD memory=ACC x_size=1 y_size=1 z_size=1 push_next
LOAD memory=ACC x_size=1 y_size=1 z_size=1 push_next
LOAD memory=ACC x_size=1 y_size=1 z_size=1 push_next
ALU pop_prev alu_op=ADD uop_count=1 extent_0=1 dst_0=1 use_imm imm=1
ALU pop_prev alu_op=ADD uop_count=1 extent_0=1 dst_0=1 use_imm imm=1
ALU pop_prev alu_op=ADD uop_count=1 extent_0=1 dst_0=1 use_imm imm=1
FINISH
"""


def test_a_full_queue_is_waited_for_by_its_name():
    config = load_config("tiny", ["token_queue=2"])
    program = assemble(AHEAD, config)
    run = simulate(config, program.instructions, memory_image(program, 1 << 14), program.base)
    found = records(run)
    third, taker = found[3], found[4]
    assert third.start == taker.start + 1
    assert (third.stall, third.waited_for) == ("token", 4)
    assert taker.stall == ""  # behind the long one, its token is long there
