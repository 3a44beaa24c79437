"""``vdla.gym``: the evaluator as an environment of Gymnasium."""

from __future__ import annotations

import importlib
import sys
from math import log

import numpy as np
import pytest

import vdla as package
from vdla.options.spelling import UsageError
from vdla.support.install import pip_install

gymnasium = pytest.importorskip("gymnasium")

SPACE = """
base = "tiny"
[parameters]
acc_bytes = [32, 2048, 4096]
block_out = [4, 6]
"""


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    import vdla.gym  # noqa: F401

    path = tmp_path_factory.mktemp("gym") / "mine.toml"
    path.write_text(SPACE)

    def made(**options):
        how = {"space": path, "level": "model", "baseline": "tiny", **options}
        return gymnasium.make("vdla/Design-v0", disable_env_checker=True, **how)

    return made


def test_it_is_an_environment(make):
    from gymnasium.utils.env_checker import check_env

    check_env(make().unwrapped, skip_render_check=True)


def test_a_step_evaluates_a_design(make):
    env = make(objectives=("cycles", "buffer_bytes"))
    observation, info = env.reset(seed=1)
    assert (observation.tolist(), info) == ([0.0, 0.0, 0.0], {})
    observation, reward, over, cut, info = env.step(np.array([2, 0]))
    assert (over, cut) == (False, False)
    want = package.evaluate("digits", "tiny", ["acc_bytes=4096"], level="model")
    base = package.evaluate("digits", "tiny", level="model")
    assert info == {"settings": ["acc_bytes=4096", "block_out=4"], **want.to_json()}
    assert observation == pytest.approx([log(1 + want.total), log(1 + 8192), 1.0])
    better = log((1 + base.total) / (1 + want.total)) + log((1 + 6144) / (1 + 8192))
    assert reward == pytest.approx(better)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ([1, 1], "block_out bytes to be a multiple of port_bytes = 4"),
        ([0, 0], "digits: config tiny: expected buffers that hold one tile of a 3×1 convolution"),
    ],
)
def test_an_illegal_design_is_observed_as_nothing(make, action, reason):
    env = make()
    env.reset()
    observation, reward, _, _, info = env.step(np.array(action))
    assert (observation.tolist(), reward) == ([0.0, 0.0, 0.0], -10.0)
    assert not info["legal"]
    assert info["reasons"][0].startswith(reason)


def test_an_episode_has_an_end(make, monkeypatch):
    monkeypatch.setattr("vdla.api.gym.STEPS", 2)
    env = make()
    env.reset()
    ends = [env.step(np.array([1, 0]))[3] for _ in range(2)]
    assert ends == [False, True]
    env.reset()
    assert not env.step(np.array([1, 0]))[3]


def test_what_it_refuses(make):
    with pytest.raises(UsageError, match="level: expected exact, model or bound, found best"):
        make(level="best")
    with pytest.raises(UsageError, match="baseline: expected a baseline that runs the models"):
        make(baseline="wide")


def test_without_gymnasium_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    for name in ("vdla.gym", "vdla.api.gym"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError) as caught:
        importlib.import_module("vdla.gym")
    text = f"vdla.gym: expected the package gymnasium, found none; {pip_install('gym')}"
    assert str(caught.value) == text
