"""Random programs with nested control flow, as graphs.

``random_program`` draws a graph from a seed: choices, loops and calls of functions, inside one
another up to DEPTH, among operators on floats, integers and bools; in some of them convolutions and
dense layers between Quantize and Dequantize, which the accelerator takes.

All arithmetic is exact, so that outputs are equal to the bit and conditions on floats never waver:
each float is a multiple of ``2**-places`` and less than ``2**bits``, which the generator keeps
account of. What loops, functions and recursion pass on has the default :class:`Size`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from draws import Draws

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify_whole
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.control import TURN
from vdla.compiler.graph.types import Array, TensorType

DEPTH = 3  # of control nodes inside one another
ELEMENTS = 400  # that a tensor has at most
WIDE = 16  # places and bits that an operator's operand has at most together
NARROW = 8  # those of a factor
FLAG, COUNT = TensorType((), "bool"), TURN
VECTOR, IMAGE = (1, 16), (1, 8, 4, 4)  # shapes of what layers of int8 take
SHAPES = ((), (3,), (2, 3), (3, 3), (4, 3))
LARGE = (64, 48)  # whose loops several threads share
DTYPES = ("float32", "float32", "float32", "int64", "int8", "uint8", "bool")


@dataclass(frozen=True)
class Size:
    """Of floats: they are multiples of ``2**-places``, and no larger than ``2**bits``."""

    places: int = 3
    bits: int = 2

    @property
    def digits(self) -> int:
        """The bits that such a number takes."""
        return self.places + self.bits

    def joined(self, other: Size, places: int = 0, bits: int = 0) -> Size:
        """Of numbers that are of one or of the other, with more places and bits."""
        most = max(self.places, other.places), max(self.bits, other.bits)
        return Size(most[0] + places, most[1] + bits)


PASSED = Size()  # of what is passed on
MOST_PLACES = 20
ROUNDED = Size(30, 0)  # of what isn't exact, which nothing but its own next operators read
NO_SIZE = Size(0, 0)  # of what is no float


@dataclass(frozen=True)
class Signature:
    """Types of what a function takes and gives. One that calls itself counts its first operand
    down."""

    takes: tuple[TensorType, ...]
    gives: tuple[TensorType, ...]
    counts: bool = False


class Program(Draws):
    """What the graphs of one program have in common: random numbers, names, functions.

    ``control`` is the number of control nodes that may still be made.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.control = int(self.rng.integers(2, 6))
        self.layers = 2 if self.chance(0.4) else 0
        self.signatures: dict[str, Signature] = {}
        self.functions: dict[str, Graph] = {}

    def array(self, kind: TensorType) -> Array:
        """Numbers of a type."""
        if kind.dtype == "bool":
            return np.asarray(self.rng.integers(0, 2, kind.shape), bool)
        if kind.dtype == "float32":
            return np.asarray(self.rng.integers(-32, 33, kind.shape) / 8, np.float32)
        least = 0 if kind.dtype == "uint8" else -5
        return np.asarray(self.rng.integers(least, 6, kind.shape), kind.dtype)

    def kind(self) -> TensorType:
        """A type of an input."""
        if self.chance(0.05):
            return TensorType(LARGE, "float32")
        return TensorType(self.pick(SHAPES), self.pick(DTYPES))


