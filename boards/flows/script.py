"""Commands that every flow gives to yosys."""

from __future__ import annotations

from vdla.hw.verilog import NAME


def yosys_script(
    synthesis: str, before: str = "", mapping: str = "", then: str = "map_luts"
) -> str:
    """Script that makes ``vdla.json`` of ``vdla.il`` by one of yosys's ``synth_…`` commands. Before
    its step ``then`` come commands of another ``mapping`` to LUTs than its own, if there are any.

    COLLISION_X_MASK tells yosys that a memory may show anything of an entry that is written in the
    same cycle, since the core never uses that (``hw/scratchpad.py``). Else a device whose RAM
    doesn't show the old value by itself would get a register and a multiplexer per bit for it.

    Nets are split since abc9 takes signal ``x_3`` for a bit of ``x`` (yosys issues 4349, 4451).
    """
    return (
        f"read_rtlil {NAME}.il\n{before}"
        "setparam -set COLLISION_X_MASK 1'1 t:$memrd_v2 r:CLK_ENABLE=1 %i\n"
        f"{synthesis} -top {NAME} -run begin:map_luts\n"
        "splitnets\n"
        f"{mapping}"
        f"{synthesis} -top {NAME} -run {then}:\n"
        f"write_json {NAME}.json\n"
    )
