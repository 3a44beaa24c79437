"""Steps of gradient descent: ONNX's preview operators Adagrad, Adam and Momentum.

Operands are a rate R and the number T of the step, then all parameters X, all gradients G, and all
of each memory; results are the new X, and all of each memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vdla.compiler.frontend.converters import TRAINING, converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode

WIDE = "float64"  # of what is one number for all parameters
Move = Callable[["Step", str, str, list[str]], list[str]]


@dataclass(frozen=True)
class Step:
    """A step of one operator: tensors go by their names."""

    view: OnnxNode
    make: Maker

    @property
    def rate(self) -> str:
        """The rate R."""
        return self.make.cast(self.make.reshape(self.view.operand(0), ()), WIDE)

    @property
    def number(self) -> str:
        """The number T of the step."""
        return self.make.cast(self.make.reshape(self.view.operand(1), ()), WIDE)

    def attribute(self, name: str) -> float:
        """An attribute that has no default."""
        if name not in self.view.attributes:
            raise self.view.error(f"attribute {name}", "none")
        return self.view.real(name, 0)

    def power(self, share: float) -> str:
        """A number to the power of T."""
        return self.make.binary("pow", self.make.constant(share, WIDE), self.number)

    def later(self, then: str, first: str | float) -> str:
        """One number where T is above 0, and another in the first step."""
        other = first if isinstance(first, str) else self.make.constant(first, WIDE)
        return self.make.where(self.make.binary("gt", self.number, 0.0), then, other)

    def times(self, data: str, factor: str | float) -> str:
        """A tensor times a number, which takes its element type."""
        if isinstance(factor, str):
            factor = self.make.cast(factor, self.make.kind(data).dtype)
        return self.make.binary("mul", data, factor)

    def plus(self, a: str, b: str | float) -> str:
        """A sum."""
        return self.make.binary("add", a, b)

    def mixed(self, old: str, new: str, share: float) -> str:
        """A mean in which what was has a share."""
        return self.plus(self.times(old, share), self.times(new, 1 - share))

    def less(self, x: str, move: str) -> str:
        """A parameter after its move."""
        return self.make.binary("sub", x, move)

    def run(self, move: Move, memories: int) -> None:
        """Adds the step of each parameter.

        Raises:
            ModelError: the operands aren't as many of each kind, or of one shape and type.
        """
        names, groups = self.view.operands()[2:], 2 + memories
        count, rest = divmod(len(names), groups)
        if rest or not count:
            expected = f"R, T and then {groups} tensors for each parameter"
            raise self.view.error(expected, f"{len(names) + 2} operands")
        self.view.common_dtype(2)
        self.view.real_dtype(2)
        for place in range(count):
            x, g, *kept = names[place::count]
            shapes = {self.make.shape(name) for name in (x, g, *kept)}
            if len(shapes) > 1:
                sizes = " and ".join(str(list(shape)) for shape in sorted(shapes))
                raise self.view.error(f"one shape of all that belongs to {x}", sizes)
            share = self.view.real("norm_coefficient", 0)
            slope = self.plus(self.times(x, share), g) if share else g
            for number, result in enumerate(move(self, x, slope, kept)):
                self.make.result(result, number * count + place)


@converts("Momentum", domain=TRAINING)
def _momentum(view: OnnxNode) -> None:
    """Steps along a sum of gradients, of which all but the first are scaled by beta."""
    mode, step = view.text("mode", ""), Step(view, Maker(view))
    if mode not in ("standard", "nesterov"):
        raise view.error("mode standard or nesterov", mode or "none")
    alpha = step.attribute("alpha")
    share = step.later(step.make.constant(step.attribute("beta"), WIDE), 1)
    rate = step.rate

    def move(step: Step, x: str, slope: str, kept: list[str]) -> list[str]:
        speed = step.plus(step.times(kept[0], alpha), step.times(slope, share))
        ahead = step.plus(slope, step.times(speed, alpha)) if mode == "nesterov" else speed
        return [step.less(x, step.times(ahead, rate)), speed]

    step.run(move, memories=1)


@converts("Adagrad", domain=TRAINING)
def _adagrad(view: OnnxNode) -> None:
    """Steps by the root of the sum of squares."""
    step = Step(view, Maker(view))
    slower = step.plus(step.times(step.number, view.real("decay_factor", 0)), 1.0)
    rate, epsilon = step.make.binary("div", step.rate, slower), view.real("epsilon", 1e-6)

    def move(step: Step, x: str, slope: str, kept: list[str]) -> list[str]:
        square = step.plus(kept[0], step.times(slope, slope))
        root = step.plus(step.make.unary("sqrt", square), epsilon)
        return [step.less(x, step.make.binary("div", step.times(slope, rate), root)), square]

    step.run(move, memories=1)


@converts("Adam", domain=TRAINING)
def _adam(view: OnnxNode) -> None:
    """Steps of the mean gradient by the root of the mean square, of which both begin at 0."""
    step = Step(view, Maker(view))
    make = step.make
    alpha, beta = view.real("alpha", 0.9), view.real("beta", 0.999)
    epsilon, after = view.real("epsilon", 1e-6), view.real("norm_coefficient_post", 0)
    one = make.constant(1, WIDE)
    root = make.unary("sqrt", make.binary("sub", one, step.power(beta)))
    share = make.binary("div", root, make.binary("sub", one, step.power(alpha)))
    rate = step.times(step.later(share, 1), step.rate)

    def move(step: Step, x: str, slope: str, kept: list[str]) -> list[str]:
        mean = step.mixed(kept[0], slope, alpha)
        square = step.mixed(kept[1], step.times(slope, slope), beta)
        root = step.plus(make.unary("sqrt", square), epsilon)
        new = step.less(x, make.binary("div", step.times(mean, rate), root))
        return [step.times(new, 1 - after) if after else new, mean, square]

    step.run(move, memories=2)
