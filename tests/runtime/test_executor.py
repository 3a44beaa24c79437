"""Running modules: host steps, a pretended accelerator, and inputs that don't fit."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import llvmlite.binding as llvm
import numpy as np
import pytest

from vdla.compiler.targets.processor.codegen.builtins import builtins_ir
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.instructions import Finish
from vdla.isa.program import Program
from vdla.runtime import (
    DeviceError,
    Executor,
    HostCode,
    InputError,
    Module,
    ModuleError,
    TensorInfo,
    native,
)
from vdla.runtime.devices import CpuDevice, DeviceResult
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.dram import aligned_bytes, host_image
from vdla.runtime.native import (
    NativeLibrary,
    board_machine,
    check_machine,
    check_object,
    host_machine,
)
from vdla.runtime.plan import Accelerate, Host, Onnx

# double(x, y): y[i] = 2 * x[i] for four floats, in the host code's signature.
DOUBLE = """
define void @double(ptr %buffers) {
  %second = getelementptr ptr, ptr %buffers, i64 1
  %x = load ptr, ptr %buffers
  %y = load ptr, ptr %second
  %v = load <4 x float>, ptr %x, align 64
  %w = fadd <4 x float> %v, %v
  store <4 x float> %w, ptr %y, align 64
  ret void
}
"""


@pytest.fixture(scope="module")
def host():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
    module = llvm.parse_assembly(DOUBLE)
    module.link_in(llvm.parse_assembly(builtins_ir(NATIVE)))
    return HostCode(machine.emit_object(module), *host_machine(), {"double": (16, 16)})


class AddOne:
    """A device that adds one to the byte its program names."""

    name = "addone"
    identity = Identity("15a", "c0ffee")

    def __init__(self):
        self.moved = []  # of each program: what the host may write before it, and read after it

    def allocate(self, size, constants):
        return host_image(size, constants)

    def load(self, program, dram, given, wanted):
        self.moved.append((given, wanted))

        def run():
            dram[program[0]] += 1
            return DeviceResult(cycles=7, trace="done")

        return run


def host_module(host, **changes):
    values = {
        "tensors": {
            "x": TensorInfo((2, 2), "float32", 64),
            "y": TensorInfo((2, 2), "float32", 128),
            "z": TensorInfo((4,), "float32", 192),
        },
        "inputs": ["x"],
        "outputs": ["z", "y"],
        "dram_bytes": 256,
        "steps": [
            Host("first", "double", ("x", "y")),
            Host("second", "double", ("y", "z")),
        ],
        "host": host,
    }
    return Module(**{**values, **changes})


X = np.array([[1, 2], [3, 4]], np.float32)


def test_host_steps(host):
    result = Executor(host_module(host)).run({"x": X})
    np.testing.assert_array_equal(result.outputs["y"], 2 * X)
    np.testing.assert_array_equal(result.outputs["z"], 4 * X.ravel())
    assert list(result.outputs) == ["z", "y"]
    assert result.cycles is None
    assert result.seconds > 0
    assert [(s.name, s.kind, s.cycles) for s in result.steps] == [
        ("first", "host", None),
        ("second", "host", None),
    ]


def test_each_step_is_timed(host):
    result = Executor(host_module(host)).run({"x": X})
    assert all(step.seconds > 0 for step in result.steps)
    assert sum(step.seconds for step in result.steps) < result.seconds


def test_constants_may_fill_the_image():
    full = accelerated(constants=bytes(128), dram_bytes=128)
    assert Executor(full, AddOne()).dram.size == 128


def test_runs_do_not_share_outputs(host):
    executor = Executor(host_module(host))
    first = executor.run({"x": X})
    second = executor.run({"x": X + 1})
    np.testing.assert_array_equal(first.outputs["y"], 2 * X)
    np.testing.assert_array_equal(second.outputs["y"], 2 * X + 2)


def test_an_input_may_lie_anyhow(host):
    result = Executor(host_module(host)).run({"x": X.T})
    np.testing.assert_array_equal(result.outputs["y"], 2 * X.T)


def accelerated(**changes):
    values = {
        "tensors": {"x": TensorInfo((4,), "uint8", 0)},
        "inputs": ["x"],
        "outputs": ["x"],
        "dram_bytes": 128,
        "steps": (Accelerate("p", ("a",)),) * 2,
        "programs": {"p": bytes([2])},
        "identity": Identity("15a", "c0ffee"),
    }
    return Module(**{**values, **changes})


def test_accelerator_steps_share_the_image():
    executor = Executor(accelerated(), AddOne())
    result = executor.run({"x": np.arange(4, dtype=np.uint8)})
    np.testing.assert_array_equal(result.outputs["x"], [0, 1, 4, 3])
    assert result.cycles == 14
    assert [s.device.trace for s in result.steps] == ["done", "done"]


def test_seconds_are_of_each_step_and_of_all(monkeypatch):
    clock, device = Clock(), AddOne()
    monkeypatch.setattr("time.perf_counter", clock)
    device.load = lambda program, *ranges: (
        lambda: clock.passes(program[0]) or DeviceResult(cycles=1)
    )
    steps = Accelerate("p", ()), Accelerate("q", ())
    module = accelerated(steps=steps, programs={"p": bytes([2]), "q": bytes([5])})
    clock.passes(100)
    result = Executor(module, device).run({"x": np.arange(4, dtype=np.uint8)})
    assert [step.seconds for step in result.steps] == [2, 5]
    assert result.seconds == 7


class Clock:
    """Time that passes only where a test says so."""

    now = 0

    def __call__(self):
        return self.now

    def passes(self, seconds):
        self.now += seconds


def test_a_program_is_told_what_the_host_writes_before_it_and_reads_after_it(host):
    """Not what lies among the constants, nor what only the other programs touch."""
    names = "x", "last", "first", "a", "b", "c", "d", "y"
    tensors = {name: TensorInfo((4,), "float32", 64 * i) for i, name in enumerate(names)}
    steps = (
        Host("1", "double", ("last", "a")),
        Accelerate("p", ()),
        Host("2", "double", ("first", "b")),
        Accelerate("q", ()),
        Host("3", "double", ("c", "d")),
    )
    device = AddOne()
    Executor(accelerated(
        tensors=tensors, inputs=["x"], outputs=["y"], dram_bytes=512, steps=steps, host=host,
        constants=bytes(128), programs={"p": b"0", "q": b"0"},
    ), device)  # fmt: skip
    at = {name: (info.offset, info.offset + 16) for name, info in tensors.items()}
    assert device.moved == [
        ([at["a"]], [at["first"], at["b"], at["c"], at["d"], at["y"]]),
        ([at["first"], at["a"], at["b"]], [at["c"], at["d"], at["y"]]),
    ]


def test_constants_are_in_place():
    executor = Executor(accelerated(constants=bytes(range(10, 20))), AddOne())
    np.testing.assert_array_equal(executor.dram[:10], range(10, 20))
    np.testing.assert_array_equal(executor.tensor("x"), [10, 11, 12, 13])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input x: expected float32[2, 2], found nothing"),
        ({"x": X, "q": X}, "inputs: expected x, found q"),
        ({"x": X.astype(float)}, "input x: expected float32[2, 2], found float64[2, 2]"),
        ({"x": X[None]}, "input x: expected float32[2, 2], found float32[1, 2, 2]"),
    ],
)
def test_inputs_that_do_not_fit(host, inputs, message):
    with pytest.raises(InputError) as caught:
        Executor(host_module(host)).run(inputs)
    assert str(caught.value) == message


def device_error(*arguments):
    with pytest.raises(DeviceError) as caught:
        Executor(*arguments)
    return str(caught.value)


def test_devices_that_do_not_fit():
    assert device_error(accelerated()) == (
        "device cpu: expected a module with host steps only, found 2 for the accelerator"
    )
    assert device_error(accelerated(identity=Identity("15a", "dead")), AddOne()) == (
        "device addone: expected a module for config c0ffee, found one for dead"
    )
    assert device_error(accelerated(identity=Identity("bad", "dead")), AddOne()) == (
        "device addone: module compiled for another instruction set: expected ISA 15a, found bad; "
        "compile it again"
    )
    with pytest.raises(DeviceError, match=r"^device cpu: expected host steps only, found an acc"):
        CpuDevice().load(b"", aligned_bytes(1))


def module_error(*arguments):
    with pytest.raises(ModuleError) as caught:
        Executor(*arguments)
    return str(caught.value)


def test_a_module_may_fill_its_image():
    tensors = {"x": TensorInfo((4,), "uint8", 124)}
    module = accelerated(tensors=tensors, constants=bytes(range(128)))
    np.testing.assert_array_equal(Executor(module, AddOne()).tensor("x"), [124, 125, 126, 127])


def test_modules_that_point_outside(host):
    tensors = {"x": TensorInfo((4,), "uint8", 126)}
    assert module_error(accelerated(tensors=tensors), AddOne()) == (
        "tensor x: expected to end by byte 128, found 130"
    )
    assert module_error(accelerated(constants=bytes(200)), AddOne()) == (
        "module: expected constants of at most 128 bytes, found 200"
    )
    steps = (Host("first", "double", ("x", "ghost")),)
    assert module_error(host_module(host, steps=steps)) == (
        "step first: expected known tensors, found ghost"
    )
    steps = (Accelerate("ghost", ()),)
    assert module_error(accelerated(steps=steps), AddOne()) == (
        "steps: expected a program, host code, kernels, ONNX model or code of the module, "
        "found Accelerate(program='ghost', layers=(), reads=(), writes=())"
    )
    steps = (Onnx("first", "ghost", ("x",)),)
    assert module_error(accelerated(steps=steps, external={"other": b""}), AddOne()) == (
        "steps: expected a program, host code, kernels, ONNX model or code of the module, "
        "found Onnx(name='first', model='ghost', args=('x',))"
    )
    steps = (Host("first", "ghost", ()),)
    assert module_error(host_module(host, steps=steps)) == (
        "step first: expected a host function, found ghost"
    )
    steps = (Host("first", "double", ("x",)),)
    assert module_error(host_module(host, steps=steps)) == (
        "step first: expected tensors of 16, 16 bytes, found 16"
    )
    tensors = {**host_module(host).tensors, "y": TensorInfo((2,), "float32", 128)}
    assert module_error(host_module(host, tensors=tensors)) == (
        "step first: expected tensors of 16, 16 bytes, found 16, 8"
    )
    assert module_error(host_module(host, outputs=["ghost"])) == (
        "module: expected known inputs and outputs, found ghost"
    )


def test_a_module_that_no_memory_holds(host):
    tensors = {**host_module(host).tensors, "big": TensorInfo((1 << 50,), "int8", 256)}
    found = module_error(host_module(host, tensors=tensors, dram_bytes=256 + (1 << 50)))
    assert found.startswith("module: expected at most this machine's ")
    assert found.endswith(f"found {256 + (1 << 50):,}; the largest tensor, big, has {1 << 50:,}")


# --- host code -----------------------------------------------------------------------------------


def test_code_for_another_machine(host):
    triple, cpu, _ = host_machine()
    text = f"m: expected host code for {triple}, found aarch64-unknown-linux-gnu ({cpu})"
    with pytest.raises(ModuleError, match=f"^{re.escape(text)}$"):
        check_machine(replace(host, triple="aarch64-unknown-linux-gnu"), "m")
    wants = replace(host, cpu="future", features="+zz3,+zz1,+zz2,+zz5,+zz4,-avx")
    with pytest.raises(ModuleError) as caught:
        NativeLibrary(wants)
    assert str(caught.value) == (
        f"host code: expected host code for this {cpu}, "
        "found code for future that needs zz1, zz2, zz3, zz4, …"
    )


def test_a_shared_object_for_another_machine(host):
    """Refused by what Python knows of this machine: LLVM isn't asked."""
    code = bytearray(host.code)
    code[16] = 3  # ET_DYN
    other = HostCode(bytes(code), "arm-unknown-linux-gnueabihf", "cortex-a9", "+neon", {})
    triple, *_ = board_machine()
    with pytest.raises(ModuleError) as caught:
        NativeLibrary(other)
    assert str(caught.value) == (
        f"host code: expected host code for {triple}, found arm-unknown-linux-gnueabihf (cortex-a9)"
    )


