"""WebAssembly in Node, and a page in a browser."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from control_models import model, op
from raw_runs import raw, run, wanted

import vdla

SCRIPT = Path(__file__).parents[2] / "support/run_wasm.mjs"


def node(made, given: bytes) -> bytes:
    """The bytes of the outputs that a package for WebAssembly gives in Node."""
    if shutil.which("node") is None:
        pytest.skip("no node")
    return run(["node", SCRIPT, made.files[0].parent, made.name], given)


def test_node(digits, tmp_path):
    _, given, output = digits
    made = vdla.package("digits", form="wasm", out=tmp_path)
    assert [path.name for path in made.files] == ["digits.wasm", "vdla.mjs"]
    assert made.files[0].stat().st_size <= 60_000
    assert node(made, given) == output


@pytest.mark.parametrize("name", ["characters", "patches"])
def test_other_networks(name, tmp_path):
    """Recurrent, and a transformer: int8, with floats at the ends."""
    module = vdla.compile(name, device="cpu")
    inputs = vdla.random_inputs(module)
    output = node(vdla.package(name, form="wasm", out=tmp_path), raw(module, inputs))
    reference = wanted(module, inputs)
    numbers = (np.frombuffer(data, "f4") for data in (output, reference))
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["digits", "dqn"])
def test_a_module_for_this_processor(name, tmp_path):
    """Its functions are compiled again, of their text: products of bytes by other instructions."""
    module = vdla.compile(name, device="cpu")
    module.save(tmp_path / "m.vdla")
    inputs = vdla.random_inputs(module, 4)
    made = vdla.package(tmp_path / "m.vdla", form="wasm", out=tmp_path)
    assert node(made, raw(module, inputs)) == wanted(module, inputs)


FUNCTIONS = [
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Log",
    "Sin",
    "Sinh",
    "Sqrt",
    "Tan",
    "Tanh",
    "Sigmoid",
    "Softplus",
    "Floor",
    "Ceil",
    "Round",
    "Neg",
    "Abs",
    "Reciprocal",
    "Gelu",
    "Mish",
]


def test_mathematics_are_javascripts(tmp_path):
    """Each of ONNX's functions of one operand, and powers."""
    nodes = [op(name, "x", f"{name}_y") for name in FUNCTIONS]
    nodes.append(op("Pow", "x e", "Pow_y"))
    names = [*FUNCTIONS, "Pow"]
    x = np.linspace(0.05, 0.95, 37, dtype=np.float32)
    proto = model(nodes, {"x": x}, [f"f {name}_y" for name in names], opset=20, e=np.float32(0.3))
    onnx.save(proto, tmp_path / "functions.onnx")
    module = vdla.compile(tmp_path / "functions.onnx", device="cpu")
    made = vdla.package(tmp_path / "functions.onnx", form="wasm", out=tmp_path)
    for inputs in (
        {"x": x},
        {"x": x + 1},
        {"x": np.array([np.nan, np.inf, -np.inf, 0, -0.0] * 8, "f4")[:37]},
    ):
        numbers = np.frombuffer(node(made, raw(module, inputs)), "f4").reshape(len(names), -1)
        reference = np.frombuffer(wanted(module, inputs), "f4").reshape(len(names), -1)
        for name, one, other in zip(names, numbers, reference, strict=True):
            np.testing.assert_allclose(one, other, rtol=3e-6, atol=1e-6, err_msg=name)


def test_lists(tmp_path):
    x = np.arange(-3, 9, dtype=np.float32).reshape(6, 2)
    nodes = [op("Relu", "x", "r"), op("SplitToSequence", "r n", "parts", axis=0)]
    onnx.save(model(nodes, {"x": x}, ["l parts"], n=np.array([2, 1, 3])), tmp_path / "lists.onnx")
    made = vdla.package(tmp_path / "lists.onnx", form="wasm", out=tmp_path)
    assert node(made, x.tobytes()) == np.maximum(x, 0).tobytes()


