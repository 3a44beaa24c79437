"""The registers, seen by a driver that isn't ours: at rest, and while a program runs."""

from __future__ import annotations

import cocotb
from axi_bench import CONFIG, DONE, RUNNING, START, WIPE, Bench
from cocotb.triggers import gather
from cocotbext.axi import AxiResp

from vdla.analysis.case import Case
from vdla.isa.identity import Identity
from vdla.isa.registers import IDENTITY, SPACE_BYTES, VERSION, register, registers
from vdla.sim.random_programs import random_program

READABLE = tuple(r for r in registers(CONFIG) if r.access == "rw")
LOCKED = tuple(r for r in registers(CONFIG) if r.locked)
COUNTERS = tuple(r.name for r in registers(CONFIG) if r.offset >= register("CYCLES_LOW").offset)


def existing(each):
    """The bits that a register has."""
    return sum(bits.mask for bits in each.bits) if each.bits else 0xFFFF_FFFF


@cocotb.test()
async def identity(dut):
    bench = await Bench.begin(dut, 0)
    names = ("ID", "VERSION", "ISA_HASH", "CONFIG_HASH")
    values = [await bench.read(name) for name in names]
    assert values == [IDENTITY, VERSION, *Identity.of(CONFIG).words]


@cocotb.test()
async def every_other_address_answers_with_an_error(dut):
    bench = await Bench.begin(dut, 0)
    known = {r.offset for r in registers(CONFIG)}
    before = {r.name: await bench.read(r.name) for r in registers(CONFIG)}
    for offset in sorted(set(range(0, SPACE_BYTES, 4)) - known):
        assert (await bench.driver.read(offset, 4)).resp == AxiResp.SLVERR
        assert (await bench.driver.write(offset, b"\xff\xff\xff\xff")).resp == AxiResp.SLVERR
    for each in registers(CONFIG):
        if each.access == "ro":
            assert await bench.try_write(each.name, 0xFFFF_FFFF) == AxiResp.SLVERR
    assert {r.name: await bench.read(r.name) for r in registers(CONFIG)} == before


@cocotb.test()
@cocotb.parametrize(seed=range(4))
async def registers_hold_the_bytes_that_strobes_name(dut, seed):
    bench = await Bench.begin(dut, seed)
    if seed:
        bench.slow_down(memory=False)
    rng = bench.rng
    values = {each.offset: 0 for each in READABLE}
    masks = {each.offset: existing(each) for each in READABLE}
    for _ in range(40):
        writes = []
        for _ in range(rng.randint(1, 5)):  # one after the other without a pause
            offset, first = rng.choice(list(values)), rng.randrange(4)
            data = rng.randbytes(rng.randint(1, 4 - first))
            writes.append(bench.driver.write(offset + first, data))
            content = bytearray(values[offset].to_bytes(4, "little"))
            content[first : first + len(data)] = data
            values[offset] = int.from_bytes(content, "little") & masks[offset]
        assert {done.resp for done in await gather(*writes)} == {AxiResp.OKAY}
        reads = await gather(*(bench.driver.read(offset, 4) for offset in values))
        assert {got.address: int.from_bytes(got.data, "little") for got in reads} == values


@cocotb.test()
async def commands_need_their_strobe(dut):
    bench = await Bench.begin(dut, 0)
    await bench.load(WIPE)
    control = register("CONTROL").offset
    assert (await bench.driver.write(control + 1, b"\x01\x01\x01")).resp == AxiResp.OKAY
    await bench.pass_cycles(20)
    assert (await bench.read("STATUS"), await bench.read("CONTROL")) == (0, 0)
    assert bench.monitor.cycles == 0
    assert (await bench.driver.write(control, b"\x01")).resp == AxiResp.OKAY
    assert (await bench.end()).status == DONE


@cocotb.test()
@cocotb.parametrize(seed=range(3))
async def access_does_not_disturb_a_program(dut, seed):
    bench = await Bench.begin(dut, seed)
    case = Case.of(random_program(CONFIG, seed, 60))
    alone = await bench.prove(case)
    await bench.run(WIPE)
    if seed:
        bench.slow_down(memory=False)
    await bench.start(case)
    lowest = dict.fromkeys(COUNTERS, 0)
    held = {each.name: await bench.read(each.name) for each in LOCKED}
    rounds = 0
    while bench.monitor.was_running:
        await read_status(bench)
        await read_counters(bench, lowest)
        await write_locked(bench, held)
        if rounds < 3:
            await bench.write("CONTROL", START)  # does nothing: it runs
        rounds += 1
    assert rounds > 5
    assert {each.name: await bench.read(each.name) for each in LOCKED} == held
    ended = await bench.end()
    assert (ended.dram == alone.dram).all()
    assert (ended.cycles, ended.causes) == (alone.cycles, alone.causes)


async def read_status(bench):
    """STATUS and CYCLES as they are when the core takes the address."""
    status = await bench.read("STATUS")
    running, _ = bench.monitor.at_read
    assert status == (RUNNING if running else DONE)
    cycles = await bench.read("CYCLES_LOW")
    _, expected = bench.monitor.at_read
    assert cycles == expected


async def read_counters(bench, lowest):
    """A few counters: none falls, none passes the cycles."""
    for name in bench.rng.sample(COUNTERS, 3):
        value = await bench.read(name)
        assert lowest[name] <= value <= bench.monitor.at_read[1]
        lowest[name] = value


async def write_locked(bench, held):
    """Writes what can't be written while a program runs; it may have ended by then."""
    each, value = bench.rng.choice(LOCKED), bench.rng.getrandbits(32)
    answer = await bench.try_write(each.name, value)
    assert answer == (AxiResp.SLVERR if bench.monitor.at_write else AxiResp.OKAY)
    if answer == AxiResp.OKAY:
        held[each.name] = value & existing(each)