def test_a_shared_object_that_is_cut_short(host):
    code = bytearray(host.code[:64])
    code[16] = 3
    with pytest.raises(ModuleError) as caught:
        NativeLibrary(replace(host, code=bytes(code), features=""))
    message = str(caught.value)
    assert message.startswith("host code: expected a shared object for this machine, found: ")


def test_objects_need_llvmlite(host, monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    native._llvm.cache_clear()
    with pytest.raises(ModuleError) as caught:
        NativeLibrary(host)
    assert str(caught.value) == (
        "host code: expected the package llvmlite to link an object file, found none; compile for "
        "a board's processor (vdla compile --board), or install with: pip install llvmlite"
    )


@pytest.mark.parametrize(("triple", "own"), [
    ("x86_64-pc-linux-gnu", "x86_64-unknown-linux-gnu"),
    ("x86_64-linux-gnu", "x86_64-unknown-linux-gnu"),
    ("arm64-apple-macosx14.0", "arm64-apple-darwin23.1.0"),
    ("sparc-sun-solaris", "sparc-solaris"),
])  # fmt: skip
def test_the_vendor_in_a_triple_means_nothing(host, monkeypatch, triple, own):
    for a, b in ((triple, own), (own, triple)):
        monkeypatch.setattr(native, "host_machine", lambda b=b: (b, "cpu", ""))
        check_machine(replace(host, triple=a, features=""), "m")


@pytest.mark.parametrize("triple", [
    "i386-pc-linux-gnu", "x86_64-unknown-freebsd", "x86_64-apple-darwin", "x86_64-pc-windows-gnu",
    "x86_64-macos", "x86_64-solaris",
])  # fmt: skip
def test_architecture_and_system_in_a_triple_mean_all(host, monkeypatch, triple):
    monkeypatch.setattr(native, "host_machine", lambda: ("x86_64-linux-gnu", "cpu", ""))
    with pytest.raises(ModuleError, match=r"^m: expected host code for x86_64-linux-gnu, fo"):
        check_machine(replace(host, triple=triple, features=""), "m")


@pytest.mark.parametrize(("triple", "bit"), [
    ("arm-linux-gnueabihf", 12), ("aarch64-linux-gnu", 1),
])  # fmt: skip
@pytest.mark.parametrize("there", [True, False])
def test_a_boards_processor_has_neon_when_linux_says_so(monkeypatch, triple, bit, there):
    """By the bits of asm/hwcap.h in the auxiliary vector's entry 16."""
    word = 1 << bit if there else ~(1 << bit) & 0xFFFF_FFFF
    system = SimpleNamespace(getauxval={16: word}.get)
    monkeypatch.setattr(native.ctypes, "CDLL", lambda name: system)
    monkeypatch.setattr(native.sysconfig, "get_config_var", {"MULTIARCH": triple}.get)
    found = board_machine()
    assert (found[0], found[2]) == (triple, "+neon" if there else "")


def test_other_processors_have_no_neon(monkeypatch):
    system = SimpleNamespace(getauxval=lambda what: 0xFFFF_FFFF)
    monkeypatch.setattr(native.ctypes, "CDLL", lambda name: system)
    for triple in ("mips-linux-gnu", None):
        monkeypatch.setattr(native.sysconfig, "get_config_var", {"MULTIARCH": triple}.get)
        found = board_machine()
        assert (found[0], found[2]) == (triple or sys.platform, "")


@pytest.mark.parametrize(("wants", "named"), [
    ("+zz4,+zz2,+zz1,+zz3", "zz1, zz2, zz3, zz4"),
    ("+zz4,+zz2,+zz1,+zz3,+zz5", "zz1, zz2, zz3, zz4, …"),
])  # fmt: skip
def test_four_missing_features_are_named(host, wants, named):
    with pytest.raises(ModuleError, match=f" that needs {named}$"):
        check_machine(replace(host, features=wants), "m")


@pytest.mark.parametrize("magic", [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\x64\x86"])
def test_what_begins_as_an_object_file_may_be_one(magic):
    check_object(magic.ljust(20, b"\0"), "m")
    for none in (magic.ljust(19, b"\0"), b"!" + magic.ljust(20, b"\0")):
        with pytest.raises(ModuleError, match=f"^m: expected an object file, found {len(none)} b"):
            check_object(none, "m")


def test_an_object_file_that_is_none(host):
    with pytest.raises(ModuleError) as caught:
        NativeLibrary(replace(host, code=b"no object"))
    assert str(caught.value) == "host code: expected an object file, found 9 bytes of b'no o'"


def test_a_program_beyond_the_dram_image():
    config = load_config("tiny")
    program = Program(config, [Finish()], base=4096).to_bytes()
    with pytest.raises(DeviceError) as caught:
        SimDevice(config).load(program, aligned_bytes(1024))
    assert str(caught.value) == (
        "device sim: expected a program that ends by byte 1024 of DRAM, found one that ends at 4128"
    )
