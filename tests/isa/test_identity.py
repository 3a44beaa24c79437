"""The ISA hash: it follows every change of what bits mean, and what is refused by it."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from vdla import api
from vdla.compiler import models
from vdla.compiler.build import accelerator_layers
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.search.records import RecordError, export
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord, TileRecords
from vdla.compiler.targets.accelerator.search.workload import Workload
from vdla.isa import fields, identity, instructions, numbers
from vdla.isa.config import config_names, engine_options, load_config
from vdla.isa.identity import DIGITS, ENCODED, PROBES, Identity, isa_hash, isa_hashes, probes_of
from vdla.isa.instructions import (
    BY_OPCODE,
    Alu,
    Finish,
    Gemm,
    Load,
    Store,
    Uop,
    instruction_set,
)
from vdla.isa.program import Program, ProgramError
from vdla.isa.ring import Ring, ring_of
from vdla.names.schedules import tuned_tiles
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.errors import DeviceError
from vdla.runtime.executor import Executor

TINY = load_config("tiny")
TABLES = load_config("tiny", ["table_bytes=512"])
CACHES = (identity._isa_hash, fields._layout, instructions.instruction_bytes)


def forget():
    for cache in CACHES:
        cache.cache_clear()


@pytest.fixture(autouse=True)
def own_isa():
    """Nothing that a changed ISA left behind outlives its test."""
    forget()
    yield
    forget()


def wider(patch):
    patch.setattr(Load.x_stride, "_width", instructions.STRIDE_BITS + 1)


def reordered(patch):
    *others, one, other = Store.fields
    patch.setattr(Store, "fields", (*others, other, one))


def swapped(patch):
    for cls, opcode in ((Gemm, Alu.opcode), (Alu, Gemm.opcode)):
        patch.setitem(BY_OPCODE, opcode, cls)
        patch.setattr(cls, "opcode", opcode)


def rounded(patch):
    """Ties away from zero."""

    def rq(x, word):
        mantissa, shift = numbers.unpack_scale(word)
        product = abs(x) * mantissa + ((1 << shift) >> 1)
        return numbers.saturate((1 if x >= 0 else -1) * (product >> shift), -(1 << 31), 2**31 - 1)

    patch.setattr(numbers, "rq", rq)


def ring_that_stores_sums(config):
    """STORE executes ALU."""
    load, compute, store = ring_of(config).roles
    moved = dataclasses.replace(compute, executes=(Gemm, Finish))
    roles = load, moved, dataclasses.replace(store, executes=(Store, Alu))
    return Ring(roles, instruction_set(config))


CHANGES = {"wider": wider, "reordered": reordered, "swapped": swapped, "rounded": rounded}
MORE = {
    "renamed": lambda patch: patch.setattr(Gemm.bias_base, "name", "start"),
    "signed": lambda patch: patch.setattr(Store.y_pitch, "signed", True),
    "another value": lambda patch: patch.setattr(Alu.alu_op, "names", (*Alu.alu_op.names, "ABS")),
    "another meaning": lambda patch: patch.setattr(
        Alu.alu_op, "names", tuple(reversed(Alu.alu_op.names))
    ),
    "legal elsewhere": lambda patch: patch.setattr(Store.memory, "_legal", lambda config: (0, 3)),
    "alignment": lambda patch: patch.setattr(Load.dram_base, "multiple", lambda config: 1),
    "micro-ops": lambda patch: patch.setattr(Uop, "fields", Uop.fields[::-1]),
    "engines": lambda patch: patch.setattr(identity, "ring_of", ring_that_stores_sums),
    "semantics": lambda patch: patch.setattr(identity, "SEMANTICS", "0badf00d"),
    "scales": lambda patch: patch.setattr(numbers, "pack_scale", lambda scale: int(scale * 4096)),
}


@pytest.mark.parametrize("name", {**CHANGES, **MORE})
def test_every_change_is_another_isa(name, monkeypatch):
    before = isa_hash()
    {**CHANGES, **MORE}[name](monkeypatch)
    forget()
    assert isa_hash() != before
    monkeypatch.undo()
    forget()
    assert isa_hash() == before


@pytest.mark.parametrize("record", [Load, Store, Gemm, Alu, Uop], ids=lambda r: r.__name__)
def test_every_width_counts(record, monkeypatch):
    """Each field one bit wider or narrower, in whichever way its width comes about."""
    before = isa_hash()
    for field in record.fields:
        for step in (1, -1):
            with monkeypatch.context() as patch:
                width = field.width
                patch.setitem(vars(field), "width", lambda c, width=width, s=step: width(c) + s)
                forget()
                assert isa_hash() != before, (field.name, step)


@pytest.mark.parametrize("mine", ["inp", "wgt", "acc", "uop"])
def test_widths_that_follow_another_buffer_are_another_isa(mine):
    """In some probe each buffer needs more bits than any other, so no rule passes for another."""
    for other in {"inp", "wgt", "acc", "uop"} - {mine}:
        assert any(c.index_bits(mine) > c.index_bits(other) for c in PROBES), (mine, other)
    tables = probes_of(ENCODED[0])[0]
    assert tables.index_bits("tab") > tables.index_bits(mine)


def test_every_set_of_options_is_another_isa():
    """Each option counts in every combination; a probe of an option has that option alone, with
    those that it needs. Of two that one needs the other, three combinations of four exist."""
    hashes = isa_hashes()
    assert len(hashes) == len(set(hashes.values()))
    one_engine = [o.title for o in ENCODED if o.parameter.name in engine_options()]
    others = len(ENCODED) - len(one_engine)
    assert len(hashes) == (1 << others) * 3 // 4 * (1 + len(one_engine))  # with one, or none
    assert hashes[()] == isa_hash() == isa_hash(TINY) == "664760a4"
    assert hashes[("tables",)] == isa_hash(TABLES) == "5caf6147"
    assert not any(option.is_on(config) for option in ENCODED for config in PROBES)
    for option in ENCODED:
        for config in probes_of(option):
            own = {option.parameter.name, *option.needs}
            assert {other.parameter.name for other in ENCODED if other.is_on(config)} == own
            assert isa_hash(config) == hashes[_titles(own)]
            for other in ENCODED:
                more = {other.parameter.name, *other.needs} - own
                values = {name: getattr(probes_of(other)[0], name) for name in more}
                holds = (
                    "window_rows" not in more
                    or config.block_in >= 4 * probes_of(other)[0].window_taps
                )
                if holds and _titles(own | more) in hashes:
                    assert isa_hash(replace(config, **values)) == hashes[_titles(own | more)]


def _titles(parameters):
    return tuple(option.title for option in ENCODED if option.parameter.name in parameters)


@pytest.mark.parametrize("option", ENCODED, ids=lambda option: option.title)
def test_what_an_option_means_is_part_of_its_sets_alone(option, monkeypatch):
    changed = replace(option, probes=replace(option.probes, semantics="0badf00d"))
    before = isa_hashes()
    monkeypatch.setattr(identity, "ENCODED", tuple(changed if o is option else o for o in ENCODED))
    for titles, digest in isa_hashes().items():
        assert (digest != before[titles]) == (option.title in titles), titles


def test_tables_are_another_isa(monkeypatch):
    """The set without them has the hash of before; a change of what they add is theirs alone."""
    before = isa_hash(TABLES)
    for change in (
        lambda patch: patch.setattr(Alu.alu_op, "names", (*Alu.alu_op.names[:7], "LOOKUP")),
        lambda patch: patch.setattr(Load.memory, "names", (*Load.memory.names[:5], "LUT")),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            forget()
            assert isa_hash() == "664760a4"
            assert isa_hash(TABLES) != before
        forget()


def test_an_isa_is_no_config():
    configs = map(load_config, config_names())
    plain = [config for config in configs if not any(option.is_on(config) for option in ENCODED)]
    assert len(plain) > 3
    assert {Identity.of(config).isa for config in plain} == {isa_hash()}
    assert len({Identity.of(load_config(name)).config for name in config_names()}) > 3
    own = Identity.of(TINY)
    assert Identity.of_words(*own.words) == own
    assert {len(own.isa), len(own.config)} == {DIGITS}
    assert Identity.of_words(0xAB, 0) == Identity("000000ab", "00000000")


# What is refused by name ------------------------------------------------------------------------

WRONG = "compiled for another instruction set: expected ISA {}, found {}; compile it again"


@pytest.fixture(params=CHANGES)
def change(request, monkeypatch):
    """Makes the change, when called."""

    def act():
        CHANGES[request.param](monkeypatch)
        forget()

    return act


def test_a_program_of_another_isa(change):
    raw, before = Program(TINY, [Gemm(uop_count=1), Finish()]).to_bytes(), isa_hash()
    change()
    with pytest.raises(ProgramError) as caught:
        Program.from_bytes(raw, TINY, "p.bin")
    assert str(caught.value) == f"p.bin: {WRONG.format(isa_hash(), before)}"
    with pytest.raises(ProgramError, match="another instruction set"):
        Program.from_bytes(raw, load_config("paper"), "p.bin")


@pytest.fixture(scope="module")
def digits():
    return api.compile("digits", TINY)


def test_a_module_of_another_isa(change, digits, vdla, tmp_path, monkeypatch):
    """On a device, and on the command line, whatever config is asked for."""
    before = isa_hash()
    digits.save(tmp_path / "d.vdla")
    monkeypatch.chdir(tmp_path)
    change()
    with pytest.raises(DeviceError) as caught:
        Executor(digits, SimDevice(TINY))
    assert str(caught.value) == f"device sim: module {WRONG.format(isa_hash(), before)}"
    for config in ((), ("-c", "paper")):
        done = vdla("run", "d.vdla", *config)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"vdla: d.vdla: {WRONG.format(isa_hash(), before)}\n"


def test_a_tuning_record_of_another_isa(change, tmp_path):
    """It chooses no tile, is not fresh, and a file of such records alone is refused."""
    graph = import_onnx(models.model_path("digits"))
    shape = accelerator_layers(graph, TINY)[0][0].template
    tile = next(iter(shape.tiles(TINY, 1)))
    old = TileRecord(Workload.of(shape, TINY, 1), vars(tile), "ok", 5)
    assert old.fresh
    assert TileRecords(lambda: [old]).tile(shape, TINY, 1) == tile
    path, before = tmp_path / "log", isa_hash()
    export([old], path)
    change()
    assert not old.fresh
    assert TileRecords(lambda: [old]).tile(shape, TINY, 1) is None
    with pytest.raises(RecordError) as caught:
        tuned_tiles(path)
    assert str(caught.value) == (
        f"{path}: tuned for another instruction set: expected ISA {isa_hash()}, found {before}; "
        "tune again"
    )
    new = replace(old, isa=isa_hash(), cycles=7)
    path.write_bytes(old.to_line() + new.to_line())
    assert tuned_tiles(path).best[new.workload].cycles == 7
