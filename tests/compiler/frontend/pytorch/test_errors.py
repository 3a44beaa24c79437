"""Modules that can't be taken: one line, with module and line of Python, and nothing else."""

from __future__ import annotations

import inspect

import pytest

import vdla
from vdla.compiler.frontend.errors import ModelError

torch = pytest.importorskip("torch")
nn = torch.nn


@torch.library.custom_op("planted::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Inner(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layers = nn.ModuleList([nn.Identity(), layer])

    def forward(self, x):
        return self.layers[1](self.layers[0](x))


class Svd(nn.Module):
    def forward(self, x):
        return torch.linalg.svd(x)[1]  # here


class Twice(nn.Module):
    def forward(self, x):
        return twice(x)  # here


class Random(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)  # here


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:  # here
            return x
        return -x


class Item(nn.Module):
    def forward(self, x):
        return x[: int(x.sum().item())]  # here


class Printed(nn.Module):
    def forward(self, x):
        print(f"sum {float(x.sum()):.2f}")  # here
        return x + 1


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count.add_(1)  # here
        return x + self.count


class Written(nn.Module):
    def forward(self, x):
        x.view(-1)[0] = 1  # here
        return x


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        self.norm.train()
        return self.norm(x)  # here


class Dropped(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)  # here


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(5, 3)

    def forward(self, x):
        return self.dense(x)  # here


class Numpy(nn.Module):
    def forward(self, x):
        return torch.from_numpy(x.numpy() * 2)  # here


class Raising(nn.Module):
    def forward(self, x):
        raise ValueError("three\nlines\nof text")  # here


class Odd(nn.Module):
    def forward(self, x):
        return {"x": x, "odd": object()}


def line_of(kind):
    """The marked line of a module, as messages name it."""
    lines, first = inspect.getsourcelines(kind)
    (offset,) = (n for n, line in enumerate(lines) if line.rstrip().endswith("# here"))
    return f"{__file__}:{first + offset}, in forward"


TRANSLATED = "expected operators that PyTorch translates to ONNX, found operator "
DECIDED = (
    "expected branches, numbers and sizes that don't depend on a tensor's elements; torch.where "
    "and torch.cond choose by them, found GuardOnDataDependentSymNode: Could not "
)
CAPTURED = "expected a module that torch.export captures, found "
STATELESS = "expected a module without state that a run changes, found "
PLANTED = [
    (Svd, True, f"Inner: {TRANSLATED}aten._linalg_svd.default in module layers.1, LINE"),
    (Twice, True, f"Inner: {TRANSLATED}planted.twice.default in module layers.1, LINE"),
    (Random, False, "Random: node randn_like (RandomNormalLike), LINE: expected a result that "
     "follows from the inputs, found random numbers"),
    (Branch, True, f"Inner: {DECIDED}guard on data-dependent expression Eq(u0, 1), in module "
     "layers.1, at LINE"),
    (Item, False, f"Item: {DECIDED}extract specialized integer from data-dependent expression "
     "TruncToInt(zuf0), at LINE"),
    (Printed, False, f"Printed: {DECIDED}guard on data-dependent expression zuf0, at LINE"),
    (Counter, True, f"Inner: {STATELESS}buffer layers.1.count, changed by operator "
     "aten.add.Tensor in module layers.1, LINE"),
    (Written, False, f"Written: {STATELESS}argument x, changed by operator aten.view.default, "
     "LINE"),
    (Normed, False, f"Normed: {STATELESS}buffer norm.running_mean, changed by operator "
     "aten._native_batch_norm_legit_functional.default in module norm, LINE"),
    (Dropped, True, "Inner: node layers.1.native_dropout (Dropout), LINE: expected "
     "training_mode = 0: vdla runs inference, found 1"),
    (Wide, False, f"Wide: {CAPTURED}RuntimeError: a and b must have same reduction dim, but got "
     "[4, 4] X [5, 3], in module dense, at LINE"),
    (Numpy, False, f"Numpy: {CAPTURED}RuntimeError: .numpy() is not supported for tensor "
     "subclasses, at LINE"),
    (Raising, False, f"Raising: {CAPTURED}ValueError: three, at LINE"),
    (Odd, False, "Odd: expected tensors in tuples, lists, dictionaries and what is registered, as "
     "by torch.export.register_dataclass, found object in its output"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "inside", "message"), PLANTED, ids=lambda v: getattr(v, "__name__", "")
)
def test_a_module_that_is_not_taken(kind, inside, message, capfd):
    module = (Inner(kind()) if inside else kind()).eval()
    with pytest.raises(vdla.UserError) as refusal:
        vdla.compile(module, (torch.ones(4, 4),), device="cpu")
    expected = message.replace("LINE", line_of(kind)) if "LINE" in message else message
    assert str(refusal.value) == expected
    assert capfd.readouterr() == ("", "")


def test_a_module_in_training():
    with pytest.raises(ModelError) as refusal:
        vdla.compile(
            nn.Sequential(nn.Linear(4, 4), nn.Dropout()), (torch.ones(4, 4),), device="cpu"
        )
    assert str(refusal.value) == (
        "Sequential: expected a module in evaluation mode, as by .eval(), found one in training"
    )


def test_a_network_of_floats_needs_calibration():
    with pytest.raises(ModelError) as refusal:
        vdla.compile(nn.Linear(4, 4).eval(), (torch.ones(1, 4),), config="tiny")
    assert str(refusal.value) == (
        'Linear: expected a quantized network; calibration=… quantizes it, device="cpu" takes '
        "floats, found one of floats"
    )


def test_a_size_that_cannot_stay_open(capfd):
    class Fixed(nn.Module):
        def forward(self, x):
            return x.reshape(2, 6)

    with pytest.raises(ModelError) as refusal:
        vdla.compile(Fixed().eval(), (torch.ones(3, 4),), sizes={"x": {0: "rows"}}, device="cpu")
    assert str(refusal.value).startswith(
        "Fixed: expected sizes that can stay open; torch.export.Dim(name, min=2) has no 1, found "
        "ConstraintViolationError: "
    )
    assert "rows" in str(refusal.value)
    assert capfd.readouterr() == ("", "")
