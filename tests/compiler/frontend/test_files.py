"""Files of models by what their first bytes say, and functions in files of Python."""

from __future__ import annotations

import io
import sys
import zipfile
from textwrap import dedent

import onnx
import pytest

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.files import onnx_file, python_name, write_model
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.frontend.python_files import load_function
from vdla.compiler.models import model_path
from vdla.support.errors import UserError
from vdla.support.install import pip_install


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache folder of this test's own."""
    monkeypatch.setenv("VDLA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def archive(*members):
    """The bytes of a zip file with these members."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w") as file:
        for name in members:
            file.writestr(name, "x")
    return result.getvalue()


KERAS = 'an ONNX file; Keras writes one by model.export("m.onnx", format="onnx")'
KINDS = {
    "gguf": (b"GGUF\3\0\0\0", "expected a model of tensors and operators, found GGUF"),
    "hdf5": (b"\x89HDF\r\n\x1a\n", f"expected {KERAS}, found HDF5"),
    "keras": (archive("model.weights.h5", "config.json"), f"expected {KERAS}, found a Keras"),
    "pickle": (
        archive("net/data.pkl", "net/data/0"),
        "expected a program by torch.export.save, or FILE.py:CLASS, found a pickle by torch.save",
    ),
    "cut": (archive("net/data.pkl")[:-10], "expected a whole file, found a damaged zip: "),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_that_are_not_read_say_what_helps(kind, tmp_path):
    data, message = KINDS[kind]
    path = tmp_path / "model.onnx"  # its name says nothing
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        onnx_file(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_onnx_and_what_is_not_known_stay_as_they_are(tmp_path):
    assert onnx_file(model_path("digits")) == model_path("digits")
    for name, data in (("none.onnx", None), ("x.onnx", b"\0" * 9), ("empty.onnx", b"")):
        if data is not None:
            (tmp_path / name).write_bytes(data)
        assert onnx_file(tmp_path / name) == tmp_path / name
    (tmp_path / "x.zip").write_bytes(archive("readme"))
    assert onnx_file(tmp_path / "x.zip") == tmp_path / "x.zip"


def test_a_translation_is_named_after_its_source_in_messages(cache):
    model = onnx.load(model_path("digits"))
    path = write_model(model, "net.tflite", "net")
    assert path.parent.parent == cache / "translated"
    assert path.name == "net.onnx"
    del model.graph.node[:]
    with pytest.raises(ModelError, match=r"^net\.tflite: expected an ONNX model"):
        import_onnx(write_model(model, "net.tflite", "net"))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("net.py:Net", ("net.py", "Net")),
        ("a/b.py:make", ("a/b.py", "make")),
        ("net.onnx", None),
        ("C:net", None),
        ("net.py", None),
    ],
)
def test_a_name_in_a_file_of_python(text, result):
    split = python_name(text)
    assert (split and (str(split[0]), split[1])) == result


SOURCE = """
    from math import inf

    def double(x):
        return 2 * x

    class Broken:
        def __init__(self):
            raise RuntimeError("no weights")

    def example_inputs():
        return (3.0,)
"""


def test_functions_of_a_file_with_their_arguments(tmp_path):
    path = tmp_path / "own_net.py"
    path.write_text(dedent(SOURCE))
    function, args = load_function(path, "double")
    assert (function(4), args) == (8, (3.0,))
    assert sys.modules.pop("own_net").double is function
    messages = {
        "nothing": f"{path}: expected a class or a function nothing, "
        "found only double, Broken, example_inputs",
        "Broken": f"{path}:Broken: expected Broken() to return without arguments, "
        "found RuntimeError: no weights",
    }
    for name, message in messages.items():
        with pytest.raises(ModelError) as caught:
            load_function(path, name)
        assert str(caught.value) == message


def test_a_file_without_example_or_with_an_error_says_so(tmp_path):
    path = tmp_path / "bare_net.py"
    path.write_text("def net(x):\n    return x\n")
    with pytest.raises(ModelError) as caught:
        load_function(path, "net")
    assert str(caught.value) == (
        f"{path}:net: expected example_inputs() in the file or the class, "
        "which returns a tuple of arguments, found none"
    )
    path.write_text("def net(x:\n")
    with pytest.raises(ModelError, match=r"expected a file of Python that can be imported, found "):
        load_function(path, "net")
    with pytest.raises(ModelError, match="expected a file of Python, found no file"):
        load_function(tmp_path / "none.py", "net")


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(package, tmp_path, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == package or name.startswith("vdla.compiler.frontend."):
            monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / "model"
    if package == "jax":
        path = tmp_path / "lone_net.py"
        path.write_text("def net(x):\n    return x\ndef example_inputs():\n    return (1,)\n")
        model = f"{path}:net"
    else:
        path.write_bytes(archive("m/archive_format"))
        model = path
    from vdla.compiler.frontend.files import onnx_file

    with pytest.raises(UserError) as caught:
        onnx_file(model)
    assert str(caught.value) == (
        f"{model}: expected the package {package}, found none; install with: {pip_install(package)}"
    )
