"""Arguments and results of captured modules: trees of tensors, constants, other dtypes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import vdla
from vdla.compiler.frontend.errors import ModelError
from vdla.runtime.errors import InputError

torch = pytest.importorskip("torch")
nn = torch.nn


class Pair(NamedTuple):
    left: object
    right: object


class Mixed(nn.Module):
    """Returns tensors, one of them twice, an argument, a parameter, and constants."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(3.0))

    def forward(self, x, kind, pair=None, *, scale=1.0):
        y = x * scale + 1
        if pair is not None:
            y = y + pair["a"] - pair["b"][0]
        text = kind + "!"
        return {
            "y": Pair(y, y), "x": x, "weight": [self.weight], "rows": x.shape[0], "none": None,
            "text": text, "yes": True, "half": 0.5,
        }  # fmt: skip


X = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
PAIR = {"a": torch.ones(3), "b": (torch.full((3,), 2.0),)}


@pytest.fixture(scope="module")
def net():
    return vdla.compile(Mixed().eval(), (X, "kind", PAIR), {"scale": 2.0}, device="cpu")


def test_results_are_those_of_the_module(net):
    result = net(X, "kind", PAIR, scale=2.0)
    expected = Mixed()(X, "kind", PAIR, scale=2.0)
    assert list(result) == list(expected)
    assert isinstance(result["y"], Pair)
    for name in ("left", "right"):
        assert torch.equal(getattr(result["y"], name), getattr(expected["y"], name))
    assert torch.equal(result["x"], X)
    assert torch.equal(result["weight"][0], torch.arange(3.0))
    rest = {"rows": 2, "none": None, "text": "kind!", "yes": True, "half": 0.5}
    assert {name: result[name] for name in rest} == rest


def test_a_check_compares_every_tensor(net):
    assert net.check(X, "kind", PAIR, scale=2.0).relative == 0


def test_arguments_are_not_copied(net):
    arrays = net.captured.arrays((X, "kind", PAIR), {"scale": 2.0})
    (first, *_) = arrays.values()
    assert np.shares_memory(first, X.numpy())


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((X, "kind"), {}, "Mixed: expected arguments (x_orig, 'kind', {'a': pair_a, 'b': "
         "(pair_b_0,)}, scale=2.0), found (Tensor[2, 3], 'kind')"),
        ((X, "other", PAIR), {"scale": 2.0}, "Mixed: expected the argument 'kind' that the module "
         "was captured with, found 'other'"),
        ((X, "kind", PAIR), {"scale": X}, "Mixed: expected the argument 2.0 that the module was "
         "captured with, found Tensor[2, 3]"),
    ],
    ids=["fewer", "constant", "tensor"],
)  # fmt: skip
def test_other_arguments(net, args, kwargs, message):
    with pytest.raises(ModelError) as refusal:
        net(*args, **kwargs)
    assert str(refusal.value) == message


def test_another_shape(net):
    with pytest.raises(InputError) as refusal:
        net(X[:1], "kind", PAIR, scale=2.0)
    assert str(refusal.value) == "input x_orig: expected shape [2, 3], found [1, 3]"


class Sized(nn.Module):
    """Has open sizes, and returns one."""

    def forward(self, x):
        return x.mean(1), x.shape[0]


def test_sizes_stay_open_where_the_example_has_one_row():
    net = vdla.compile(
        Sized().eval(), (torch.ones(1, 4),), sizes={"x": {0: "rows"}}, device="cpu", remembered=2
    )
    for rows in (1, 3, 2, 3):
        x = torch.randn(rows, 4)
        result, size = net(x)
        assert torch.allclose(result, x.mean(1))
        assert size == rows
    assert len(net._ready) == 2
    with pytest.raises(InputError) as refusal:
        net(torch.ones(2, 5))
    assert str(refusal.value) == "input x: expected shape [rows, 4], found [2, 5]"


class Kinds(nn.Module):
    """Takes and returns elements that numpy has not, or in other form."""

    def forward(self, x, z):
        return x * 2, x.float().sum(), torch.view_as_complex(torch.view_as_real(z) * 3)


def test_elements_of_bfloat16_and_complex_ones():
    x = torch.tensor([1.5, -2.25], dtype=torch.bfloat16)
    z = torch.tensor([1 + 2j, 3 - 4j])
    net = vdla.compile(Kinds().eval(), (x, z), device="cpu")
    for result, expected in zip(net(x, z), Kinds()(x, z), strict=True):
        assert result.dtype == expected.dtype
        assert torch.equal(result, expected)
    assert net.check(x, z).relative == 0
