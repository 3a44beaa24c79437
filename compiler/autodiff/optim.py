"""``vdla.optim``: steps of gradient descent, as functions of parameters, gradients and a state.

adam = vdla.optim.Adam(rate=1e-3)

@vdla.fn
def step(p, state, x, y):
    error, d = vdla.value_and_grad(loss)(p, x, y)
    return error, *adam.step(p, d, state)

state = adam.start(p)
error, p, state = step(p, state, x, y)

Parameters and gradients are arrays of floats in tuples, lists, dicts and dataclasses. All of it is
numpy's functions of elements, which are nodes inside a trace, and work at once outside of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar, cast

import numpy as np

from vdla.compiler.tracing.arrays import Array
from vdla.compiler.tracing.control import Value
from vdla.compiler.tracing.errors import TraceError
from vdla.compiler.tracing.trees import Structure, flatten

T = TypeVar("T")
State = dict[str, Value]
Memory = Mapping[str, Array]  # of one parameter, by names; numpy's arrays outside of a trace
TINY = 1e-30  # a sum of squares that no norm is divided by less than
WEIGHTS = "weights"  # of a state: for each mean, the sum of the weights of its parts


@dataclass(frozen=True)
class Optimizer(ABC):
    """One rule of gradient descent: ``params - rate * (move + decay * params)``.

    Attributes:
        rate: of a step that names no other.
        decay: a number, or one for each parameter, nested as they are.
    """

    rate: float = 1e-2
    decay: Value = 0.0
    MEMORIES: ClassVar[tuple[str, ...]] = ()  # what a state has for each parameter

    def start(self, params: Value) -> State:
        """The state before the first step: zeros of the parameters' shapes and element types."""
        leaves, structure = _floats("start", params)
        zeros: list[Value] = [np.zeros_like(each) for each in leaves]
        means = {name: np.zeros((), np.float32) for name in self.means()}
        return {WEIGHTS: means, **{name: structure.build(zeros) for name in self.MEMORIES}}

    def step(
        self, params: T, gradients: Value, state: State, rate: Value | None = None
    ) -> tuple[T, State]:
        """Parameters and the state after a step.

        Args:
            params: nested arrays of floats.
            gradients: nested as they are.
            state: that of :meth:`start`, or of the step before.
            rate: of this step, a number or one float; by default the optimizer's own.

        Raises:
            TraceError: one is nested in another way, or an array isn't of floats.
        """
        leaves, structure = _floats("parameters", params)
        each_decays = not isinstance(self.decay, int | float)
        decays = (
            _alike("decay", self.decay, structure) if each_decays else [self.decay] * len(leaves)
        )
        slopes = _alike("gradients", gradients, structure)
        before = {n: _alike(f"state {n}", state.get(n), structure) for n in self.MEMORIES}
        known = cast("Memory", state.get(WEIGHTS, {}))
        sums = {n: known[n] * share + (1 - share) for n, share in self.means().items()}
        made: list[Array] = []
        after: dict[str, list[Array]] = {name: [] for name in self.MEMORIES}
        for place, (x, d, decay) in enumerate(zip(leaves, slopes, decays, strict=True)):
            memory = {n: each[place] for n, each in before.items()}
            move, new = self.move(d, memory, {n: _as(each, x) for n, each in sums.items()})
            speed = _as(self.rate if rate is None else rate, x)
            made.append(x - (move + x * decay if decay else move) * speed)
            for name in self.MEMORIES:
                after[name].append(new[name])
        kept = {name: structure.build(each) for name, each in after.items()}
        return cast("T", structure.build(made)), {WEIGHTS: sums, **kept}

    def means(self) -> Mapping[str, float]:
        """Memories that are means, by the weight of what was: they start from 0, so that each is
        divided by the sum of its weights, which loses the same to rounding."""
        return {}

    @abstractmethod
    def move(self, d: Array, memory: Memory, sums: Memory) -> tuple[Array, Memory]:
        """A parameter's move for a rate of 1, and its memory after the step.

        Args:
            d: its gradient.
            memory: by the names in ``MEMORIES``, before the step.
            sums: by the names of :meth:`means`, the sums of weights after the step.
        """


