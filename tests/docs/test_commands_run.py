"""The command lines that the README and the how-to pages show do run, one after the other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import matplotlib.pyplot as plt
import numpy as np
import onnx
import pytest
from documented import ROOT, command_lines, context_of, filled
from onnx import TensorProto, helper, numpy_helper
from packages import lay_out

from vdla import api
from vdla.isa.config import load_config
from vdla.options import Quantize

VDLA = str(Path(sys.executable).with_name("vdla"))
SECONDS = 900  # of a line
PAGES = (
    "README.md", "CONTRIBUTING.md", "docs/boards.md", "docs/coming-from.md", "docs/compiler.md",
    "docs/desk-of-boards.md", "docs/faq.md", "docs/from-pytorch.md", "docs/host-time.md",
    "docs/microarchitecture.md", "docs/my-board.md", "docs/onnx.md", "docs/pynq.md",
    "docs/results.md", "docs/timing.md", "docs/transformers.md", "docs/tutorial.md",
    "docs/what-a-change-takes.md", "docs/reference/commands.md", "docs/reference/configs.md",
    "examples/dot8/README.md",
)  # fmt: skip
SHORTER = {  # what a line does, it does less often
    "explore": ("--budget", "2", "--trials", "0"), "lockstep": ("--programs", "5"),
    "tune": ("--trials", "2"),
}  # fmt: skip
WHOLE = "--model"  # of lockstep: a network's program, which has no number
LEFT_OUT = {  # lines that aren't run, by a pattern, and why
    r"(--port|--board ulx3s --log|--device board(?!.*--virtual))": "needs a board",
    r"^vdla board check ": "needs a board, or minutes; tests/vdla/test_board_check.py runs it",
    r"--farm|^vdla (farm|worker) ": "needs a farm; tests/vdla/test_farm.py has one",
    r"synth --board (ulx3s|pynq-z\d$|B)|^vdla synth --board pynq-z1 --config xc7z020$":
        "takes minutes of place and route; tests/boards does it",
    r"lockstep --board B": "of boards whose design has the memory; docs/boards.md runs one",
    r"--no-native": "refuses its module, as the page says",
    r"model\.tflite": "tests/compiler/frontend/tflite runs files of TFLite",
    r"--trace waves": "needs lz4.h, which not every machine has; tests/runtime writes waves",
}  # fmt: skip


def whole(line) -> bool:
    """Whether a line says all that its command needs, as those in sentences may not."""
    try:
        context_of(line.words[1:])
    except click.ClickException:
        return line.block
    return "…" not in line.words


def lines_of(pages):
    """The lines of some pages that can be run, each once: it is its first page's."""
    seen, result = set(), {page: [] for page in pages}
    for line in (line for page in pages for line in command_lines(page)):
        text = str(line)
        if line.words[0] == "vdla" and text not in seen and whole(line):
            seen.add(text)
            if not any(re.search(each, text) for each in LEFT_OUT):
                result[line.page].append(line)
    return {page: lines for page, lines in result.items() if lines}


LINES = lines_of(PAGES)


def network(path: Path) -> None:
    """A convolution and a dense layer of floats, for pictures as those of digits."""
    draw = np.random.default_rng(0)

    def weights(name, *shape):
        return numpy_helper.from_array(draw.normal(0, 0.2, shape).astype(np.float32), name)

    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["image", "w1", "b1"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("Flatten", ["r"], ["f"]),
            helper.make_node("Gemm", ["f", "w2", "b2"], ["logits"]),
        ],
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 1, 8, 8))],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, (1, 10))],
        [weights("w1", 16, 1, 3, 3), weights("b1", 16), weights("w2", 1024, 10), weights("b2", 10)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


NET = """
import numpy as np
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.dense = torch.nn.Conv2d(1, 16, 3), torch.nn.Linear(576, 10)

    def forward(self, image):
        return self.dense(self.conv(image).flatten(1))

    def example_inputs(self):
        return (torch.zeros(1, 1, 8, 8),)


def forward(image):
    return image.mean((2, 3))


def example_inputs():
    return (np.zeros((1, 1, 8, 8), np.float32),)
"""


def programs(folder: Path) -> None:
    """A file of Python, and a PyTorch program."""
    import torch

    (folder / "net.py").write_text(NET)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()
    torch.export.save(torch.export.export(module, (torch.zeros(1, 1, 8, 8),)), folder / "net.pt2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    network(tmp_path / "model.onnx")
    programs(tmp_path)
    pictures = np.random.default_rng(1).normal(0, 1, (8, 1, 8, 8)).astype(np.float32)
    np.savez("samples.npz", image=pictures)
    np.savez("x.npz", image=pictures[:1])
    (tmp_path / "images").mkdir()
    plt.imsave("images/0.png", pictures[0, 0], cmap="gray")
    api.quantize("model.onnx", "model.int8.onnx", Quantize(calibration="samples.npz"))
    shutil.copy("model.int8.onnx", "YOUR.int8.onnx")
    module = api.compile("digits")
    for name in ("M.vdla", "model.vdla"):
        module.save(name)
    Path("mine.toml").write_text(load_config("paper").to_toml().replace('"paper"', '"mine"'))
    code = (ROOT / "docs" / "compiler.md").read_text().split("(`vdla/kernels/user.py`):\n\n")[1]
    own = re.match(r"(?: {4}.*\n|\n(?= {4}))+", code)[0].replace("\n    ", "\n")[4:]
    Path("own.py").write_text(own.replace("512", "64"))
    Path("isa").mkdir()
    Path("compiler").symlink_to(ROOT / "compiler")
    lay_out(tmp_path / "site")
    return tmp_path


def problem(line, folder: Path) -> str | None:
    """What a line prints that doesn't end well."""
    words = filled(line.words[1:])
    shorter = () if WHOLE in words else SHORTER.get(words[0], ())
    try:
        done = subprocess.run(
            [VDLA, *words, *shorter], cwd=folder, timeout=SECONDS,
            capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(folder / "site")},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"expected it to end within {SECONDS} s"
    return done.stderr[-500:] if done.returncode else None


@pytest.mark.long
@pytest.mark.parametrize(("page", "lines"), LINES.items(), ids=LINES)
def test_command_lines_run(page, lines, folder):
    wrong = [f"{line.where}: {line}: {why}" for line in lines if (why := problem(line, folder))]
    assert wrong == []


def test_every_exception_is_of_a_line():
    every = [str(line) for page in PAGES for line in command_lines(page)]
    assert [each for each in LEFT_OUT if not any(re.search(each, text) for text in every)] == []
