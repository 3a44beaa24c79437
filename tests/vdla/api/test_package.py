"""What vdla.package refuses, and by what words; where its files go."""

from __future__ import annotations

import lzma
from dataclasses import replace

import numpy as np
import onnx
import pytest
from control_models import model, op

import vdla
from vdla.compiler.targets.processor.part import native_code
from vdla.packaging.forms import FORMS
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.plan import Copy, Gpu, Onnx, Open, Outside

X = np.zeros((2, 3), np.float32)


@pytest.fixture
def adder(tmp_path):
    """A file of a network of floats."""
    path = tmp_path / "adder.onnx"
    onnx.save(model([op("Add", "x x", "y")], {"x": X}, ["f y"]), path)
    return path


def refusal(*args, **named) -> str:
    """The line of an error."""
    with pytest.raises(vdla.UserError) as caught:
        vdla.package(*args, **named)
    return str(caught.value)


@pytest.mark.parametrize(("options", "text"), [
    ({"form": "jar"}, "--as: expected one of static, shared, c, wheel, wasm, page, found jar"),
    ({"version": "one"}, "--version: expected one like 1.0 or 2.1rc1, found one"),
    ({"version": "1.0; rm"}, "--version: expected one like 1.0 or 2.1rc1, found 1.0; rm"),
    ({"name": "8bit"}, "--name: expected a name that begins with a letter, and none of boards, "
                       "inner, link, numbers, runtime, vdla, found 8bit"),
    ({"name": "vdla"}, "--name: expected a name that begins with a letter, and none of boards, "
                       "inner, link, numbers, runtime, vdla, found vdla"),
    ({"target": "z80"}, "target: expected one of native, "),
    ({"form": "wasm", "target": "x86_64"},
     "--target: expected wasm32, of which WebAssembly is made, found x86_64"),
    ({"form": "wheel", "target": "wasm32"},
     "--target wasm32: expected a processor under Linux, which loads shared libraries, found "
     "another; --as static makes a library to link"),
    ({"form": "shared", "target": "thumbv7em"}, "--target thumbv7em: expected a processor under "),
    ({"device": "gpu"}, "step y: expected steps of a processor or the accelerator, found one for a "
                        "GPU; compile it for a processor, --device cpu"),
])  # fmt: skip
def test_options(adder, tmp_path, options, text):
    assert refusal(adder, out=tmp_path, **options).startswith(text)
    assert [path.name for path in tmp_path.iterdir()] == ["adder.onnx"]


def test_programs_of_the_accelerator(tmp_path):
    for form in ("wheel", "wasm", "page"):
        target = {"target": "wasm32"} if form != "wheel" else {}
        assert refusal("digits", form=form, config="tiny", out=tmp_path, **target) == (
            f"--as {form}: expected a module for a processor alone, found a program for the "
            "accelerator; --device cpu leaves it out, and static, shared, c take it"
        )
    made = vdla.package("digits", config="tiny", out=tmp_path)
    names = {path.name for path in made.files}
    assert {"boards.h", "uio.c", "serial.c", "vdla.h", "digits.h", "libdigits.a"} <= names
    header = made.files[1].read_text()
    assert "#define DIGITS_COUNTERS 18\n" in header
    assert "#define DIGITS_MEMORY VDLA_MEMORY(0, 2, 0)\n" in header


def test_hosts(tmp_path):
    """A host by its name is the processor that the package is for."""
    for host, board in (("cortex-a9", "pynq-z2"), ("znver4", "ulx3s")):
        made = vdla.package("digits", host=host, board=board, out=tmp_path)
        assert made.target == host
    assert refusal("digits", host="cortex-a9", target="x86_64", board="pynq-z2", out=tmp_path) == (
        "--host cortex-a9: expected the same processor with --target, or no --target, found x86_64"
    )


def test_onnxruntime(tmp_path):
    path = tmp_path / "unique.onnx"
    onnx.save(model([op("Unique", "x", "y")], {"x": X}, ["f y"]), path)
    text = refusal(path, out=tmp_path)
    assert text.startswith(
        "step y.open: expected steps of a processor or the accelerator, found one for "
    )
    assert text.endswith(
        "); no package has that: change the operator in the model, or run the module by `vdla run`"
    )
    assert "for onnxruntime (" in text


TENSORS = {"x": TensorInfo((4,), "float32", 0), "y": TensorInfo((4,), "float32", 64)}


@pytest.mark.parametrize(("step", "text"), [
    (Gpu("a", "f", ("x", "y")), "a GPU; compile it for a processor, --device cpu"),
    (Onnx("a", "m", ("x", "y")),
     "onnxruntime; no package has that: change the operator in the model, or run the module by "
     "`vdla run`"),
    (Open("a", "m", ("x", "y"), ("y",), ("y",)), "onnxruntime; no package has that: change the "
     "operator in the model, or run the module by `vdla run`"),
    (Outside("a", "dsp", "c", ("x", "y")), "dsp, another package's target; leave out --target dsp"),
])  # fmt: skip
def test_steps_of_modules(tmp_path, step, text):
    made = Module(TENSORS, ["x"], ["y"], 128, (step,))
    assert refusal(made, out=tmp_path) == (
        f"step a: expected steps of a processor or the accelerator, found one for {text}"
    )


