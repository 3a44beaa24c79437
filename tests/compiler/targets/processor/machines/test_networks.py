"""Networks as host functions on other machines, emulated: every bit is this machine's."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.support.bare_programs import EMULATORS, Program, processor_of
from vdla import api
from vdla.compiler.models import digits_test
from vdla.compiler.targets.processor.codegen.llvm import compile_object
from vdla.runtime import Executor

HEADERS = {  # ELF's class, machine and flags of the ABI
    "riscv64-linux": (2, 243, 5),  # RVC, double-float ABI
    "aarch64-linux": (2, 183, 0),
    "arm-linux": (1, 40, 0x05000000),  # EABI 5; the linker adds that floats are in registers
    "thumbv7em": (1, 40, 0x05000000),
    "x86_64": (2, 62, 0),
}
DIGITS = 4
MODELS = ("scenes", "patches", "characters", "dqn", "mobilenetv2")
IMAGES = ("dqn", "mobilenetv2")  # more than a Cortex-M has memory for


@pytest.fixture(params=list(EMULATORS))
def machine(request):
    """A machine that can be emulated here."""
    absent = EMULATORS[request.param].absent
    if absent:
        pytest.skip(absent)
    return request.param


@pytest.mark.parametrize("name", HEADERS)
def test_headers_of_objects(name):
    code = compile_object([], processor_of(name))
    wide = code[4] == 2
    kind, number = struct.unpack_from("<HH", code, 16)
    (flags,) = struct.unpack_from("<I", code, 48 if wide else 36)
    assert (code[:4], kind) == (b"\x7fELF", 1)
    assert (code[4], number, flags) == HEADERS[name]


@pytest.mark.parametrize("name", ["arm-linux", "thumbv7em"])
def test_floats_are_passed_in_registers_on_arm(name):
    """Tag_ABI_VFP_args (28) is 1 among the build attributes, which begin with "aeabi"."""
    code = compile_object([], processor_of(name))
    attributes = code[code.index(b"aeabi\0") :]
    assert b"\x1c\x01" in attributes


def test_objects_of_webassembly():
    assert compile_object([], processor_of("wasm32")).startswith(b"\0asm\x01\0\0\0")


def test_digits(machine, tmp_path):
    here = Executor(api.compile("digits", device="cpu", target="native"))
    program = Program(machine, compiled("digits", machine), tmp_path)
    for picture in digits_test()[0][:DIGITS, None]:
        (want,) = here.run({"image": picture}).outputs.values()
        (found,) = program.run({"image": picture}).values()
        np.testing.assert_array_equal(found.view(np.uint32), want.view(np.uint32))
    assert not program.peak_bytes


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
def test_other_networks(model, machine, tmp_path):
    if machine == "thumbv7em" and model in IMAGES:
        pytest.skip("more than its memory")
    here = api.compile(model, device="cpu", target="native")
    inputs = api.random_inputs(here)
    expected = Executor(here).run(inputs).outputs
    actual = Program(machine, compiled(model, machine), tmp_path).run(inputs)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value)


def compiled(model, machine):
    """A module of host functions for a machine."""
    return api.compile(model, device="cpu", target=processor_of(machine))