# The rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sgd(Optimizer):
    """Gradient descent; with ``momentum``, along a sum of gradients that fades by it each step.

    With ``nesterov`` a step goes from where that sum leads (Sutskever et al., 2013).
    """

    momentum: float = 0.0
    nesterov: bool = False
    MEMORIES = ("speed",)

    def move(self, d: Array, memory: Memory, sums: Memory) -> tuple[Array, Memory]:
        """The sum of gradients."""
        speed = memory["speed"] * self.momentum + d
        return (speed * self.momentum + d if self.nesterov else speed), {"speed": speed}


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Gradients by the root of the sum of their squares so far (Duchi, Hazan and Singer, 2011)."""

    epsilon: float = 1e-10
    MEMORIES = ("square",)

    def move(self, d: Array, memory: Memory, sums: Memory) -> tuple[Array, Memory]:
        """The gradient by the root of a sum."""
        square = memory["square"] + d * d
        return d / (np.sqrt(square) + self.epsilon), {"square": square}


@dataclass(frozen=True)
class Adam(Optimizer):
    """The mean gradient by the root of the mean square (Kingma and Ba, 2015).

    With ``decay`` it is AdamW (Loshchilov and Hutter, 2019).
    """

    rate: float = 1e-3
    first: float = 0.9  # the share that a mean keeps in a step; beta1
    second: float = 0.999  # and a mean square; beta2
    epsilon: float = 1e-8
    MEMORIES = ("mean", "square")

    def means(self) -> Mapping[str, float]:
        """The weights of what was."""
        return {"mean": self.first, "square": self.second}

    def move(self, d: Array, memory: Memory, sums: Memory) -> tuple[Array, Memory]:
        """The mean by the root of the mean square."""
        mean = memory["mean"] * self.first + d * (1 - self.first)
        square = memory["square"] * self.second + d * d * (1 - self.second)
        root = np.sqrt(square / sums["square"]) + self.epsilon
        return mean / (sums["mean"] * root), {"mean": mean, "square": square}


def clipped(gradients: T, most: float) -> T:
    """Gradients times a number that leaves their norm, of all of them together, ``most`` at most.

    Args:
        gradients: nested arrays of floats.
        most: above 0.
    """
    leaves, structure = _floats("gradients", gradients)
    total = sum((np.sum(each * each) for each in leaves[1:]), np.sum(leaves[0] * leaves[0]))
    share = np.minimum(most / np.sqrt(np.maximum(total, TINY)), 1)
    return cast("T", structure.build([each * share for each in leaves]))


# Nested arrays -----------------------------------------------------------------------------------


def _floats(what: str, value: Value) -> tuple[list[Array], Structure]:
    """The arrays of a nested value, which are of floats; and its nesting."""
    leaves, structure = flatten(value)
    for path, leaf in zip(structure.paths(what), leaves, strict=True):
        dtype = getattr(leaf, "dtype", None)
        if dtype is None or dtype.kind != "f":
            raise TraceError("optim", f"{path} to be an array of floats", dtype or repr(leaf))
    return cast("list[Array]", leaves), structure


def _alike(what: str, value: Value, structure: Structure) -> list[Array]:
    """The parts of a value that is nested as the parameters are."""
    leaves, own = flatten(value)
    if own != structure:
        raise TraceError("optim", f"{what} nested as the parameters are, {structure}", own)
    return cast("list[Array]", leaves)


def _as(value: Value, x: Array) -> Array:
    """A number or an array in the element type of another array."""
    known = cast("Array", value)
    return known if isinstance(value, int | float) else known.astype(x.dtype)
