"""Names of nodes after their modules, and lines of a user's Python."""

from __future__ import annotations

import inspect

import pytest

from vdla.compiler.frontend.sources import line_of

torch = pytest.importorskip("torch")
from vdla.compiler.frontend.pytorch.capture import capture  # noqa: E402

nn = torch.nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 1)

    def forward(self, x):
        y = self.conv(x)
        return y.sigmoid() * (y + 1).sigmoid()  # twice


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@pytest.fixture(scope="module")
def nodes():
    return capture(Net().eval(), (torch.ones(1, 2, 4, 4),), {}, None, "Net").model.graph.node


def test_nodes_are_named_after_their_modules(nodes):
    names = [node.name for node in nodes]
    assert len(set(names)) == len(names)
    assert "blocks.0.conv.conv2d" in names
    assert "blocks.1.conv.conv2d_1" in names
    assert sum(name.startswith("blocks.1.sigmoid") for name in names) == 2


def test_nodes_have_the_line_of_the_user(nodes):
    lines, first = inspect.getsourcelines(Block.forward)
    (offset,) = (n for n, line in enumerate(lines) if line.endswith("# twice\n"))
    of_sigmoids = {line_of(node) for node in nodes if node.op_type == "Sigmoid"}
    assert of_sigmoids == {f"{__file__}:{first + offset}, in forward"}
    of_convolutions = {line_of(node) for node in nodes if node.op_type == "Conv"}
    assert of_convolutions == {f"{__file__}:{first + offset - 1}, in forward"}
