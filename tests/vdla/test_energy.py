"""``--energy``: columns and keys of compare and run, never without the table's name."""

from __future__ import annotations

import shutil

import pytest

import vdla as api
from vdla.sim.energy.table import TABLES


def test_compare_has_energy_by_layer(vdla, tmp_path):
    done = vdla("compare", "digits", "-c", "tiny", "--out", tmp_path, "--energy", "aladdin-45nm",
                "--json").json  # fmt: skip
    assert done["energy_table"] == "aladdin-45nm"
    for v in ("1", "2"):
        assert done["total"]["energy_uj"][v] == pytest.approx(
            sum(layer["energy_uj"][v] for layer in done["layers"])
        )
    text = vdla("compare", "digits", "-c", "tiny", "--out", tmp_path, "--energy", "aladdin-45nm")
    assert "µJ 2" in text.out
    assert "energy by aladdin-45nm: 45 nm ASIC" in text.out
    assert "far beyond the table's buffers, so a guess: " in text.out


def test_compare_has_no_energy_without_a_table():
    comparison = api.compare("digits", config="tiny")
    assert comparison.energy(2) == {}
    assert "energy" not in str(comparison.to_json())


def test_run_has_energy_of_all_inputs(vdla, tmp_path):
    shutil.copy(TABLES / "horowitz-45nm.toml", tmp_path / "mine.toml")
    options = ("run", "digits", "-c", "tiny", "--json", "--energy", tmp_path / "mine.toml")
    one, two = (vdla(*options, "--images", n).json for n in (1, 2))
    assert one["energy_table"] == "mine"
    assert two["energy_uj"] == pytest.approx(2 * one["energy_uj"])
    assert one["energy_uj"] == pytest.approx(sum(one["energy_parts_uj"].values()))
    text = vdla("run", "digits", "-c", "tiny", "--images", 1, "--energy", "horowitz-45nm").out
    assert f"{one['energy_uj']:,.1f} µJ: dram " in text
    assert "energy by horowitz-45nm: 45 nm ASIC" in text


def test_the_programs_energy_is_that_of_its_layers_data():
    """The multiply-adds of a layer cost the same wherever they are counted."""
    comparison = api.compare("digits", config="tiny", energy="aladdin-45nm")
    for layer in comparison.layers:
        parts = comparison.energy(2)[layer.name].parts
        assert parts["multiply-adds"] >= 1.15 * layer.macs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--energy", "joule"), "energy table joule: expected a .toml file or one of "
                                "aladdin-45nm, horowitz-45nm, found neither"),
        (("--energy", "aladdin-45nm", "--device", "rtl"), "--energy: "),
    ],
)  # fmt: skip
def test_wrong_options(vdla, options, message):
    done = vdla("run", "digits", "-c", "tiny", *options)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
