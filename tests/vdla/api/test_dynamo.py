"""``torch.compile(…, backend="vdla")``."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def fresh():
    """Nothing that an earlier test compiled."""
    torch._dynamo.reset()


def test_a_module_is_compiled_for_each_size_and_anew_when_a_weight_changes():
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    fast = torch.compile(module.eval(), backend="vdla")
    with torch.no_grad():
        for batch in (1, 3, 1):
            x = torch.randn(batch, 6)
            torch.testing.assert_close(fast(x), module(x), rtol=1e-5, atol=1e-5)
        module[2].weight.mul_(2)
        torch.testing.assert_close(fast(x), module(x), rtol=1e-5, atol=1e-5)


def test_numbers_and_breaks_of_the_graph_are_the_callers():
    lines = []

    def function(x, factor):
        y = torch.relu(x) * factor
        lines.append("between")
        torch._dynamo.graph_break()
        return y + x.shape[0], y.sum()

    fast = torch.compile(function, backend="vdla")
    for size, factor in ((3, 2), (4, 5)):
        x = torch.arange(float(size)) - 1
        for result, expected in zip(fast(x, factor), function(x, factor), strict=True):
            torch.testing.assert_close(result, expected)
    assert lines
