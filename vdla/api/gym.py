"""Designs as an environment of Gymnasium: an action is a design, what is observed its evaluation.

    import gymnasium, vdla.gym
    env = gymnasium.make("vdla/Design-v0", models="digits", space="small", level="model")
    _, _ = env.reset(seed=0)
    observation, reward, _, _, info = env.step(env.action_space.sample())

Needs the extra ``gym``: ``pip install 'vdla[gym]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, log, log1p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.api.exploration import Models, evaluator
from vdla.explore.evaluate import BOUND, EXACT, MODEL, Evaluation, check_objectives
from vdla.explore.space import IllegalError, Point, load_space
from vdla.isa.config import Config
from vdla.names.configs import resolve
from vdla.options.spelling import UsageError
from vdla.support.errors import UserError
from vdla.support.install import pip_install


class GymDependencyError(UserError, ImportError):
    """Gymnasium isn't installed."""


try:
    import gymnasium
except ImportError:
    raise GymDependencyError(
        f"vdla.gym: expected the package gymnasium, found none; {pip_install('gym')}"
    ) from None

ILLEGAL = -10.0  # the reward of a design that can't be built
STEPS = 100  # designs of an episode
MOST = 64.0  # of a logarithm that is observed
Array = NDArray[np.float32]


class DesignEnv(gymnasium.Env[Array, NDArray[np.int64]]):
    """A space of designs for some models.

    An action is the position of each parameter's value. What is observed are the logarithms of one
    and each objective of the last design, and whether it is legal: float32 [objectives + 1], zeros
    for an illegal design. The reward is the sum of the logarithms of how much better than the
    baseline each objective is, and ``ILLEGAL`` for an illegal design. ``info`` is the evaluation,
    as ``vdla evaluate --json`` prints it, with its settings. An episode has ``STEPS`` designs.

    Args:
        models: names or ONNX files.
        space: a bundled space's name or a TOML file.
        objectives: one to three, to be minimized.
        part: what designs have to fit, or "none".
        level: "exact", "model" or "bound".
        baseline: the config that rewards compare with.

    Raises:
        UserError: no such model, space, objective, part, level or baseline; the baseline can't run
            the models.
    """

    def __init__(
        self,
        models: Models = "digits",
        space: str | Path = "small",
        objectives: Sequence[str] = ("cycles", "multipliers"),
        part: str = "none",
        level: str = EXACT,
        baseline: str | Path | Config = "paper",
    ) -> None:
        check_objectives(objectives)
        if level not in (EXACT, MODEL, BOUND):
            raise UsageError(f"level: expected exact, model or bound, found {level}")
        self.space, self.objectives = load_space(space), tuple(objectives)
        judge = replace(evaluator(models, None, part), asked_mhz=self.space.asked_mhz)
        self.judge = {EXACT: judge.exact, MODEL: judge.model, BOUND: judge.bound}[level]
        base = self.judge(resolve(baseline))
        if not base.legal:
            expected = "a baseline that runs the models"
            raise UsageError(f"baseline: expected {expected}, found {base.reasons[0]}")
        self.base = base.vector(self.objectives)
        self.known: dict[Point, Evaluation | str] = {}
        self.steps = 0
        self.action_space = gymnasium.spaces.MultiDiscrete(self.space.shape)
        shape = (len(self.objectives) + 1,)
        self.observation_space = gymnasium.spaces.Box(0.0, MOST, shape, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins an episode: nothing is observed yet."""
        super().reset(seed=seed, options=options)
        self.steps = 0
        return self._observed(None), {}

    def step(self, action: NDArray[np.int64]) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Evaluates a design: what is observed, the reward, False, whether it was the episode's
        last one, and the evaluation."""
        point = tuple(map(int, action))
        self.steps += 1
        result = self._evaluated(point)
        info: dict[str, Any] = {"settings": self.space.settings(point)}
        if isinstance(result, str):
            info |= {"legal": False, "reasons": [result]}
            return self._observed(None), ILLEGAL, False, self.steps >= STEPS, info
        info |= result.to_json()
        vector = result.vector(self.objectives)
        reward = ILLEGAL
        if all(map(isfinite, vector)):
            pairs = zip(self.base, vector, strict=True)
            reward = sum(log((1 + base) / (1 + value)) for base, value in pairs)
        return self._observed(vector), reward, False, self.steps >= STEPS, info

    def _evaluated(self, point: Point) -> Evaluation | str:
        """Evaluation of a design, or the rule that refuses it; each is evaluated once."""
        if point not in self.known:
            try:
                self.known[point] = self.judge(self.space.design(point))
            except IllegalError as error:
                self.known[point] = str(error)
        return self.known[point]

    def _observed(self, vector: Sequence[float] | None) -> Array:
        if vector is None or not all(map(isfinite, vector)):
            return np.zeros(len(self.objectives) + 1, np.float32)
        return np.array([*map(log1p, vector), 1.0], np.float32)


gymnasium.register("vdla/Design-v0", entry_point="vdla.gym:DesignEnv")