@dataclass
class Scope:
    """A graph that grows; ``sizes`` are those of its floats, ``depth`` is how deep it lies in
    others."""

    program: Program
    depth: int = 0
    inputs: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    tensors: dict[str, TensorType] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)

    def graph(self, outputs: Sequence[str], name: str = "", **more) -> Graph:
        """The graph, with some of its tensors as outputs."""
        return Graph(
            tuple(self.inputs), tuple(outputs), tuple(self.nodes), self.tensors, self.constants,
            name or self.program.name("r"), **more,
        )  # fmt: skip

    # Tensors ----------------------------------------------------------------------------------

    def define(self, letter: str, kind: TensorType, size: Size = PASSED) -> str:
        """A new tensor."""
        name = self.program.name(letter)
        self.tensors[name] = TensorType(kind.shape, kind.dtype)
        self.sizes[name] = size if kind.dtype == "float32" else NO_SIZE
        return name

    def given(self, kind: TensorType, size: Size = PASSED) -> str:
        """A new input."""
        name = self.define("x", kind, size)
        self.inputs.append(name)
        return name

    def constant(self, array: Array, size: Size = PASSED) -> str:
        """A new constant."""
        name = self.define("c", TensorType(array.shape, str(array.dtype)), size)
        self.constants[name] = array
        return name

    def number(self, value: float, dtype: str = "float32", size: Size = PASSED) -> str:
        """A constant of one element."""
        return self.constant(np.array(value, dtype), size)

    def add(self, cls: type[Node], kind: TensorType, size: Size = PASSED, **fields) -> str:
        """A node of one result."""
        name = self.define("t", kind, size)
        self.nodes.append(cls(name=self.program.name("n"), output=name, **fields))
        return name

    def of(self, fits: Callable[[TensorType], bool]) -> list[str]:
        """The tensors whose types fit."""
        return [n for n, kind in self.tensors.items() if fits(kind) and self.is_exact(n)]

    def is_exact(self, name: str) -> bool:
        """Whether a tensor has the same elements wherever it is computed."""
        return self.sizes[name].places <= MOST_PLACES

    def any(self, fits: Callable[[TensorType], bool] = lambda kind: True) -> str | None:
        """One of the tensors whose types fit, mostly one of the last; None where there is none."""
        names = self.of(fits)
        return (
            self.program.pick(names[-4:] if self.program.chance(0.6) else names) if names else None
        )

    def value(self, kind: TensorType) -> str:
        """A tensor of a type: one that is there, a constant, or one that is made for it."""
        names = self.of(lambda other: other == kind)
        if names and self.program.chance(0.85):
            return self.program.pick(names[-4:])
        if self.program.chance(0.3) or kind.dtype == "bool":
            return self.constant(self.program.array(kind))
        scalar = self.any(lambda other: other == TensorType((), kind.dtype))
        if scalar is None:
            return self.constant(self.program.array(kind))
        return self.sum_of(scalar, self.constant(self.program.array(kind)))

    def passed(self, name: str) -> str:
        """A tensor of the same type whose floats have the size of what is passed on."""
        kind, size = self.tensors[name], self.sizes[name]
        if size.places > PASSED.places:
            name = self.add(
                ops.Binary, kind, Size(size.places - 3, size.bits + 3), a=name, b=self.number(8),
                function="mul",
            )  # fmt: skip
            size = Size(0, size.bits + 3)
            name = self.add(ops.Unary, kind, size, data=name, function="round")
            size = Size(3, size.bits - 3)
            name = self.add(ops.Binary, kind, size, a=name, b=self.number(0.125), function="mul")
        if size.bits > PASSED.bits:
            name = self.add(ops.Clip, kind, data=name, low=-4.0, high=4.0)
        return name

    def within(self, name: str, digits: int = WIDE) -> str:
        """The tensor, or one of its type whose floats take few enough digits."""
        return name if self.sizes[name].digits <= digits else self.passed(name)

    # Operators --------------------------------------------------------------------------------

    def sum_of(self, a: str, b: str) -> str:
        a, b = self.within(a), self.within(b)
        shape = np.broadcast_shapes(self.tensors[a].shape, self.tensors[b].shape)
        size = self.sizes[a].joined(self.sizes[b], bits=1)
        return self.add(ops.Add, TensorType(shape, self.tensors[a].dtype), size, a=a, b=b)

    def unary(self) -> None:
        x = self.any()
        kind = self.tensors[x]
        if kind.dtype == "bool":
            self.add(ops.Unary, kind, data=x, function="not")
            return
        if kind.dtype == "uint8":
            return
        if kind.dtype != "float32":
            self.add(ops.Unary, kind, data=x, function=self.program.pick(("neg", "abs")))
            return
        function = self.program.pick(("neg", "abs", "floor", "relu", "clip", "tanh", "sigmoid"))
        x = self.within(x)
        size = self.sizes[x]
        if function in ("tanh", "sigmoid"):
            x = self.within(x, 8)
            self.passed(self.add(ops.Unary, kind, ROUNDED, data=x, function=function))
        elif function == "relu":
            self.add(ops.Relu, kind, size, data=x)
        elif function == "clip":
            self.add(ops.Clip, kind, Size(size.places, 1), data=x, low=-2.0, high=1.0)
        elif function == "floor":
            self.add(ops.Unary, kind, Size(0, size.bits + 1), data=x, function=function)
        else:
            self.add(ops.Unary, kind, size, data=x, function=function)

    def binary(self) -> None:
        x = self.any()
        kind = self.tensors[x]
        y = self.any(lambda k: k.dtype == kind.dtype and k.shape in ((), kind.shape))
        y = y or self.value(kind)
        if kind.dtype == "bool":
            self.add(ops.Binary, kind, a=x, b=y, function=self.program.pick(("and", "or", "xor")))
            return
        function = self.program.pick(("add", "add", "sub", "mul", "max", "min"))
        if self.program.chance(0.3):
            x, y = y, x
        if function == "add":
            self.sum_of(x, y)
            return
        x, y = (self.within(n, NARROW if function == "mul" else WIDE) for n in (x, y))
        a, b = self.sizes[x], self.sizes[y]
        size = a.joined(b, bits=int(function == "sub"))
        size = Size(a.places + b.places, a.bits + b.bits) if function == "mul" else size
        self.add(ops.Binary, kind, size, a=x, b=y, function=function)

    def compare(self, name: str | None = None) -> str:
        x = name or self.any(lambda k: k.dtype != "bool") or self.value(COUNT)
        kind = self.tensors[x]
        scalar = TensorType((), kind.dtype)
        y = self.value(scalar) if self.program.chance(0.5) else self.value(kind)
        function = self.program.pick(("lt", "le", "gt", "ge", "eq"))
        return self.add(ops.Binary, TensorType(kind.shape, "bool"), a=x, b=y, function=function)

    def where(self) -> None:
        x = self.any(lambda k: k.dtype != "bool")
        if x is None:
            return
        kind = self.tensors[x]
        condition = self.any(lambda k: k.dtype == "bool" and k.shape in ((), kind.shape))
        condition, y = condition or self.condition(), self.value(kind)
        size = self.sizes[x].joined(self.sizes[y])
        shape = np.broadcast_shapes(self.tensors[condition].shape, kind.shape)
        self.add(ops.Where, TensorType(shape, kind.dtype), size, condition=condition, a=x, b=y)

    def cast(self) -> None:
        x = self.any()
        kind = self.tensors[x]
        if kind.dtype == "bool":
            dtype = self.program.pick(("float32", "int64"))
            self.add(ops.Cast, TensorType(kind.shape, dtype), Size(0, 1), data=x)
        elif kind.dtype == "float32":
            self.add(ops.Cast, TensorType(kind.shape, "int64"), data=self.within(x))
        else:
            x = self.limited(x, 0, 4)
            self.add(ops.Cast, TensorType(kind.shape, "float32"), Size(0, 3), data=x)

    def limited(self, name: str, low: int, high: int) -> str:
        """Integers within bounds."""
        kind = self.tensors[name]
        for function, bound in (("max", low), ("min", high)):
            name = self.add(
                ops.Binary, kind, a=name, b=self.number(bound, kind.dtype), function=function
            )
        return name

    def matmul(self) -> None:
        x = self.any(lambda k: len(k.shape) == 2 and k.dtype == "float32")
        if x is None:
            return
        m, k = self.tensors[x].shape
        y = self.any(lambda o: len(o.shape) == 2 and o.shape[0] == k and o.dtype == "float32")
        y = y or self.value(TensorType((k, 3), "float32"))
        x, y = self.within(x, NARROW), self.within(y, NARROW)
        a, b = self.sizes[x], self.sizes[y]
        size = Size(a.places + b.places, a.bits + b.bits + k.bit_length())
        kind = TensorType((m, self.tensors[y].shape[1]), "float32")
        self.add(ops.MatMul, kind, size, a=x, b=y)

    def reduce(self, name: str | None = None) -> str | None:
        x = name or self.any(lambda k: k.shape and k.dtype in ("float32", "int64"))
        if x is None:
            return None
        x = self.within(x, NARROW)
        kind, size = self.tensors[x], self.sizes[x]
        axes = (
            tuple(range(len(kind.shape))) if name else (self.program.count(1, len(kind.shape)) - 1,)
        )
        keep = not name and self.program.chance(0.5)
        function = self.program.pick(("sum", "max", "min"))
        shape = tuple(
            1 if n in axes else s for n, s in enumerate(kind.shape) if keep or n not in axes
        )
        more = prod(kind.shape).bit_length() if function == "sum" else 0
        return self.add(
            ops.Reduce, TensorType(shape, kind.dtype), Size(size.places, size.bits + more), data=x,
            function=function, axes=axes, keepdims=keep,
        )  # fmt: skip

    def move(self) -> None:
        """Other axes, another shape, several tensors side by side, or a part of one."""
        x = self.any(lambda k: bool(k.shape))
        if x is None:
            return
        kind, size = self.tensors[x], self.sizes[x]
        shape, dtype = kind.shape, kind.dtype
        match self.program.count(0, 3):
            case 0:
                perm = tuple(int(n) for n in self.program.rng.permutation(len(shape)))
                moved = TensorType(tuple(shape[n] for n in perm), dtype)
                self.add(ops.Transpose, moved, size, data=x, perm=perm)
            case 1:
                flat = self.program.pick(((prod(shape),), (prod(shape), 1), (1, *shape)))
                self.add(ops.Reshape, TensorType(flat, dtype), size, data=x)
            case 2 if prod(shape) * 2 <= ELEMENTS:
                y, axis = (
                    self.value(TensorType(shape, dtype)),
                    self.program.count(1, len(shape)) - 1,
                )
                both = tuple(s * (1 + (n == axis)) for n, s in enumerate(shape))
                size = size.joined(self.sizes[y])
                self.add(ops.Concat, TensorType(both, dtype), size, parts=(x, y), axis=axis)
            case _:
                axis = self.program.count(1, len(shape)) - 1
                index = self.limited(self.value(COUNT), 0, shape[axis] - 1)
                left = TensorType((*shape[:axis], *shape[axis + 1 :]), dtype)
                self.add(ops.Gather, left, size, data=x, indices=index, axis=axis)

    def layer(self) -> None:
        """A dense layer or a convolution of int8, between integers of its operands and its
        result."""
        shape = self.program.pick((VECTOR, IMAGE))
        if self.program.layers == 0:
            return
        self.program.layers -= 1
        x = self.any(lambda k: k == TensorType(shape, "float32"))
        x = self.within(x or self.value(TensorType(shape, "float32")))
        x = self.rounded(x, 0.125, Size(3, 5))
        channels = shape[1]
        weights = (channels, channels) if shape == VECTOR else (channels, channels, 3, 3)
        numbers = self.constant(self.program.rng.integers(-3, 4, weights).astype(np.int8))
        kind = TensorType(weights, "float32")
        weight = self.add(
            ops.Dequantize, kind, Size(2, 0), data=numbers, scale=(0.25,), zero_point=(0,)
        )
        more = {} if shape == VECTOR else {
            "strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1),
        }  # fmt: skip
        cls = ops.Dense if shape == VECTOR else ops.Conv2d
        y = self.add(
            cls, TensorType(shape, "float32"), Size(5, 12), data=x, weight=weight, bias=None, **more
        )
        if self.program.chance(0.5):
            y = self.add(ops.Relu, self.tensors[y], Size(5, 12), data=y)
        self.passed(self.rounded(y, 0.25, Size(2, 6)))

    def rounded(self, name: str, scale: float, size: Size) -> str:
        """Floats as integers of 8 bits have them."""
        kind = self.tensors[name]
        dtype, zero = self.program.pick((("int8", 0), ("int8", -3), ("uint8", 128)))
        both = {"scale": (scale,), "zero_point": (zero,)}
        name = self.add(ops.Quantize, TensorType(kind.shape, dtype), data=name, **both)
        return self.add(ops.Dequantize, kind, size, data=name, **both)

    def condition(self) -> str:
        """One bool, perhaps as a vector."""
        flag = self.any(lambda k: k.dtype == "bool" and prod(k.shape) == 1)
        if flag and self.program.chance(0.5):
            return flag
        x = self.any(lambda k: k.dtype in ("float32", "int64")) or self.value(COUNT)
        if self.tensors[x].shape:
            x = self.reduce(x)
        flag = self.compare(x)
        if self.program.chance(0.15):
            return self.add(ops.Reshape, TensorType((1,), "bool"), data=flag)
        return flag

    # Control ----------------------------------------------------------------------------------

    def hold(self, node: ops.Control, sizes: Sequence[Size]) -> None:
        """Appends a node of control, whose results are written down already."""
        self.nodes.append(node)
        self.sizes |= {
            name: size if self.tensors[name].dtype == "float32" else NO_SIZE
            for name, size in zip(node.outputs, sizes, strict=True)
        }

    def results(self, kinds: Iterable[TensorType]) -> dict[str, object]:
        """New tensors as the results of a node of control."""
        first, *others = [self.define("t", kind) for kind in kinds]
        return {"name": self.program.name("n"), "output": first, "others": tuple(others)}

    def inner(self) -> Scope:
        """A graph inside this one."""
        return Scope(self.program, self.depth + 1)

    def captured(self) -> list[str]:
        """Some tensors for a region, perhaps one of them twice."""
        return [self.any() for _ in range(self.program.count(0, 3))]

    def take(self, names: Iterable[str], around: Scope) -> list[str]:
        """New inputs for tensors of the graph around."""
        return [self.given(around.tensors[name], around.sizes[name]) for name in names]

    def choice(self) -> None:
        condition, captured = self.condition(), self.captured()
        scopes = self.inner(), self.inner()
        for scope in scopes:
            scope.take(captured, self)
            scope.grow(self.program.count(0, 3))
        named = [scopes[0].any() for _ in range(self.program.count(1, 3))]
        first = [name or scopes[0].value(self.program.kind()) for name in named]
        if self.program.chance(0.2):
            first.append(first[0])
        kinds = [scopes[0].tensors[name] for name in first]
        second = [scopes[1].value(kind) for kind in kinds]
        pairs = zip(first, second, strict=True)
        sizes = [scopes[0].sizes[a].joined(scopes[1].sizes[b]) for a, b in pairs]
        then, otherwise = scopes[0].graph(first), scopes[1].graph(second)
        operands = (condition, *captured)
        self.hold(
            ops.If(operands=operands, then=then, otherwise=otherwise, **self.results(kinds)), sizes
        )

    def states(self, least: int) -> list[str]:
        """What a loop begins with."""
        names = [self.any() for _ in range(self.program.count(least, 3))]
        names = [name or self.value(self.program.kind()) for name in names]
        if names and self.program.chance(0.4):
            names.append(self.value(self.tensors[names[0]]))  # two that may change places
        return [self.passed(name) for name in names]

    def again(self, states: Sequence[str]) -> list[str]:
        """What the next turn gets: what this one had, in its place or another one's, or anything
        of its type."""
        result = []
        for name in states:
            kind = self.tensors[name]
            alike = [n for n in states if self.tensors[n] == kind and n != name]
            if alike and self.program.chance(0.3):
                result.append(self.program.pick(alike))
            elif self.program.chance(0.15):
                result.append(name)
            else:
                result.append(self.passed(self.value(kind)))
        return result

    def slices(self, turns: int, least: int) -> list[str]:
        """What is stacked in each turn."""
        most = ELEMENTS // turns
        names = [self.any(lambda k: prod(k.shape) <= most) for _ in range(self.program.count(0, 2))]
        names = [name for name in names if name]
        return names or [self.value(FLAG) for _ in range(least)]

    def loop(self) -> None:
        """A While."""
        turns = self.program.count(1, 4)
        states, captured = self.states(0), self.captured()
        go = self.condition() if self.program.chance(0.5) else self.number(1, "bool")
        body = self.inner()
        turn = body.given(COUNT)
        own = body.take(states, self)
        body.take(captured, self)
        body.grow(self.program.count(1, 3))
        more = body.go_on(turn, turns)
        after, slices = body.again(own), body.slices(turns, not states)
        self.close(ops.While, body, (more, *after), slices, (go, *states, *captured), turns, after)

    def go_on(self, turn: str, turns: int) -> str:
        """The condition behind a turn; almost always one that ends the loop within its turns."""
        if self.program.chance(0.02):
            return self.condition()
        if self.program.chance(0.3):
            last = self.number(self.program.count(0, turns - 1), "int64")
        elif self.program.chance(0.5):
            last = self.limited(self.value(COUNT), -1, turns - 1)
        else:
            last = self.number(turns - 1, "int64")
        more = self.add(ops.Binary, FLAG, a=turn, b=last, function="lt")
        flag = self.any(lambda k: k == FLAG) if self.program.chance(0.4) else None
        return self.add(ops.Binary, FLAG, a=more, b=flag, function="and") if flag else more

    def scan(self) -> None:
        first = self.any(lambda k: k.shape and k.shape[0] <= 5)
        turns = self.tensors[first].shape[0] if first else self.program.count(1, 3)
        fitting = self.of(lambda k: k.shape[:1] == (turns,))
        count = self.program.count(0, 3) if fitting else 0
        scanned = [self.program.pick(fitting) for _ in range(count)]
        states, captured = self.states(0), self.captured()
        body = self.inner()
        body.given(COUNT)
        own = body.take(states, self)
        for name in scanned:
            kind = self.tensors[name]
            body.given(TensorType(kind.shape[1:], kind.dtype), self.sizes[name])
        body.take(captured, self)
        body.grow(self.program.count(1, 3))
        after, slices = body.again(own), body.slices(turns, not states)
        operands = (*states, *scanned, *captured)
        self.close(ops.Scan, body, after, slices, operands, turns, after, scanned=count)

    def close(self, cls, body, results, slices, operands, turns, after, **more) -> None:
        """The loop around a body."""
        region = body.graph((*results, *slices))
        kinds = [body.tensors[name] for name in after]
        for name in slices:
            kind = body.tensors[name]
            kinds.append(TensorType((turns, *kind.shape), kind.dtype))
        sizes = [*(PASSED for _ in after), *(body.sizes[name] for name in slices)]
        node = cls(
            operands=tuple(operands), body=region, carried=len(after), turns=turns, **more,
            **self.results(kinds),
        )  # fmt: skip
        self.hold(node, sizes)

    def call(self, name: str = "", count: str = "") -> None:
        """A call of a function; of the one around, with what is left to count."""
        if not self.program.signatures:
            return
        name = name or self.program.pick(self.program.functions)
        signature = self.program.signatures[name]
        operands = [self.passed(self.value(kind)) for kind in signature.takes]
        if signature.counts:
            operands[0] = count or self.limited(operands[0], 0, 3)
        shapes, dtypes = zip(*((k.shape, k.dtype) for k in signature.gives), strict=True)
        node = ops.Call(
            operands=tuple(operands), function=name, shapes=shapes, dtypes=dtypes,
            **self.results(signature.gives),
        )  # fmt: skip
        self.hold(node, [PASSED] * len(shapes))

    # All of it --------------------------------------------------------------------------------

    def grow(self, count: int) -> None:
        """Appends so many operators, or a few more."""
        for _ in range(count):
            if self.program.control and self.depth < DEPTH and self.program.chance(0.5):
                self.program.control -= 1
                makers = [Scope.choice, Scope.loop, Scope.loop, Scope.scan]
                makers += [Scope.call] * 2 * bool(self.program.functions)
            else:
                makers = [
                    Scope.unary, Scope.binary, Scope.binary, Scope.compare, Scope.where, Scope.cast,
                    Scope.matmul, Scope.reduce, Scope.move,
                ]  # fmt: skip
                makers += [Scope.layer] * 4 * bool(self.program.layers)
            if not self.tensors:
                self.value(self.program.kind())
            self.program.pick(makers)(self)


