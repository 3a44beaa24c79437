"""Modules for a board's own processor: `vdla compile --board` and `--host`."""

from __future__ import annotations

import shutil
import struct

import pytest

from vdla.boards import MODULES, find_board
from vdla.compiler.codegen import link
from vdla.compiler.codegen.target import TargetError, find_target
from vdla.runtime import Module

HOSTS = {
    "ulx3s": "native", "pynq-z1": "cortex-a9", "pynq-z2": "cortex-a9", "arty-z7-20": "cortex-a9",
    "ultra96-v2": "cortex-a53",
}  # fmt: skip


def test_every_board_names_its_processor():
    assert {name: find_board(name).host for name in MODULES} == HOSTS
    for name in HOSTS.values():
        find_target(name)


@pytest.fixture
def compiled(vdla, tmp_path):
    """Compiles digits; the command's JSON and the module."""

    def run(*options):
        path = tmp_path / "m.vdla"
        done = vdla("compile", "digits", *options, "-o", path, "--json")
        assert done.code == 0, done.err
        return done.json, Module.load(path)

    return run


@pytest.mark.parametrize(
    ("options", "config", "processor"),
    [
        (("--board", "pynq-z2"), "paper", "cortex-a9"),
        (("--board", "ultra96-v2", "-c", "tiny"), "tiny", "cortex-a53"),
        (("--board", "pynq-z2", "--host", "cortex-a53"), "paper", "cortex-a53"),
        (("--host", "cortex-a9", "-c", "tiny"), "tiny", "cortex-a9"),
    ],
)
def test_modules_for_boards(options, config, processor, compiled, vdla, tmp_path):
    target = find_target(processor)
    try:
        link.find_linker(target)
    except TargetError as error:
        pytest.skip(str(error))
    summary, module = compiled(*options)
    assert (summary["config"], summary["host"]) == (config, processor)
    assert module.host.triple == target.triple
    assert struct.unpack_from("<H", module.host.code, 16) == (3,)  # ET_DYN
    done = vdla("run", tmp_path / "m.vdla")
    assert done.code == 2
    assert done.out == ""
    assert done.err == (
        f"vdla: host code: expected host code for x86_64-linux-gnu, "
        f"found {target.triple} ({processor})\n"
    )


@pytest.mark.parametrize("options", [("--host", "native"), ("--board", "ulx3s"), ()])
def test_modules_for_this_machine(options, compiled, vdla, tmp_path):
    summary, module = compiled(*options)
    assert summary["config"] == ("ulx3s" if "ulx3s" in options else "paper")
    assert struct.unpack_from("<H", module.host.code, 16) == (1,)  # ET_REL
    assert vdla("run", tmp_path / "m.vdla").code == 0


def test_wrong_names_and_missing_linkers(vdla, tmp_path, monkeypatch):
    def refused(*options) -> str:
        done = vdla("compile", "digits", *options, "-o", tmp_path / "m.vdla")
        assert done.code == 2
        assert not list(tmp_path.iterdir())
        (line,) = done.err.splitlines()
        return line

    assert refused("--host", "cortex-a8") == (
        "vdla: host: expected one of native, cortex-a9, cortex-a53, found cortex-a8"
    )
    assert refused("--board", "pynq-z3") == (
        f"vdla: board: expected one of {', '.join(MODULES)}, found pynq-z3"
    )
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    assert refused("--board", "pynq-z2").startswith(
        "vdla: host cortex-a9: expected a linker (arm-linux-gnueabihf-ld, ld.lld or ziglang), "
        "found none; install with: "
    )
