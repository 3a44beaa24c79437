"""Static and shared libraries and sources, as C programs link them, here and on other machines."""

from __future__ import annotations

import os
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from bare_programs import EMULATORS, PackagedProgram
from onnx import TensorProto, helper
from raw_runs import EMULATED, c_compiler, emulation, program, raw, run, wanted

import vdla
from vdla.compiler.targets.processor.description.processor import PROCESSORS
from vdla.packaging.objects import loaded_bytes, runtime_object


def folder_of(made):
    """The folder of a package's files."""
    return made.files[0].parent


@pytest.mark.parametrize("form", ["static", "shared", "c"])
@pytest.mark.parametrize("threads", [(), ("-DTHREADS=2",)])
def test_programs_of_c(digits, tmp_path, form, threads):
    _, given, output = digits
    folder = folder_of(vdla.package("digits", form=form, out=tmp_path))
    path = program("digits", folder, [c_compiler()], *threads)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    assert run([path], given, env=environment) == output
    assert run([path, "twice"], given, env=environment) != b""  # inputs are written over


def test_a_module_that_is_compiled_already(digits, tmp_path):
    module, given, output = digits
    module.save(tmp_path / "my net.vdla")
    made = vdla.package(tmp_path / "my net.vdla", out=tmp_path)
    assert (made.name, made.form) == ("my_net", "static")
    assert run([program("my_net", folder_of(made), [c_compiler()])], given) == output


@pytest.mark.parametrize("target", [name for name in EMULATORS if name != "wasm32"])
@pytest.mark.parametrize("name", ["digits", pytest.param("characters", marks=pytest.mark.long)])
def test_other_machines(tmp_path, name, target):
    """A convolutional network is equal to the bit, and a recurrent one as near as floats are."""
    if EMULATORS[target].absent:
        pytest.skip(EMULATORS[target].absent)
    module = vdla.compile(name, device="cpu")
    inputs = vdla.random_inputs(module, 3)
    given, output = raw(module, inputs), wanted(module, inputs)
    folder = folder_of(vdla.package(name, target=target, out=tmp_path))
    assert folder.name == f"{name}-static-{target}"
    actual = PackagedProgram(name, target, folder, (len(given), len(output))).run(given)
    if name == "digits":
        assert actual == output
    else:
        numbers = (np.frombuffer(data, "f4") for data in (actual, output))
        np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-4)


def float_network(path, rng):
    """A network of floats with what C's library has beside the usual operators."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Erf", ["a"], ["b"]),
        helper.make_node("Sin", ["b"], ["c"]), helper.make_node("Pow", ["c", "two"], ["d"]),
        helper.make_node("Softmax", ["d"], ["e"]), helper.make_node("Atan", ["e"], ["y"]),
        helper.make_node("ReduceSum", ["y"], ["total"], keepdims=0),
    ]  # fmt: skip
    arrays = {"w": rng.standard_normal((64, 40)).astype("float32"), "two": np.float32(2)}
    graph = helper.make_graph(
        nodes, "floats", [info("x", TensorProto.FLOAT, [8, 64])],
        [info("y", TensorProto.FLOAT, [8, 40]), info("total", TensorProto.FLOAT, [])],
        [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in arrays.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


@pytest.mark.parametrize(
    "target", [None, *(pytest.param(t, marks=pytest.mark.long) for t in EMULATED)]
)
def test_floats(tmp_path, target):
    path = tmp_path / "floats.onnx"
    float_network(path, np.random.default_rng(0))
    module = vdla.compile(path, device="cpu")
    inputs = vdla.random_inputs(module)
    compiler, runner = emulation(target) if target else ([c_compiler()], [])
    folder = folder_of(vdla.package(path, target=target, out=tmp_path))
    output = run([*runner, program("floats", folder, compiler)], raw(module, inputs))
    numbers, reference = (np.frombuffer(b, "f4") for b in (output, wanted(module, inputs)))
    np.testing.assert_allclose(numbers, reference, rtol=2e-5, atol=1e-6)


def test_two_networks_in_one_program(tmp_path):
    """Their functions have names of their own, and they share the runtime."""
    folders = [
        folder_of(vdla.package("digits", name=name, out=tmp_path)) for name in ("first", "second")
    ]
    main = tmp_path / "main.c"
    main.write_text(
        '#include "first.h"\n#include "second.h"\n'
        "static _Alignas(64) unsigned char a[FIRST_MEMORY], b[SECOND_MEMORY];\n"
        "int main(void) {\n"
        "  struct vdla *one, *two;\n"
        "  if (first_open(a, sizeof a, 0, &one) || second_open(b, sizeof b, 0, &two)) return 1;\n"
        "  return vdla_run(one) || vdla_run(two);\n"
        "}\n"
    )
    includes = [f"-I{folder}" for folder in folders]
    libraries = [next(folder.glob("*.a")) for folder in folders]
    command = [c_compiler(), *includes, main, *libraries, "-lm", "-lpthread", "-o", tmp_path / "p"]
    subprocess.run(command, check=True)
    assert subprocess.run([tmp_path / "p"]).returncode == 0


def test_a_processor_that_lacks_instructions(tmp_path):
    """A Nehalem has no AVX2: the network says so, and no instruction ends the program."""
    if shutil.which("qemu-x86_64") is None:
        pytest.skip("no qemu-x86_64: see `make qemu`")
    folder = folder_of(vdla.package("digits", target="x86-64-v3", out=tmp_path))
    path = program("digits", folder, [c_compiler()], "-static")
    for cpu, status in (("Nehalem", 2), ("max", 3)):  # then it waits for its input
        done = subprocess.run(["qemu-x86_64", "-cpu", cpu, path], input=b"", capture_output=True)
        assert done.returncode == status, done.stderr
        if status == 2:
            assert done.stderr.decode() == (
                "code: expected code for this processor, found code that needs instructions that "
                "it lacks; package for an older one (--target)\n"
            )


def test_an_archive_has_an_index(tmp_path):
    if shutil.which("ar") is None:
        pytest.skip("no ar")
    folder = folder_of(vdla.package("digits", out=tmp_path))
    done = subprocess.run(
        ["ar", "t", folder / "libdigits.a"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["runtime.o", "digits.o", "digits_functions.o"]


# Bounds of bytes: each is what there was on a day, and 1,024 more.
RUNTIME_BYTES = {"x86_64": 13_684 + 1024, "thumbv7em": 10_771 + 1024}


@pytest.mark.parametrize("target", RUNTIME_BYTES)
def test_the_runtime_is_small(target):
    size = loaded_bytes(runtime_object(PROCESSORS[target]))
    assert RUNTIME_BYTES[target] - 2048 < size <= RUNTIME_BYTES[target]
