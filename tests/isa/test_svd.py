"""The register map as SVD, read by PeakRDL's importer."""

from xml.etree import ElementTree

import pytest

from vdla.isa.config import load_config
from vdla.isa.identity import isa_hash
from vdla.isa.registers import registers, reset_value
from vdla.isa.svd import svd


@pytest.fixture
def read(tmp_path):
    """The registers as another reader has them."""
    importer = pytest.importorskip("peakrdl_svd.importer")
    systemrdl = pytest.importorskip("systemrdl")
    path = tmp_path / "vdla.svd"
    path.write_text(svd(load_config("paper"), 0x4000_0000))
    compiler = systemrdl.RDLCompiler()
    importer.SVDImporter(compiler).import_file(str(path))
    return compiler.elaborate()


def test_another_reader_finds_every_register_and_field(read):
    found = {node.inst_name: node for node in read.descendants() if hasattr(node, "size")}
    for register in registers(load_config("paper")):
        node = found[register.name]
        assert node.raw_absolute_address == 0x4000_0000 + register.offset
        fields = {f.inst_name: (f.low, f.width) for f in node.fields()}
        for bits in register.bits:
            assert fields[bits.name] == (bits.low, bits.width)


def test_resets_are_the_configs():
    config = load_config("paper")
    root = ElementTree.fromstring(svd(config))
    values = {
        element.findtext("name"): int(element.findtext("resetValue"), 16)
        for element in root.iter("register")
    }
    assert values == {each.name: reset_value(each, config) for each in registers(config)}
    assert f"{values['CONFIG_HASH']:08x}" == config.hash
    assert f"{values['ISA_HASH']:08x}" == isa_hash()
