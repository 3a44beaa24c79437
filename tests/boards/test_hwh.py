"""The hand-off file, as PYNQ's own parser reads it, and beside those that Vivado wrote."""

from dataclasses import replace
from importlib.resources import files
from xml.etree import ElementTree

import pytest
from pynqmetadata.frontends import Metadata
from pynqmetadata.views.runtime import RuntimeMetadataParser

from vdla.boards import find_board
from vdla.boards.board import BoardError
from vdla.boards.flows.hwh import FREQUENCY, HWH, SYSTEMS, dividers, handoff
from vdla.boards.parts import processor_of
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import SPACE_BYTES, registers
from vdla.isa.svd import ACCESS

ZYNQS = ("pynq-z1", "pynq-z2", "arty-z7-20", "ultra96-v2")
VIVADOS = {"PS7": "resizer.hwh", "PS8": "rfsoc_sam.hwh"}  # in pynqmetadata's own tests
GIC = 32  # interrupts of the GIC before the shared peripherals' first


def parsed(folder, board, config):
    path = folder / HWH
    path.write_text(handoff(board, config))
    return RuntimeMetadataParser(Metadata(str(path)))


@pytest.fixture(scope="module", params=ZYNQS)
def overlay(request, tmp_path_factory):
    board, config = find_board(request.param), load_config("paper")
    return board, config, parsed(tmp_path_factory.mktemp("hwh"), board, config)


def test_the_core_is_an_ip_with_its_addresses(overlay):
    board, config, pynq = overlay
    ip = pynq.ip_dict["vdla"]
    isa, own = Identity.of(config).words
    assert (ip["phys_addr"], ip["addr_range"]) == (processor_of(board).registers, SPACE_BYTES)
    assert (ip["type"], ip["fullpath"], ip["mem_id"]) == ("vdla:ip:vdla:1.0", "vdla", "s_axi")
    given = ip["parameters"]
    assert given["CONFIG"] == config.name
    assert (int(given["ISA_HASH"], 0), int(given["CONFIG_HASH"], 0)) == (isa, own)


def test_its_registers_are_the_isas(overlay):
    _, config, pynq = overlay
    assert pynq.ip_dict["vdla"]["registers"] == {
        register.name: {
            "address_offset": register.offset,
            "size": 32,
            "access": ACCESS[register.access],
            "description": register.doc,
            "fields": {
                bits.name: {
                    "bit_offset": bits.low,
                    "bit_width": bits.width,
                    "access": ACCESS[register.access],
                    "description": bits.doc,
                }
                for bits in register.fields
            },
        }
        for register in registers(config)
    }


def test_the_first_clock_alone_is_on_and_is_the_boards(overlay):
    board, _, pynq = overlay
    assert [pynq.clock_dict[n]["enable"] for n in range(4)] == [1, 0, 0, 0]
    clock = pynq.clock_dict[0]
    assert clock["frequency"] == board.clock_hz / 1e6
    pll_mhz = processor_of(board).pll_hz / 1e6
    assert pll_mhz / clock["divisor0"] / clock["divisor1"] == clock["frequency"]
    assert clock["src_sel"] == processor_of(board).pll


def test_its_pins_are_joined_to_the_processors(overlay):
    board, _, pynq = overlay
    processor = processor_of(board)
    system = SYSTEMS[processor.primitive]
    for core, own in (("irq", system.interrupt), ("aclk", system.clock), ("aresetn", system.reset)):
        pin = pynq.md.blocks["vdla"].ports[core].sig()
        [other] = pin._connections.values()
        assert other is pynq.ps.ports[own].sig()
    assert list(pynq.ps.get_irqs) == [system.interrupt]
    assert pynq.ps.irq_map[0] == processor.interrupt + GIC
    assert (pynq.ps_name, pynq.family_ps) == (f"{system.module}_0", system.module)
    assert {system.registers, processor.memory_port} <= set(pynq.ps.ports)


def test_pynq_sets_the_ports_of_an_ultrascale_by_these_widths(tmp_path):
    config = load_config("paper", ["port_bytes=16"])
    pynq = parsed(tmp_path, find_board("ultra96-v2"), config)
    given = pynq.ip_dict[pynq.ps_name]["parameters"]
    assert (given["C_MAXIGP0_DATA_WIDTH"], given["C_SAXIGP2_DATA_WIDTH"]) == ("128", "128")


@pytest.mark.parametrize("name", ["pynq-z2", "ultra96-v2"])
def test_it_has_no_word_that_vivado_does_not_have(name):
    board = find_board(name)
    primitive = processor_of(board).primitive
    folder = files("pynqmetadata") / "tests" / "hwhs"
    vivados = {
        kind: ElementTree.fromstring((folder / file).read_text(encoding="utf-8-sig"))
        for kind, file in VIVADOS.items()
    }
    own, theirs = ElementTree.fromstring(handoff(board, load_config("paper"))), vivados[primitive]
    assert words(own) <= words(vivados["PS7"]) | words(vivados["PS8"])
    system = SYSTEMS[primitive]
    for tag in ("PORT", "BUSINTERFACE", "PARAMETER"):
        extra = names(own, system.module, tag) - names(theirs, system.module, tag)
        # neither design has an interrupt, one has another port to memory, and a Zynq-7000's
        # frequency has this name in pynqmetadata alone
        unused = {system.interrupt, processor_of(board).memory_port}
        assert extra <= {*unused, *(FREQUENCY.format(n) for n in range(4))}


def words(root):
    """The elements and attributes that occur."""
    return {(each.tag, key) for each in root.iter() for key in ("", *each.attrib)}


def names(root, module, tag):
    modules = [each for each in root.iter("MODULE") if each.get("MODTYPE") == module]
    return {each.get("NAME") for each in modules[0].iter(tag)}


def test_two_dividers_make_the_clock():
    board = find_board("pynq-z1")
    assert dividers(board) == (10, 1)
    assert dividers(find_board("ultra96-v2")) == (15, 1)  # those of rfsoc_sam.hwh
    assert dividers(replace(board, clock_hz=2.5e6)) == (50, 8)
    with pytest.raises(BoardError) as caught:
        handoff(replace(board, clock_hz=77e6), load_config("tiny"))
    assert str(caught.value) == (
        "board pynq-z1: expected a clock that two dividers of at most 63 make of IO PLL at "
        "1000 MHz, found 77 MHz"
    )
