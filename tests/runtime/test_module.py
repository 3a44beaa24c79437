"""The module file: round trip, truncation, bit flips, and what each error says."""

from __future__ import annotations

import json
import re
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vdla as api
from vdla.isa.identity import Identity
from vdla.runtime import HostCode, Module, ModuleError, TensorInfo
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor
from vdla.runtime.kernels import KernelFunction, Kernels, Launch
from vdla.runtime.module import FORMAT_VERSION, MAGIC, PREFIX
from vdla.runtime.plan import Accelerate, Host
from vdla.support.errors import UserError

PLACEMENT = {"op": "QConv2d", "name": "conv", "device": "cpu", "reason": "19 % · ≥"}
METADATA = {
    "model": "m",
    "placement": [PLACEMENT],
    "layers": [],
    "memory": {"constants": 64, "activations": 0, "tensors": 0},
    "work": {"conv": 7},
    "indices": {},
    "streams": {"program0": {"layers": [["a", 1], ["b", 2]], "stages": ["s"]}},
}
HOST = HostCode(
    b"\x7fELF code", "x86_64-unknown-linux-gnu", "znver4", "+avx2,-sse4a", {"f": (12, 4)}, b"text"
)


def module():
    return Module(
        tensors={
            "x": TensorInfo((1, 3), "float32", 128),
            "w": TensorInfo((2, 2), "int8", 0),
        },
        inputs=["x"],
        outputs=["x"],
        dram_bytes=1024,
        steps=(Host("conv", "f", ("x", "w")), Accelerate("program0", ("a", "b"))),
        constants=bytes(range(64)),
        host=HOST,
        programs={"program0": b"VDLA program", "program1": b""},
        external={"resize": b"ONNX model"},
        config={"name": "paper", "block_in": 16},
        identity=Identity("fedcba98", "abc12345"),
        metadata=METADATA,
    )


DATA = module().to_bytes()


def test_round_trip(tmp_path):
    path = tmp_path / "m.vdla"
    module().save(path)
    assert Module.load(path) == module()
    assert [p.name for p in tmp_path.iterdir()] == ["m.vdla"]


def test_host_code_is_optional():
    plain = module()
    plain.host = None
    assert Module.from_bytes(plain.to_bytes()).host is None


def with_kernels(**changes):
    """A header's kernels, for the file that says something else of them."""
    functions = {
        "f": KernelFunction((12, 4), (8,), (Launch("k", (1, 2, 3), (4, 1, 1), (0, 2), 16),))
    }
    whole = module()
    whole.kernels = replace(
        Kernels("opencl", "", "__kernel void k() {} // ü", functions), **changes
    )
    return whole


def test_kernels():
    whole = with_kernels()
    assert Module.from_bytes(whole.to_bytes()) == whole
    assert Module.from_bytes(DATA).kernels is None


@pytest.mark.parametrize(("launch", "field"), [
    (Launch("k", (0, 1, 1), (1, 1, 1), (), 0), "grid[0]"),
    (Launch("k", (1, 1, 1), (1, 1 << 31, 1), (), 0), "group[1]"),
    (Launch("k", (1, 1), (1, 1, 1), (), 0), "grid"),
    (Launch("k", (1, 1, 1), (1, 1, 1), (-1,), 0), "args[0]"),
    (Launch("k", (1, 1, 1), (1, 1, 1), (), -1), "shared"),
    (Launch(3, (1, 1, 1), (1, 1, 1), (), 0), "kernel"),
])  # fmt: skip
def test_launches_that_are_none(launch, field):
    wrong = with_kernels(functions={"f": KernelFunction((4,), (), (launch,))})
    assert message(wrong.to_bytes()).startswith(
        f"m.vdla: header: kernels.functions.f.launches[0].{field}: expected it to "
    )


def test_kernels_in_no_language():
    assert message(with_kernels(language="metal").to_bytes()) == (
        "m.vdla: header: kernels.language: expected it to be one of ['opencl', 'ptx'], "
        "found 'metal'"
    )


def test_the_same_module_is_the_same_file():
    """In whatever order its tables were filled."""
    other = module()
    for table in (other.tensors, other.config):
        for key in reversed(list(table)):
            table[key] = table.pop(key)
    assert other == module()
    assert other.to_bytes() == DATA


@pytest.mark.parametrize(("shape", "dtype", "size"), [
    ((2, 3, 4), "float32", 96), ((5,), "int8", 5), ((), "float64", 8), ((3, 0), "int32", 0),
])  # fmt: skip
def test_bytes_of_a_tensor(shape, dtype, size):
    assert TensorInfo(shape, dtype, 64).nbytes == size


def test_saving_replaces_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "m.vdla"
    path.write_bytes(b"old")
    module().save(path)
    assert path.read_bytes() == DATA


def test_saving_where_nothing_can_be_written(tmp_path):
    path = tmp_path / "none" / "m.vdla"
    with pytest.raises(ModuleError) as caught:
        module().save(path)
    assert (
        str(caught.value) == f"{path}: expected a place to write, found No such file or directory"
    )


@given(length=st.integers(0, len(DATA) - 1))
def test_truncated_anywhere(length):
    with pytest.raises(ModuleError) as caught:
        Module.from_bytes(DATA[:length], "m.vdla")
    text = str(caught.value)
    assert text.startswith("m.vdla: expected ")
    assert "\n" not in text
    if length >= len(MAGIC):
        assert re.fullmatch(
            rf"m\.vdla: expected at least \d+ bytes, found {length}: truncated", text
        )


