"""Ways to boards in C, and boards behind them."""

from types import SimpleNamespace

import pytest
from c_boards import Port, Ways, Zynq
from fake_board import FakeLine

from vdla import api
from vdla.isa.config import load_config

TINY = load_config("tiny")


@pytest.fixture(scope="session")
def ways(tmp_path_factory):
    return Ways(tmp_path_factory.mktemp("ways"))


@pytest.fixture(scope="session")
def digits():
    """The module for ``tiny``, inputs, and what the simulator makes of them."""
    module = api.compile("digits", TINY)
    inputs = api.random_inputs(module)
    return SimpleNamespace(module=module, inputs=inputs, run=api.run(module, inputs, "sim"))


@pytest.fixture
def zynq(tmp_path):
    """A Zynq with ``tiny`` on it."""
    made = Zynq(TINY, tmp_path / "root")
    yield made
    made.close()


@pytest.fixture
def uio(ways, zynq):
    """The way to it."""
    reached = ways.uio(zynq.root)
    assert reached.is_open, reached.error
    yield reached
    reached.close()


@pytest.fixture
def port():
    """Pseudo-terminals with boards in Python: ``port(spoil=…)``, as FakeLine takes it."""
    made = []

    def open_port(config=TINY, **options):
        made.append(Port(FakeLine(config, **options)))
        return made[-1]

    yield open_port
    for each in made:
        each.close()
