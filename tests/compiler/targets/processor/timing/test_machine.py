"""Descriptions of processors, and the tables of prices beside them."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from vdla.compiler.targets.errors import TargetError
from vdla.compiler.targets.processor.description.processor import Processor, find_processor
from vdla.compiler.targets.processor.timing import machine as machines
from vdla.compiler.targets.processor.timing.machine import (
    NAMES,
    Price,
    machine_for,
    machine_of,
    read_table,
    table_path,
    table_text,
)

TOOLS = Path(__file__).parents[5] / "tools"
FORMS = ("add <4 x i32>", "mul <4 x i32>", "sext <4 x i8> <4 x i32>", "llvm.smax.v4i32 (<4 x i32>, "
         "<4 x i32>) <4 x i32>", "loaded splat <4 x float>", "select <4 x i1> <4 x float>",
         "icmp i32", "insertelement <4 x i8>")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_has_its_table(name):
    machine = machine_of(name)
    assert machine.processor.vectors.lanes in (4, 16)
    assert [cache.bytes for cache in machine.caches] == sorted(c.bytes for c in machine.caches)
    assert len(machine.prices) > 1000
    add = machine.price("add <4 x i32>")
    assert add.uops >= 1
    assert max(add.ports.values()) <= 2
    assert table_path(name).read_text() == table_text(read_table(name))


def test_a_cortex_a9_adds_vectors_of_its_own_width_at_less_than_wider_ones():
    machine = machine_of("cortex-a9")
    four, sixteen = (machine.price(f"fadd <{n} x float>") for n in (4, 16))
    assert max(sixteen.ports.values()) == pytest.approx(4 * max(four.ports.values()), rel=0.3)


def test_corrections_replace_prices():
    table, machine = read_table("znver4"), machine_of("znver4")
    form = next(form for form in table if form.startswith("llvm.x86.avx512.vpdpbusd.512"))
    assert max(table[form].ports.values()) == pytest.approx(2)
    assert max(machine.price(form).ports.values()) == pytest.approx(1)
    assert machine.price("loaded splat <16 x i32>") == machine.price("load <16 x i32>")


def test_a_form_without_a_price_has_that_of_the_nearest():
    machine = machine_of("znver4")
    machine = machines.replace(machine, prices={"fadd <8 x float>": Price(1, 3, {"fp": 0.5})})
    assert machine.price("fadd <32 x float>") == Price(4, 3, {"fp": 2.0})
    assert machine.price("fadd <4 x float>") == Price(1, 3, {"fp": 0.5})
    assert machine.price("frobnicate <16 x i8>") == Price(4.0, 1.0)


def test_what_is_not_described():
    with pytest.raises(TargetError) as error:
        machine_of("cortex-m4")
    assert str(error.value) == (
        "processor cortex-m4: expected a .toml file or one of cortex-a53, cortex-a9, znver4, "
        "found neither"
    )
    with pytest.raises(TargetError) as error:
        machine_for(find_processor("cortex-a72"))
    assert str(error.value) == (
        "host time: expected a processor that is described, one of cortex-a53, cortex-a9, znver4, "
        "found cortex-a72; name one of them with --host, or describe cortex-a72 as "
        "docs/host-time.md says"
    )
    assert machine_for(Processor("arm-unknown-linux-gnueabihf", "cortex-a9", "+neon")).name == (
        "cortex-a9"
    )


@pytest.mark.parametrize("name", NAMES)
def test_llvm_s_model_gives_the_bundled_prices(name):
    """A few forms; `python tools/host_tables.py` compares all."""
    if not any(shutil.which(tool) for tool in ("llvm-mca-19", "llvm-mca")):
        pytest.skip("expected llvm-mca, found none; on Debian it is in the package llvm-19")
    spec = importlib.util.spec_from_file_location("host_tables", TOOLS / "host_tables.py")
    tables = importlib.util.module_from_spec(spec)
    sys.modules["host_tables"] = tables
    spec.loader.exec_module(tables)
    if "19" not in Path(tables.mca()).name:
        pytest.skip("expected llvm-mca of LLVM 19, whose prices are bundled, found another")
    prices = tables.table(FORMS, machine_of(name).processor)
    known = read_table(name)
    for form in FORMS:
        assert prices[form].uops == known[form].uops, form
        assert prices[form].ports == pytest.approx(known[form].ports, abs=2e-3), form