# Pages ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page_path(tmp_path_factory):
    """The page of digits."""
    folder = tmp_path_factory.mktemp("page")
    (path,) = vdla.package("digits", form="page", out=folder).files
    return path


STROKES = {  # of digits, in eighths of the canvas
    0: [[(3.5, 1), (2, 2), (2, 6), (3.5, 7), (5.5, 6), (5.5, 2), (3.5, 1)]],
    1: [[(3, 2), (4.2, 1), (4.2, 7)]],
    7: [[(2, 1.2), (6, 1.2), (4, 7)], [(2.8, 4), (5.5, 4)]],
}


def _place(box, point):
    """A point of the browser's page, of one in eighths of a box."""
    x, y = point
    return box["x"] + x / 8 * box["width"], box["y"] + y / 8 * box["height"]


@pytest.mark.parametrize("digit", STROKES)
def test_a_drawn_digit_is_recognized(page_path, open_page, digit):
    page = open_page(page_path, drawn="#outputs tr.best")
    box = page.locator("canvas").bounding_box()
    for stroke in STROKES[digit]:
        page.mouse.move(*_place(box, stroke[0]))
        page.mouse.down()
        for point in stroke[1:]:
            page.mouse.move(*_place(box, point), steps=6)
        page.mouse.up()
    assert page.locator("#outputs tr.best td").first.inner_text() == str(digit)
    assert page.locator("#status").inner_text().endswith(" ms")


def test_a_browser_gives_the_same_bytes(page_path, open_page, digits):
    _, given, output = digits
    page = open_page(page_path, drawn="#outputs tr.best")
    script = """(bytes) => Array.from(new Uint8Array(
      net.run({ image: new Float32Array(new Uint8Array(bytes).buffer) }).logits.buffer))"""
    assert bytes(page.evaluate(script, list(given))) == output


def test_clear(page_path, open_page):
    page = open_page(page_path, drawn="#outputs tr.best")
    blank = page.locator("#outputs").inner_text()
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 200, steps=5)
    page.mouse.up()
    assert page.locator("#outputs").inner_text() != blank
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#outputs").inner_text() == blank


def test_outputs_that_are_pictures(tmp_path, open_page):
    """Of eleven classes of pixels each has a colour; a blank scene has fewer than a drawn one."""
    (path,) = vdla.package("scenes", form="page", out=tmp_path).files
    page = open_page(path, drawn="#outputs canvas")
    colors = """() => {
      const canvas = document.querySelector("#outputs canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const words = new Uint32Array(data.buffer);
      return [canvas.width, canvas.height, new Set(words).size];
    }"""
    *sizes, blank = page.evaluate(colors)
    assert sizes == [32, 32]
    box = page.locator("#inputs canvas").bounding_box()
    page.mouse.move(*_place(box, (2, 2)))
    page.mouse.down()
    page.mouse.move(*_place(box, (2, 5)), steps=9)
    page.mouse.up()
    assert page.evaluate(colors)[2] > 1
    assert blank < 11


def test_inputs_that_are_no_images(tmp_path, open_page):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    proto = model([op("Add", "x y", "sum")], {"x": x, "y": x}, ["f sum"])
    onnx.save(proto, tmp_path / "adder.onnx")
    (path,) = vdla.package(tmp_path / "adder.onnx", form="page", out=tmp_path).files
    page = open_page(path, drawn="#outputs tr")
    for name, text in (("x", "1 2 3 4 5 6"), ("y", "10, 20, 30, 40, 50, 60")):
        page.get_by_label(name).fill(text)
    cells = page.locator("#outputs td:nth-child(2)").all_inner_texts()
    assert cells == ["11.00", "22.00", "33.00", "44.00", "55.00", "66.00"]
    page.get_by_label("x").fill("1 2")
    assert page.locator("#status").inner_text() == "input x: expected 6 elements, found 2"
