"""What runtime/c says of bytes that are no module, and of modules that it can't run."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import pytest
from in_c import code_of, opened, runtime

import vdla
from vdla.isa.identity import Identity
from vdla.runtime import HostCode, Module, TensorInfo
from vdla.runtime.module import FORMAT_VERSION, MAGIC
from vdla.runtime.plan import (
    Accelerate,
    Call,
    Clear,
    Copy,
    Gpu,
    Host,
    Jump,
    Next,
    Onnx,
    Outside,
    Return,
)
from vdla.runtime.values import Each, Rows

FUNCTIONS = {"f": (16, 16)}
HOST = HostCode(b"\x7fELF", "", "", "", FUNCTIONS)
TENSORS = {
    "x": TensorInfo((4,), "float32", 64),
    "y": TensorInfo((4,), "float32", 128),
    "turn": TensorInfo((), "int64", 192),
    "flag": TensorInfo((), "bool", 200),
    "rows": TensorInfo((3, 4), "float32", 256),
    "index": TensorInfo((2,), "int64", 320),
}


def module(*steps, **changes):
    """A module of some tensors and steps."""
    made = Module(
        tensors=TENSORS, inputs=["x"], outputs=["y"], dram_bytes=384, steps=steps,
        constants=bytes(range(64)), host=HOST,
    )  # fmt: skip
    return replace(made, **changes)


RUNS = module(Host("a", "f", ("x", "y")))
DATA = RUNS.packed()


def said(made, functions=FUNCTIONS):
    """What is said of a module."""
    return opened(made.packed(), code_of(functions))


def test_it_opens():
    assert said(RUNS) == ("ok", "")
    assert opened(RUNS.to_bytes(), code_of(FUNCTIONS)) == ("ok", "")  # a file is as good


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 19, 20, 63, 64, 100, 200, len(DATA) - 1])
def test_bytes_that_end_early(cut):
    wanted = "a vdla module, found other bytes"
    if cut > 7:
        wanted = f"more than its {cut} bytes, found an end: it is truncated"
    assert opened(DATA[:cut], code_of(FUNCTIONS)) == ("bad module", f"module: expected {wanted}")


def test_other_bytes():
    assert opened(b"\x7fELF" + bytes(200)) == (
        "bad module", "module: expected a vdla module, found other bytes"
    )  # fmt: skip
    later = bytearray(DATA)
    struct.pack_into("<I", later, 8, FORMAT_VERSION + 1)
    assert opened(bytes(later)) == (
        "bad module",
        f"module: expected format {FORMAT_VERSION}, found format {FORMAT_VERSION + 1}",
    )


@pytest.mark.parametrize("place", range(12, len(DATA), 17))
def test_a_bit_that_flips_is_seen(place):
    data = bytearray(DATA)
    data[place] ^= 4
    status, text = opened(bytes(data), code_of(FUNCTIONS))
    assert status == "bad module", text
    assert text


def test_checksums_are_those_of_zlib():
    data = bytearray(DATA)
    data[-1] ^= 1
    assert opened(bytes(data), code_of(FUNCTIONS)) == (
        "bad module",
        f"a section: expected checksum {zlib.crc32(RUNS.constants):08x}, "
        f"found {zlib.crc32(data[-64:]):08x}",
    )


def test_more_bytes():
    assert opened(DATA + b"more", code_of(FUNCTIONS)) == (
        "bad module", "module: expected an end, found more bytes"
    )  # fmt: skip


@pytest.mark.parametrize(("made", "status", "text"), [
    (module(dram_bytes=60), "bad module",
     "module: expected an image of this machine that holds the constants, found 60"),
    (module(dram_bytes=256), "bad module",
     "a tensor: expected an offset and bytes within the image, found 320"),
    (module(outputs=["no"]), "bad module",
     "an input or output: expected a known tensor, found 4294967295"),
    (module(tensors=TENSORS | {"x": TensorInfo((1,) * 9, "int8", 0)}), "bad module",
     "an input or output: expected at most 8 axes, found 9"),
    (module(Host("a", "g", ("x", "y"))), "bad module",
     "step 0: expected a function of the module, found another"),
    (module(Host("a", "f", ("x", "rows"))), "bad module",
     "step 0: expected tensors of its function's bytes, found others"),
    (module(Host("a", "f", ("x",))), "bad module",
     "step 0: expected tensors of its function's bytes, found others"),
    (module(Host("a", "f", ("x", "z"))), "bad module",
     "step 0: expected known tensors, found another"),
    (module(Copy("a", ("x",))), "bad module",
     "step 0: expected two tensors, and a way to copy, found others"),
    (module(Copy("a", ("x", "rows"))), "bad module",
     "step 0: expected tensors of as many bytes to copy, found others"),
    (module(Copy("a", ("rows", "x"), "x", "take")), "bad module",
     "step 0: expected two tensors, and a way to copy, found others"),
    (module(Clear("a", ())), "bad module", "step 0: expected one tensor, found others"),
    (module(Jump("a", 2)), "bad module", "step 0: expected a step to go on with, found none"),
    (module(Jump("a", 0)), "bad module",
     "step 0: expected a jump to a step behind it, found one before it"),
    (module(Jump("a", 1, "x")), "bad module",
     "step 0: expected a condition of one bool, found another"),
    (module(Next("loop", 0, "x", 3)), "bad module",
     "step 0 (loop): expected turns from a step before, found others"),
    (module(Next("loop", 1, "turn", 3), Return("r")), "bad module",
     "step 0 (loop): expected turns from a step before, found others"),
    (module(Call("tree", 3)), "bad module",
     "step 0 (tree): expected a step to go on with, found none"),
    (module(Gpu("conv", "f", ("x", "y"))), "bad device",
     "step 0 (conv): expected steps of a processor or the accelerator, found one for a GPU; "
     "compile without it"),
    (module(Onnx("resize", "m", ("x", "y"))), "bad device",
     "step 0 (resize): expected steps of a processor or the accelerator, found one for "
     "onnxruntime"),
    (module(Outside("fft", "dsp", "c", ("x", "y"))), "bad device",
     "step 0 (fft): expected steps of a processor or the accelerator, found one of another "
     "package's target"),
    (module(Accelerate("p", ())), "bad module",
     "step 0 (p): expected a program of the module, found none"),
    (module(Accelerate("p", ()), programs={"p": b"VDLA program"}), "bad module",
     "step 0 (p): expected a program of the module, found other bytes"),
    (module(metadata={"indices": {"x": 3}}), "bad module",
     "an input: expected integers as indices, found others"),
    (module(values={"y": Rows("y", "flag")}), "bad module",
     "an output: expected a number of rows of one int64, found 0"),
    (module(values={"y": Each("rows", "turn", "index")}), "bad module",
     "an output: expected sizes of all its rows, found 1"),
])  # fmt: skip
def test_modules_that_say_what_is_not(made, status, text):
    assert said(made) == (status, text)


def test_functions_of_another_module():
    assert said(RUNS, {"g": (16, 16)}) == (
        "bad code",
        "code: expected the module's functions, found others",
    )
    assert said(RUNS, {"ff": (16, 16)}) == (
        "bad code",
        "code: expected the module's functions, found others",
    )
    assert said(RUNS, {"f": (16, 16), "g": ()}) == (
        "bad code", "code: expected as many functions as the module names, found 2"
    )  # fmt: skip
    assert opened(DATA) == (
        "bad code", "code: expected as many functions as the module names, found 0"
    )  # fmt: skip


def test_memory():
    need = 1472 + 384 - 64 + 64
    words = f"memory: expected {need} bytes, found"
    assert opened(DATA, code_of(FUNCTIONS), need) == ("ok", "")
    assert opened(DATA, code_of(FUNCTIONS), need - 1) == ("bad memory", f"{words} {need - 1}")
    more = need + 64  # bytes that aren't aligned can't stay where they are
    assert opened(DATA, code_of(FUNCTIONS), more, (0, 8)) == ("ok", "")
    assert opened(DATA, code_of(FUNCTIONS), need, (0, 8)) == (
        "bad memory", f"memory: expected {more} bytes, found {need}"
    )  # fmt: skip
    nothing = "memory: expected some, aligned to 64 bytes, found less or none"
    assert opened(DATA, code_of(FUNCTIONS), 1471) == ("bad memory", nothing)
    assert opened(DATA, code_of(FUNCTIONS), shifts=(8, 0)) == ("bad memory", nothing)
    assert runtime().vdla_memory(None) == 1472


def test_programs_need_a_board():
    made = vdla.compile("digits", config="tiny")
    assert opened(made.packed(), code_of(made.host.functions)) == (
        "bad device", "device: expected a board for the accelerator's programs, found none"
    )  # fmt: skip
    assert made.packed().startswith(MAGIC)
    other = replace(made, identity=Identity("00000000", "00000000"))
    name = made.metadata["streams"].keys()
    (program,) = name
    assert opened(other.packed(), code_of(made.host.functions)) == (
        "bad module",
        f"step {len(made.steps) - 2} ({program}): expected a program for the module's config, "
        "found another",
    )
