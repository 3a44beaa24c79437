"""docs/compiler.md shows what the compiler writes: every block is lines of a pass's text."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from qdq import QdqModel

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.window import Window
from vdla.isa.config import load_config

PAGE = Path(__file__).parents[2] / "docs" / "compiler.md"
BLOCK = re.compile(r"^<!-- (\S+): ([^\n]*) -->\n```\n(.*?)```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A convolution with its ReLU, compiled for tiny; the texts after all passes."""
    model = QdqModel(0, name="layer")
    image = model.input("image", (1, 4, 6, 6), 0.05)
    model.output(model.conv(image, 4, Window.square(3), activation="Relu", per_channel=False))
    folder = tmp_path_factory.mktemp("texts")
    options = Options(dump=folder, records=None)
    compile_graph(import_model(model.model()), load_config("tiny"), options)
    return folder


def shown(texts, file, pattern):
    """The lines of a text that a pattern picks, whole."""
    lines = (texts / file).read_text().splitlines()
    return "".join(f"{line}\n" for line in lines if re.search(pattern, line))


def test_the_page_is_current(texts):
    page = PAGE.read_text()

    def current(block):
        file, pattern, _ = block.groups()
        return f"<!-- {file}: {pattern} -->\n```\n{shown(texts, file, pattern)}```"

    made, count = BLOCK.subn(current, page)
    assert count == page.count("<!-- ") > 6
    if os.environ.get("VDLA_UPDATE_GOLDEN"):
        PAGE.write_text(made)
    assert PAGE.read_text() == made


def test_its_files_exist():
    """What the page names in backticks with a slash is there, in the compiler or beside it."""
    root = PAGE.parents[1]
    names = set(re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9.]*|[a-z_]+\.py)`", PAGE.read_text()))
    homes = (root, root / "compiler", root / "compiler/targets/accelerator/codegen")
    missing = [name for name in names if not any((home / name).exists() for home in homes)]
    assert missing == []
    assert len(names) > 15