def test_axes(tmp_path):
    tensors = {name: replace(info, shape=(4, *[1] * 8)) for name, info in TENSORS.items()}
    assert refusal(Module(tensors, ["x"], ["y"], 128, ()), out=tmp_path) == (
        "tensor x: expected at most 8 axes of an input or output, found "
        "float32[4, 1, 1, 1, 1, 1, 1, 1, 1]"
    )


def test_modules_for_other_processors(adder, tmp_path):
    """Code for another processor is made of the text of a module's functions."""
    path = tmp_path / "m.vdla"
    vdla.compile(adder, device="cpu", target="cortex-a9").save(path)
    for options, target in (
        ({}, "cortex-a9"), ({"target": "aarch64-linux"}, "aarch64-linux"),
        ({"form": "wasm"}, "wasm32"), ({"form": "c", "target": "thumbv7em"}, "thumbv7em"),
    ):  # fmt: skip
        assert vdla.package(path, out=tmp_path, **options).target == target
    assert refusal(path, out=tmp_path, turns=3) == (
        f"--turns: expected an ONNX model, found the module {path}"
    )


@pytest.mark.parametrize(("options", "code"), [
    ({"target": "aarch64-linux"}, "cortex-a9"), ({}, "cortex-a9"), ({"form": "c"}, "cortex-a9"),
])  # fmt: skip
def test_modules_without_text(adder, tmp_path, options, code):
    """As somebody may have made them."""
    made = vdla.compile(adder, device="cpu", target="cortex-a9")
    made.host = replace(made.host, source=b"")
    assert refusal(made, out=tmp_path, **options) == (
        "the module: expected the text of its functions, of which other code is made, found code "
        f"for {code} alone; package the model itself"
    )
    plain = vdla.compile(adder, device="cpu", target="wasm32")
    plain.host = replace(plain.host, source=b"")
    assert vdla.package(plain, form="wasm", out=tmp_path).target == "wasm32"


@pytest.mark.parametrize(("source", "text"), [
    (b"other", "functions: expected their text, found Input format not supported by decoder"),
    (lzma.compress(b"{}"), "functions: expected a list of texts, found something else"),
    (lzma.compress(b"[1]"), "functions: expected a list of texts, found something else"),
    (lzma.compress(b"["), "functions: expected their text, found Expecting value"),
    (lzma.compress(b'["func f(x: int8[1]):\\n    mine(x=x[0])"]'),
     "the module: expected functions that any processor runs, found line 2, column 5: expected an "
     "intrinsic"),
])  # fmt: skip
def test_texts_that_are_none(adder, tmp_path, source, text):
    made = vdla.compile(adder, device="cpu")
    made.host = replace(made.host, source=source)
    assert refusal(made, out=tmp_path).startswith(text)


def test_modules_without_code(tmp_path):
    """They run on any processor."""
    made = Module(TENSORS, ["x"], ["x"], 128, ())
    for target in ("thumbv7em", "riscv64-linux"):
        assert vdla.package(made, target=target, name="none", out=tmp_path).target == target


def test_modules_whose_code_is_jumps_alone(tmp_path):
    """Python's runtime has them in compiled code; in C they are the runtime's."""
    host = native_code([], empty=True)
    made = Module(TENSORS, ["x"], ["y"], 128, (Copy("c", ("x", "y")),), host=host)
    for target in ("thumbv7em", "riscv64-linux"):
        assert vdla.package(made, target=target, name="jumps", out=tmp_path).target == target


@pytest.mark.parametrize("form", FORMS)
def test_names(adder, tmp_path, form):
    made = vdla.package(adder, form=form, name="my-adder", out=tmp_path / "a" / "b")
    assert made.name == "my_adder"
    assert all(path.is_file() for path in made.files)
    folder = made.files[0].parent
    assert folder.name == (f"my_adder-{form}-{made.target}" if FORMS[form].folder else "b")


def test_command(vdla, adder, tmp_path):
    done = vdla("package", adder, "--as", "static", "--target", "thumbv7em", "--out", tmp_path)
    assert done.code == 0
    assert "adder for thumbv7em, static" in done.out
    done = vdla("package", adder, "--out", adder)
    assert (done.code, done.err) == (
        2, f"vdla: {adder}: expected a folder to write to, found {adder} to be a file\n"
    )  # fmt: skip
    done = vdla("package", tmp_path / "none.onnx", "--out", tmp_path)
    assert done.code == 2
    assert "none.onnx: expected an ONNX file or one of " in done.err
