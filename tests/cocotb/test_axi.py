"""The Verilog core in front of AXI peers that aren't ours: builds it and runs the modules beside.

The ``axi_*`` modules hold the cocotb tests. The model is kept with the device's own, under a key of
all it depends on, so that only a change builds it again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cocotb_tools.config import libs_dir
from cocotb_tools.runner import get_runner

from vdla.isa.config import load_config
from vdla.runtime.rtl.build import verilog
from vdla.runtime.rtl.verilate import verilator_root
from vdla.support.files import cache_folder

HERE = Path(__file__).parent
# Two runs of the simulator, one for each core: its start takes as long as a module's tests.
RUNS = {
    "transfers": ("axi_programs", "axi_bursts", "axi_errors"),
    "control": ("axi_resets", "axi_registers", "axi_interrupts"),
}
TOP = "vdla"
PORTS = f'`verilator_config\npublic_flat_rw -module "{TOP}" -var "*"\n'
# cocotb wants all signals public, which is slow; the ports suffice, but aren't free of order then.
OPTIONS = ("-O3", "--no-public-flat-rw", "-Wno-UNOPTFLAT", "--no-timing", "-CFLAGS", "-O1")
# The wheel's makefile names the compiler it was built with.
COMPILER = "CXX=g++ LINK=g++ CFG_CXXFLAGS_PCH_I=-include"
QUIET = {"COCOTB_LOG_LEVEL": "ERROR", "GPI_LOG_LEVEL": "ERROR", "PYTHONWARNINGS": "ignore"}


@pytest.fixture(scope="session")
def model():
    """The folder of the model."""
    text = verilog(load_config("tiny"))
    # The program finds cocotb's libraries by the path they had when it was built.
    tools = [*(metadata.version(name) for name in ("verilator", "cocotb")), str(libs_dir)]
    key = hashlib.sha256(repr((text, PORTS, OPTIONS, tools)).encode()).hexdigest()[:16]
    folder = cache_folder("rtl", f"cocotb-{key}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            build(folder, text)
            (folder / "done").touch()
    return folder


def build(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "core.v").write_text(text)
    (folder / "ports.vlt").write_text(PORTS)
    root = verilator_root()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERILATOR_ROOT", str(root))
        patch.setenv("PATH", str(root / "bin"), prepend=os.pathsep)
        patch.setenv("MAKEFLAGS", COMPILER)
        get_runner("verilator").build(
            sources=[folder / "core.v"],
            hdl_toplevel=TOP,
            build_dir=folder,
            build_args=[*OPTIONS, str(folder / "ports.vlt")],
            timescale=("1ns", "1ns"),
            log_file=folder / "build.log",
        )


@pytest.mark.long
@pytest.mark.parametrize("run", RUNS)
def test_axi(model, run, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    with contextlib.suppress(SystemExit):  # without a reason; the results have one
        get_runner("verilator").test(
            hdl_toplevel=TOP,
            hdl_toplevel_lang="verilog",
            test_module=RUNS[run],
            build_dir=model,
            test_dir=tmp_path,
            extra_env=QUIET,
            seed=0,
            log_file=tmp_path / "log",
        )
    results = list(tmp_path.glob("*.xml"))
    assert results, f"the simulator ended early:\n{(tmp_path / 'log').read_text()}"
    cases = list(ElementTree.parse(results[0]).iter("testcase"))
    failed = [
        f"{case.get('classname')} {case.get('name')}:\n{reason.text}"
        for case in cases
        for reason in (*case.iter("failure"), *case.iter("error"))
    ]
    assert {case.get("classname") for case in cases} == set(RUNS[run])
    assert not failed, "\n".join(failed)
