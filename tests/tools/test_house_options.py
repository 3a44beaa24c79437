"""What names an option of the accelerator, and what is a list of ALU operations."""

from __future__ import annotations

import ast

import pytest
from scripts import load_script

options = load_script("tools/house_options.py")


def named(source, name="file.py", folder=None):
    path = folder / name
    path.write_text(source)
    return [option for option, names in options.OPTIONS.items()
            if options.identifiers_of(path) & names]  # fmt: skip


@pytest.mark.parametrize(("source", "result"), [
    ("x = config.tables", ["tables"]),
    ("x = self.config.tables", ["tables"]),
    ("x = c.tables", ["tables"]),
    ("x = report.tables", []),
    ("tables = 3", []),
    ("f(table_bytes=3)", ["tables"]),
    ("def f(table_bytes): pass", ["tables"]),
    ("class TablePads: pass", ["tables"]),
    ("class AluOp:\n    TABLE = 7", ["tables"]),
    ("class Kind:\n    TABLE = 7", []),
    ("x = instructions.AluOp.TABLE", ["tables"]),
    ("x = OtherOp.TABLE", []),
    ("x = {'tab': 3}", ["tables"]),
    ("x = f'tab.pair_{i}'", ["tables"]),
    ("x = 'found a tab'", []),
    ("# table_bytes\nx = 1", []),
    ("def f():\n    '''Of table_bytes.'''", []),
    ("from vdla.hw.tables import TablePads", []),
    ("from vdla.isa.options.tables import tables", ["tables"]),
    ("from vdla.isa.options import tables, vector", ["tables", "vector engine"]),
    ("match x:\n    case Config(forwarding=1): pass", ["forwarding"]),
    ("x = getattr(config, 'forwarding')", ["forwarding"]),
    ("x = forwarded", []),
    ("x = config.window_taps * config.window_rows", ["window"]),
    ("x = Engine.VECTOR", ["vector engine"]),
    ("x = Names.VECTOR", []),
    ("x = _VECTOR", ["vector engine"]),
    ("x = AluOp.RSQRT, self.has_units", ["reciprocals"]),
])  # fmt: skip
def test_an_option_is_named_in_code(tmp_path, source, result):
    assert named(source, folder=tmp_path) == result


@pytest.mark.parametrize(("source", "result"), [
    ("int x = table_bytes;", ["tables"]),
    ("// table_bytes\n/* window_taps\n*/ int x;", []),
    ("if (config.tables) {}", ["tables"]),
    ("if (config->tables) {}", ["tables"]),
    ("case AluOp::RSQRT:", ["reciprocals"]),
    ("int tables;", []),
])  # fmt: skip
def test_an_option_is_named_in_cpp(tmp_path, source, result):
    assert named(source, "file.cpp", tmp_path) == result


@pytest.mark.parametrize(("source", "lines"), [
    ("x = (AluOp.SHR, AluOp.MUL)", [1]),
    ("x = 1\ny = [AluOp.SHR, *others, AluOp.MUL]", [2]),
    ("x = {AluOp.SHR: 1, AluOp.MUL: 2}", [1]),
    ("x = {'a': AluOp.SHR, 'b': AluOp.MUL, **more}", [1]),
    ("x = [op for op in {AluOp.SHR, AluOp.MUL}]", [1]),
    ("x, y = int(AluOp.SHR), int(AluOp.MUL)", [1]),
    ("x = [\n    ('a', AluOp.SHR),\n    ('b', AluOp.MUL),\n]", [1]),
    ("x = (AluOp.SHR, 3)", []),
    ("x = (AluOp.SHR, AluOp.SHR)", []),
    ("x = (Mem.INP, Mem.WGT)", []),
    ("x = (f(AluOp.SHR, 1), AluOp.MUL)", []),
])  # fmt: skip
def test_a_list_of_operations(source, lines):
    assert options.lists_of(tuple(ast.walk(ast.parse(source)))) == lines


def test_users_of_an_option_are_apart():
    files, users = options.options()
    assert "hw/options/tables.py" in files["tables"]
    assert "compiler/targets/accelerator/operators/table.py" in users["tables"]
    assert not {*files["tables"]} & {*users["tables"]}
