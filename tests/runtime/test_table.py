"""The table beside a module's header: what runtime/c needs of memory is what Python says."""

from __future__ import annotations

import struct

import pytest
from in_c import Code, InC, code_of, opened

import vdla
from vdla.isa.identity import Identity
from vdla.runtime import HostCode
from vdla.runtime.errors import ModuleError
from vdla.runtime.module import PREFIX, Module, TensorInfo
from vdla.runtime.plan import Accelerate, Host
from vdla.runtime.table import ALIGN, memory_of, table_of

OWN = 1472  # VDLA_OWN_BYTES


def odd_module() -> Module:
    """A module with a bit of everything, of which nothing fits together."""
    return Module(
        tensors={"x": TensorInfo((1, 3), "float32", 128), "w": TensorInfo((2, 2), "int8", 0)},
        inputs=["x"], outputs=["x"], dram_bytes=1024,
        steps=(Host("conv", "f", ("x", "w")), Accelerate("program0", ("a", "b"))),
        constants=bytes(range(64)), host=HostCode(b"\x7fELF code", "", "", "", {"f": (12, 4)}),
        programs={"program0": b"VDLA program"}, identity=Identity("fedcba98", "abc12345"),
    )  # fmt: skip


def needed(made: Module) -> int:
    """VDLA_MEMORY of what Python says."""
    memory = memory_of(made)
    image, buffers = (-(-n // 64) * 64 for n in (memory.image, 8 * (memory.buffers + 1)))
    return OWN + image + buffers + 1000 * memory.saved


@pytest.mark.parametrize("name", ["digits", "characters"])
def test_memory(name):
    made = vdla.compile(name, device="cpu")
    code = code_of(made.host.functions)
    assert opened(made.packed(), code, needed(made)) == ("ok", "")
    assert opened(made.packed(), code, needed(made) - 1) == (
        "bad memory", f"memory: expected {needed(made)} bytes, found {needed(made) - 1}"
    )  # fmt: skip
    assert memory_of(made).image < made.dram_bytes - len(made.constants) + ALIGN


def test_constants_that_are_written_are_copied():
    """An input that lies among them, here."""
    made = Module(
        tensors={"x": TensorInfo((16,), "float32", 64), "y": TensorInfo((16,), "float32", 128)},
        inputs=["x"], outputs=["y"], dram_bytes=192, steps=(), constants=bytes(128),
    )  # fmt: skip
    assert memory_of(made).image == 192
    assert opened(made.packed(), Code(), needed(made)) == ("ok", "")
    assert opened(made.packed(), Code(), needed(made) - 1)[0] == "bad memory"


def test_constants_are_aligned_in_a_file():
    for data in (odd_module().to_bytes(), odd_module().packed()):
        header = PREFIX.unpack_from(data)[2]
        (length,) = struct.unpack_from("<I", data, PREFIX.size + header)
        assert (PREFIX.size + header) % ALIGN == length % ALIGN == 0
        assert data[PREFIX.size + header + length :].startswith(bytes(range(64)))


def test_names_that_are_nowhere_are_none():
    """Whoever reads the table says so; a file can be written of any module."""
    made = odd_module()
    made.outputs = ["nowhere"]
    assert table_of(made, [("constants", b"")])


def test_numbers_that_are_too_large():
    made = odd_module()
    made.tensors["x"] = TensorInfo((1 << 32,), "int8", 0)
    with pytest.raises(ModuleError) as caught:
        made.to_bytes()
    assert str(caught.value) == "module: expected numbers below 2**32, found a larger one"


def test_runs_are_alike():
    made = vdla.compile("digits", device="cpu")
    inputs = vdla.random_inputs(made, 5)
    in_c, wanted = InC(made), vdla.run(made, inputs).outputs["logits"]
    for _ in range(2):
        assert in_c.run(inputs)["logits"].tobytes() == wanted.tobytes()