def add_function(program: Program) -> None:
    """A function, which may call those before it."""
    name, scope = program.name("f"), Scope(program, 1)
    takes = tuple(program.kind() for _ in range(program.count(1, 3)))
    names = [scope.given(kind) for kind in takes]
    scope.grow(program.count(1, 3))
    results = [scope.passed(scope.any()) for _ in range(program.count(1, 2))]
    results += names[:1] * program.chance(0.2)
    gives = tuple(scope.tensors[each] for each in results)
    program.signatures[name] = Signature(takes, gives)
    program.functions[name] = scope.graph(results, name)


def add_recursive_functions(program: Program) -> None:
    """A function that calls itself, as often as its first operand says, or two that call
    themselves and one another."""
    names = [program.name("f") for _ in range(program.pick((1, 1, 2)))]
    for name in names:
        takes = (COUNT, *(program.kind() for _ in range(program.count(1, 2))))
        gives = [program.pick((*takes[1:], program.kind())) for _ in range(program.count(1, 2))]
        program.signatures[name] = Signature(takes, tuple(gives), counts=True)
    functions = [recursive_function(program, name, names) for name in names]
    program.functions |= dict(zip(names, functions, strict=True))


def recursive_function(program: Program, name: str, names: Sequence[str]) -> Graph:
    """A function that calls some of several, perhaps twice each time; what it has before a call it
    needs behind it."""
    scope, signature = Scope(program, 1), program.signatures[name]
    inputs = [scope.given(kind) for kind in signature.takes]
    scope.grow(program.count(0, 1))
    again = scope.add(ops.Binary, FLAG, a=inputs[0], b=scope.number(0, "int64"), function="gt")
    captured = [inputs[0], *(scope.any() for _ in range(2)), *inputs[1:]]
    regions = []
    for calls in (program.pick((1, 1, 2)), 0):
        region = scope.inner()
        left = region.take(captured, scope)[0]
        region.grow(program.count(0, 2))
        for _ in range(calls):
            one = region.number(1, "int64")
            less = region.add(ops.Binary, COUNT, a=left, b=one, function="sub")
            region.call(program.pick(names), less)
            region.grow(1)
        results = [region.passed(region.value(kind)) for kind in signature.gives]
        regions.append(region.graph(results))
    node = ops.If(
        operands=(again, *captured),
        then=regions[0],
        otherwise=regions[1],
        **scope.results(signature.gives),
    )
    scope.hold(node, [PASSED] * len(signature.gives))
    return scope.graph(node.outputs, name)


def random_program(seed: int) -> Graph:
    """The graph of a seed."""
    program = Program(seed)
    if program.chance(0.3):
        add_function(program)
    if program.chance(0.3):
        add_recursive_functions(program)
    scope = Scope(program)
    kinds = [program.kind() for _ in range(program.count(1, 3))]
    if program.layers:
        kinds += [TensorType(shape, "float32") for shape in (VECTOR, IMAGE)]
    for kind in kinds:
        scope.given(kind)
    program.control = max(program.control, 1)
    while program.control > 0 and len(scope.nodes) < 12:
        scope.grow(1)
    written = [name for node in scope.nodes for name in node.outputs]
    read = {name for node in scope.nodes for name in node.inputs}
    outputs = [name for name in written if name not in read or program.chance(0.1)]
    outputs = [name for name in outputs if scope.is_exact(name)]
    return verify_whole(scope.graph(outputs, "main", functions=program.functions))


def sample(graph: Graph, seed: int) -> dict[str, Array]:
    """Numbers for the inputs of a program."""
    program = Program(seed)
    return {name: program.array(graph.tensors[name]) for name in graph.inputs}
