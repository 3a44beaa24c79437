"""State that programs change: what is given to them, not what they make."""

from __future__ import annotations

import pytest

from vdla.compiler.frontend.errors import ModelError

torch = pytest.importorskip("torch")
from vdla.compiler.frontend.pytorch.states import check_state  # noqa: E402

nn, ones = torch.nn, torch.ones


class Running(nn.Module):
    """A module that does something with a buffer and an argument."""

    def __init__(self, run):
        super().__init__()
        self.run = run
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        return self.run(self, x)


def assigned(module, x):
    module.total = module.total + x.sum(0)
    return module.total


STATES = {
    "buffer total": [
        lambda module, x: module.total.add_(x.sum(0)),
        lambda module, x: module.total[1:].copy_(x[0, 1:]),
        lambda module, x: module.total.contiguous().reshape(2, 2).t().mul_(2),
        assigned,
    ],
    "argument x": [
        lambda _, x: nn.functional.relu(x, inplace=True),
        lambda _, x: x.contiguous().add_(1),
        lambda _, x: x.chunk(2)[1].fill_(3),
    ],
    "": [
        lambda module, x: x + module.total,
        lambda _, x: nn.functional.relu(x * 2, inplace=True),
        lambda _, x: (x + 1).view(-1)[2:].add_(1),
        lambda _, x: x.clone().zero_(),
        lambda module, _: module.total.repeat(2).mul_(3),
        lambda _, x: nn.functional.batch_norm(x, None, None, training=True),
        lambda module, x: nn.functional.batch_norm(x, module.total, module.total + 1),
    ],
}
CASES = [(run, state) for state, runs in STATES.items() for run in runs]


@pytest.mark.parametrize(("run", "state"), CASES)
def test_only_what_is_given_counts(run, state):
    program = torch.export.export(Running(run).eval(), (ones(4, 4),))
    if not state:
        check_state(program, "Net")
        return
    with pytest.raises(ModelError) as refusal:
        check_state(program, "Net")
    message = f"Net: expected a module without state that a run changes, found {state}, changed by"
    assert str(refusal.value).startswith(message)
    assert f"{__file__}:" in str(refusal.value)
