"""docs/compiler.md shows what the compiler writes: every block is lines of a pass's text."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from qdq import QdqModel

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.window import Window
from vdla.compiler.targets.processor.description.processor import find_processor
from vdla.isa.config import load_config

PAGE = Path(__file__).parents[2] / "docs" / "compiler.md"
BLOCK = re.compile(r"^<!-- (\S+): ([^\n]*) -->\n```\n(.*?)```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The texts of both layers after all passes."""
    folder = tmp_path_factory.mktemp("texts")
    compile_for_tiny(folder)
    compile_for_a_processor(folder / "processor")
    return folder


def compile_for_tiny(folder):
    """An int8 convolution with its ReLU, on the accelerator of config tiny."""
    model = QdqModel(0, name="layer")
    image = model.input("image", (1, 4, 6, 6), 0.05)
    model.output(model.conv(image, 4, Window.square(3), activation="Relu", per_channel=False))
    options = Options(dump=folder, records=None)
    compile_graph(import_model(model.model()), load_config("tiny"), options)


def compile_for_a_processor(folder):
    """A float convolution with its ReLU, on a processor with AVX2 and without Winograd."""
    rng = np.random.default_rng(0)
    weight, bias = rng.standard_normal((16, 8, 3, 3)), rng.standard_normal(16)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["y"], "relu"),
        ],
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8, 14, 14))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 16, 14, 14))],
        [
            numpy_helper.from_array(weight.astype(np.float32), "w"),
            numpy_helper.from_array(bias.astype(np.float32), "b"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    processor = find_processor("x86-64-v3,-winograd")
    options = Options(device="cpu", processor=processor, dump=folder)
    compile_graph(import_model(model), load_config("tiny"), options)


def shown(texts, file, pattern):
    """The lines of a text that a pattern picks, whole; of ``count WORD``, how often WORD occurs."""
    lines = (texts / file).read_text().splitlines()
    command, _, word = pattern.partition(" ")
    if command == "count":
        return f"{sum(word in line for line in lines)} {word}\n"
    return "".join(f"{line}\n" for line in lines if re.search(pattern, line))


def test_the_page_is_current(texts):
    page = PAGE.read_text()

    def current(block):
        file, pattern, _ = block.groups()
        return f"<!-- {file}: {pattern} -->\n```\n{shown(texts, file, pattern)}```"

    made, count = BLOCK.subn(current, page)
    assert count == page.count("<!-- ") > 11
    if os.environ.get("VDLA_UPDATE_GOLDEN"):
        PAGE.write_text(made)
    assert PAGE.read_text() == made


def test_its_files_exist():
    """What the page names in backticks with a slash is there, in the compiler or beside it."""
    root = PAGE.parents[1]
    names = set(re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9.]*|[a-z_]+\.py)`", PAGE.read_text()))
    targets = root / "compiler/targets"
    homes = (root, root / "compiler", targets / "accelerator/codegen", targets / "processor")
    missing = [name for name in names if not any((home / name).exists() for home in homes)]
    assert missing == []
    assert len(names) > 15
