"""Energy: counts times a table, its interpolation, and the errors of malformed tables."""

from __future__ import annotations

import math
import tomllib

import pytest

from vdla.isa.config import load_config
from vdla.sim.counts import Access, Counts
from vdla.sim.energy import EnergyError, energy, load_table, table_names
from vdla.sim.energy.table import TABLES

CONFIG = load_config("paper")  # INP has 32 KiB
EVENT = '{ pj = 1.0, source = "me" }'
EVENTS = "\n".join(f"{name} = {EVENT}" for name in ("multiply_add", "add", "multiply", "dram_bit"))
ROW = '[[buffers]]\nbytes = 1024\nbits = {}\nread_pj = 1.0\nwrite_pj = 1.0\nsource = "me"\n'
ROWS = "".join(ROW.format(bits) for bits in (32, 64, 128))


def test_every_figure_of_a_bundled_table_has_its_source():
    assert table_names() == ["aladdin-45nm", "horowitz-45nm"]
    for name in table_names():
        data = tomllib.loads((TABLES / f"{name}.toml").read_text())
        table = load_table(name)
        assert all(len(entry["source"]) > 10 for entry in data["events"].values())
        assert len(data["buffers"]) == len(table.buffers) == 7
        assert "45 nm" in table.title


def test_a_row_is_as_the_table_has_it():
    table = load_table("aladdin-45nm")
    for row in table.buffers:
        assert table.access(row.bytes, row.bits, writes=False) == pytest.approx(row.read_pj)
        assert table.access(row.bytes, row.bits, writes=True) == pytest.approx(row.write_pj)


def test_between_rows_energy_grows_with_size_and_width():
    table = load_table("aladdin-45nm")
    for writes in (False, True):
        sizes = [table.access(size << 10, 128, writes=writes) for size in (32, 64, 128)]
        widths = [table.access(32 << 10, bits, writes=writes) for bits in (64, 96, 128, 192, 256)]
        assert sizes == sorted(sizes)
        assert widths == sorted(widths)


def test_a_power_law_is_found_again(tmp_path):
    """Rows on one plane of the logarithms give that plane, far away, too."""
    rows = "".join(
        f"[[buffers]]\nbytes = {size}\nbits = {bits}\nread_pj = {size**0.5 * bits}\n"
        f'write_pj = {size * bits**0.5}\nsource = "me"\n'
        for size, bits in ((1024, 32), (4096, 32), (4096, 256), (65536, 64))
    )
    path = tmp_path / "law.toml"
    path.write_text(f"[events]\n{EVENTS}\n{rows}")
    table = load_table(str(path))
    assert table.access(16384, 512, writes=False) == pytest.approx(128 * 512)
    assert table.access(1 << 20, 16, writes=True) == pytest.approx((1 << 20) * 4)


def test_an_energy_may_be_a_whole_number_of_any_size(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f"[events]\n{EVENTS}\n{ROWS}".replace("read_pj = 1.0", f"read_pj = {10**30}"))
    table = load_table(str(path))
    first = table.buffers[0]
    assert table.access(first.bytes, first.bits, writes=False) == pytest.approx(1e30)


def test_what_lies_far_beyond_all_rows_is_said():
    table = load_table("aladdin-45nm")
    assert not table.is_far(2048, 64)
    assert table.is_far(1024, 64)
    assert table.is_far(32768, 8)
    counts = Counts(accesses={Access("inp", False, 8): 1, Access("wgt", False, 256): 1})
    assert energy(counts, CONFIG, table).beyond == ("inp (32,768 bytes, 8 bits)",)


def test_energy_is_counts_times_the_table():
    table = load_table("aladdin-45nm")
    counts = Counts(
        multiply_adds=1000,
        operations={"ADD": 10, "RQ": 20, "TABLE": 30},
        accesses={Access("inp", False, 128): 7, Access("inp", True, 64): 3},
        loaded_bytes=100,
        stored_bytes=20,
        fetched_bytes=3,
    )
    result = energy(counts, CONFIG, table)
    assert result.table == "aladdin-45nm"
    assert result.parts == pytest.approx(
        {
            "multiply-adds": 1150,
            "alu": 10 * 0.24 + 20 * 12.92,
            "inp": 7 * 20.3 + 3 * 15.4,
            "dram": 8 * 123 * 70,
        }
    )
    assert result.total_pj == pytest.approx(math.fsum(result.parts.values()))
    assert result.total_uj == pytest.approx(result.total_pj / 1e6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[events", "expected TOML, found"),
        ("", "expected the events multiply_add, add, multiply, dram_bit, found none"),
        (f"[events]\nadd = {EVENT}", "expected the events multiply_add, add, multiply, dram_bit, "
                                     "found add"),
        (f"[events]\n{EVENTS}", "expected at least 3 buffers, found 0"),
        (f"[events]\n{EVENTS.replace('1.0', '-1.0', 1)}\n{ROWS}",
         "expected pj of events.multiply_add to be a number from 1e-30 to 1e+30, found -1.0"),
        (f"[events]\n{EVENTS}\n{ROWS.replace('bits = 64', 'bits = true')}",
         "expected bits of buffers, row 2 to be a number from 1e-30 to 1e+30, found True"),
        (f"[events]\n{EVENTS}\n{ROWS.replace('bits = 64', 'bits = inf')}",
         "expected bits of buffers, row 2 to be a number from 1e-30 to 1e+30, found inf"),
        (f"[events]\n{EVENTS.replace('1.0', '1e-300', 1)}\n{ROWS}",
         "expected pj of events.multiply_add to be a number from 1e-30 to 1e+30, found 1e-300"),
        ("a = " + "[" * 3000, "expected TOML, found brackets within brackets, too deep"),
        (f"[events]\n{EVENTS}\n{ROWS.replace('source', 'from', 1)}",
         "expected a source of buffers, row 1, found none"),
    ],
)  # fmt: skip
def test_malformed_tables(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(EnergyError) as caught:
        load_table(str(path))
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_an_unknown_table(tmp_path):
    with pytest.raises(EnergyError) as caught:
        load_table("joule")
    assert str(caught.value) == (
        "energy table joule: expected a .toml file or one of aladdin-45nm, horowitz-45nm, "
        "found neither"
    )
    with pytest.raises(EnergyError, match="expected a readable file, found No such file"):
        load_table(str(tmp_path / "none.toml"))