@settings(max_examples=400)
@given(place=st.integers(0, len(DATA) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_is_found(place, bit):
    damaged = bytearray(DATA)
    damaged[place] ^= 1 << bit
    with pytest.raises(ModuleError, match=r"^m\.vdla: .*expected .*, found "):
        Module.from_bytes(bytes(damaged), "m.vdla")


def message(data):
    with pytest.raises(ModuleError) as caught:
        Module.from_bytes(data, "m.vdla")
    return str(caught.value)


def test_errors():
    magic = "b'VDLAMOD\\n'"
    assert message(b"") == f"m.vdla: expected a vdla module ({magic}), found an empty file"
    assert message(b"\x7fELF....more") == (
        f"m.vdla: expected a vdla module ({magic}), found b'\\x7fELF....'"
    )
    assert message(DATA[:11]) == "m.vdla: expected at least 20 bytes, found 11: truncated"
    end = PREFIX.size + int.from_bytes(DATA[12:16], "little")
    assert message(DATA[:20]) == f"m.vdla: expected at least {end} bytes, found 20: truncated"
    later = bytearray(DATA)
    struct.pack_into("<I", later, 8, FORMAT_VERSION + 1)
    assert message(bytes(later)) == "m.vdla: expected module format 8, found format 9"
    assert message(DATA + b"!") == f"m.vdla: expected {len(DATA)} bytes, found {len(DATA) + 1}"
    changed = DATA.replace(b"VDLA program", b"VDLA PROGRAM")
    expected, found = zlib.crc32(b"VDLA program"), zlib.crc32(b"VDLA PROGRAM")
    assert message(changed) == (
        f"m.vdla: section program:program0: expected checksum {expected:08x}, found {found:08x}"
    )


def with_header(header: bytes) -> bytes:
    return PREFIX.pack(MAGIC, FORMAT_VERSION, len(header), zlib.crc32(header)) + header


def test_headers_that_say_too_little():
    assert message(with_header(b"{]")).startswith("m.vdla: expected a JSON header, found ")
    assert message(with_header(b"{}")).startswith(
        "m.vdla: header: expected it to contain ['arguments', 'config', 'config_hash', "
    )


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (("tensors", "x", "shape", 0), "x", "tensors.x.shape[0]: expected it to be integer"),
        (("tensors", "x", "shape", 0), None, "tensors.x.shape[0]: expected it to be integer"),
        (("tensors", "x", "offset"), "x", "tensors.x.offset: expected it to be integer"),
        (("tensors", "x", "offset"), True, "tensors.x.offset: expected it to be integer"),
        (("tensors", "x", "offset"), -1, "tensors.x.offset: expected it to be bigger than or eq"),
        (("tensors", "x", "dtype"), 7, "tensors.x.dtype: expected it to be one of ['bool', "),
        (("dram_bytes",), [], "dram_bytes: expected it to be integer"),
        (("inputs",), 4096, "inputs: expected it to be array"),
        (("outputs",), [], "outputs: expected it to contain at least 1 items"),
        (("config",), True, "config: expected it to be object"),
        (("host", "features"), 7, "host.features: expected it to be string"),
        (("host", "functions", "f"), [], "host.functions.f: expected it to contain at least 1"),
        (("metadata", "placement", 0, "op"), {}, "metadata.placement[0].op: expected it to be"),
    ],
)
def test_headers_of_wrong_types(place, value, text):
    header = json.loads(DATA[PREFIX.size : PREFIX.size + PREFIX.unpack_from(DATA)[2]])
    inner = header
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    found = message(with_header(json.dumps(header).encode()))
    assert found.startswith(f"m.vdla: header: {text}")
    assert f", found {value!r}" in found


def test_no_file(tmp_path):
    with pytest.raises(ModuleError) as caught:
        Module.load(tmp_path / "none.vdla")
    assert str(caught.value) == (
        f"{tmp_path}/none.vdla: expected a vdla module, found No such file or directory"
    )


# --- headers of a real module that are changed, with checksums that are right ---------------------

VALUES = (None, "x", [], {}, True, -1, 7, 1.5, 1 << 70)
DELETED = object()


def places(value, path=()):
    """The path of every field: of tables the first five entries, of lists the first two."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in list(value)[:5]:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for number in range(min(len(value), 2)):
            yield from places(value[number], (*path, number))


def changed(header, path, value):
    """A header with one field changed or deleted."""
    header = inner = json.loads(json.dumps(header))
    for key in path[:-1]:
        inner = inner[key]
    if value is DELETED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(header).encode()


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_changed_headers_are_refused_or_run(device):
    """Each field of another value, or left out: no other exception than the user's, no hang."""
    data = api.compile("digits", "tiny", device=device).to_bytes()
    length = PREFIX.unpack_from(data)[2]
    header = json.loads(data[PREFIX.size : PREFIX.size + length])
    refused = 0
    for path in places(header):
        for value in (*VALUES, DELETED):
            raw = with_header(changed(header, path, value)) + data[PREFIX.size + length :]
            try:
                module = Module.from_bytes(raw)
                inputs = {n: np.zeros(t.shape, t.dtype) for n, t in module.tensors.items()}
                ready = Executor(module, make_device(module, device), threads=1)
                ready.run({name: inputs[name] for name in module.inputs})
            except UserError:
                refused += 1
    assert refused > 190
