"""Random ONNX models with control flow, as exporters write them: ``random_model``.

A model has If, Loop and Scan inside one another up to DEPTH, in the opsets 8 and 11 to 20, among
operators on floats, integers and bools, sequences, optional values, functions and quantized layers.
Each is valid by construction, and floats stay small, so that rounding can't turn a condition.

    Kind(dtype, shape)      a tensor; the first size, or the whole shape, may be None: a run says it
    Items(kinds, each)      a sequence of such tensors; ``kinds`` is None where a run says how many
    Optional(kind, has)     an optional value
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from draws import Draws
from onnx import helper, numpy_helper

DEPTH = 3  # of graphs inside one another
ELEMENTS = 200  # that a tensor has at most
SHAPES = ((), (1,), (3,), (2, 3), (3, 3), (1, 3))
DTYPES = ("float32", "float32", "float32", "int64", "int32", "bool")
WORDS = ("float32", "int64", "int32")  # dtypes of numbers
OLD = 8  # the opset whose Scan has batches


@dataclass(frozen=True)
class Kind:
    """The type of a tensor."""

    dtype: str
    shape: tuple[int | None, ...] | None

    @property
    def is_known(self) -> bool:
        """Whether all its sizes are known, and none is 0."""
        return self.shape is not None and all(self.shape)


@dataclass(frozen=True)
class Items:
    """The type of a sequence."""

    kinds: tuple[Kind, ...] | None
    each: Kind


@dataclass(frozen=True)
class Optional:
    """The type of an optional value."""

    kind: Kind
    has: bool


Any = Kind | Items | Optional
FLAG, COUNT = Kind("bool", ()), Kind("int64", ())


def proto_of(kind: Any, declared: bool = True) -> onnx.TypeProto:
    """The type as a file has it; without sizes if not ``declared``."""
    if isinstance(kind, Items):
        return helper.make_sequence_type_proto(proto_of(Kind(kind.each.dtype, None)))
    if isinstance(kind, Optional):
        return helper.make_optional_type_proto(proto_of(kind.kind, declared))
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind.dtype))
    return helper.make_tensor_type_proto(code, kind.shape if declared else None)


class Program(Draws):
    """What the graphs of one model have in common: random numbers, names, inputs, functions.

    ``control`` is the number of nodes with graphs that may still be made.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.opset = OLD if self.chance(0.05) else self.count(11, 20)
        self.control = self.count(1, 4)
        self.inputs: dict[str, np.ndarray] = {}
        self.functions: dict[str, onnx.FunctionProto] = {}
        self.top: Scope | None = None

    def array(self, kind: Kind) -> np.ndarray:
        """Small numbers of a type."""
        if kind.dtype == "bool":
            return np.asarray(self.rng.integers(0, 2, kind.shape), bool)
        if kind.dtype.startswith("float"):
            return np.asarray(self.rng.integers(-16, 17, kind.shape) / 8, kind.dtype)
        return np.asarray(self.rng.integers(-3, 4, kind.shape), kind.dtype)

    def kind(self) -> Kind:
        """A type of a tensor."""
        return Kind(self.pick(DTYPES), self.pick(SHAPES))


@dataclass
class Scope:
    """A graph that grows; it sees what the graphs around it have."""

    program: Program
    parent: Scope | None = None
    values: dict[str, Any] = field(default_factory=dict)
    given: list[onnx.ValueInfoProto] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """The number of graphs around it."""
        return 0 if self.parent is None else self.parent.depth + 1

    # Values -----------------------------------------------------------------------------------

    def takes(self, kind: Any, declared: bool = True, letter: str = "x", name: str = "") -> str:
        """A new input."""
        name = name or self.program.name(letter)
        self.values[name] = kind
        self.given.append(helper.make_value_info(name, proto_of(kind, declared)))
        return name

    def constant(self, array: np.ndarray) -> str:
        """An initializer, or what a Constant gives."""
        name, kind = self.program.name("c"), Kind(str(array.dtype), array.shape)
        if self.program.chance(0.7):
            self.constants[name] = array
        else:
            tensor = numpy_helper.from_array(array)
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        self.values[name] = kind
        return name

    def numbers(self, value, dtype: str = "int64") -> str:
        """A constant of known numbers."""
        return self.constant(np.array(value, dtype))

    def add(self, op: str, inputs: Sequence[str], kind: Any, **attributes) -> str:
        """A node of one result."""
        return self.add_all(op, inputs, [kind], **attributes)[0]

    def add_all(self, op: str, inputs: Sequence[str], kinds: Sequence[Any], **more) -> list[str]:
        """A node; its results."""
        names = [self.program.name("t") for _ in kinds]
        label = self.program.name("n") if self.program.chance(0.7) else ""
        self.nodes.append(helper.make_node(op, inputs, names, label, **more))
        self.values.update(zip(names, kinds, strict=True))
        return names

    def all(self) -> dict[str, Any]:
        """All values that nodes here may read, the nearest ones last."""
        return {**(self.parent.all() if self.parent else {}), **self.values}

    def any(self, fits: Callable[[Any], bool]) -> str | None:
        """One of the values that fit, mostly one of the last; None where there is none."""
        names = [name for name, kind in self.all().items() if fits(kind)]
        if self.program.chance(0.8):  # what a run computes tells more
            names = [name for name in names if name[0] != "c"] or names
        recent = names[-4:] if self.program.chance(0.6) else names
        return self.program.pick(recent) if names else None

    def tensor(self, *dtypes: str, rank: int = 0) -> str:
        """A tensor of known shape and of one of some dtypes."""
        wanted = dtypes or WORDS

        def fits(kind: Any) -> bool:
            known = isinstance(kind, Kind) and kind.is_known and kind.dtype in wanted
            return known and len(kind.shape or ()) >= rank

        shape = self.program.pick(s for s in SHAPES if len(s) >= rank)
        return self.any(fits) or self.more(Kind(wanted[0], shape))

    def of(self, kind: Kind) -> str:
        """A tensor of a type: one that is there, or a constant."""
        name = self.any(lambda other: other == kind) if self.program.chance(0.85) else None
        return name or self.more(kind)

    def more(self, kind: Kind) -> str:
        """A constant of a type, or a new input of the model."""
        top, array = self, self.program.array(kind)
        while top.parent:
            top = top.parent
        if self.program.chance(0.4) or top is not self.program.top:
            return self.constant(array)
        name = f"in{len(self.program.inputs)}"
        top.takes(kind, name=name)
        self.program.inputs[name] = array
        return name

    def kind(self, name: str) -> Any:
        """The type of a value."""
        return self.all()[name]

    def own(self, name: str) -> str:
        """A value that may be an output of a graph inside a node: a node of this graph makes it."""
        made = {n for node in self.nodes for n in node.output}
        inner = self.parent is not None and name not in made
        if inner and not self.program.chance(0.005):
            return self.add("Identity", [name], self.kind(name))
        return name

    def small(self, name: str) -> str:
        """A tensor of the same type whose numbers are small."""
        kind, program = self.kind(name), self.program
        if kind.dtype == "float32":
            return self.add(program.pick(("Tanh", "Sigmoid", "Tanh")), [name], kind)
        whole = kind.dtype in ("int64", "int32") and program.opset > OLD
        return self.within(name, -7, 7) if whole else name

    def within(self, name: str, low: int, high: int) -> str:
        """Integers between two others, these included."""
        kind = self.kind(name)
        if self.program.opset < 12 or (low == 0 and self.program.chance(0.2)):
            return self.add("Mod", [name, self.numbers(high + 1, kind.dtype)], kind)
        ends = [self.numbers(value, kind.dtype) for value in (low, high)]
        return self.add("Clip", [name, *ends], kind)

    def graph(self, outputs: Sequence[str], declared: bool = True) -> onnx.GraphProto:
        """The graph, with some of its values as outputs."""
        kinds = self.all()
        ends = [helper.make_value_info(n, proto_of(kinds[n], declared)) for n in outputs]
        weights = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        return helper.make_graph(self.nodes, self.program.name("g"), self.given, ends, weights)

    # Operators --------------------------------------------------------------------------------

    def unary(self) -> None:
        x = self.tensor(*WORDS, "bool")
        kind = self.kind(x)
        real = ("Tanh", "Sigmoid", "Neg", "Abs", "Relu")
        ops = {"bool": ("Not",), "float32": real}.get(kind.dtype, ("Neg", "Abs"))
        self.add(self.program.pick(ops), [x], kind)

    def binary(self) -> str:
        x = self.tensor()
        kind, pick = self.kind(x), self.program.pick
        y = self.of(pick((kind, Kind(kind.dtype, ()))))
        op = pick(("Add", "Add", "Sub", "Mul", "Max", "Min"))
        op = "Add" if kind.dtype != "float32" and self.program.opset < 12 else op
        pair = [x, y] if self.program.chance(0.7) else [y, x]
        return self.small(self.add(op, pair, kind))

    def compare(self) -> str:
        """A bool that is computed."""
        x = self.tensor("float32", "int64") if self.program.opset > OLD else self.tensor("float32")
        kind = self.kind(x)
        odd = np.array(self.program.count(-8, 8) / 4 + 0.07, kind.dtype)
        op = self.program.pick(("Less", "Greater"))
        return self.add(op, [self.summed(x), self.constant(odd)], FLAG)

    def summed(self, name: str) -> str:
        """The sum of all elements."""
        kind = self.kind(name)
        return self.add("ReduceSum", [name], Kind(kind.dtype, ()), keepdims=0)

    def where(self) -> None:
        x = self.tensor()
        condition = self.of(self.program.pick((FLAG, Kind("bool", self.kind(x).shape))))
        self.add("Where", [condition, x, self.of(self.kind(x))], self.kind(x))

    def cast(self) -> None:
        x, dtype = self.tensor(), self.program.pick(WORDS)
        code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.add("Cast", [x], Kind(dtype, self.kind(x).shape), to=code)

    def concat(self) -> None:
        x = self.tensor(rank=1)
        kind = self.kind(x)
        shape = (2 * kind.shape[0], *kind.shape[1:])
        if np.prod(shape) <= ELEMENTS:
            self.add("Concat", [x, self.of(kind)], Kind(kind.dtype, shape), axis=0)

    def move(self) -> None:
        x = self.tensor(rank=1)
        dtype, shape = self.kind(x).dtype, self.kind(x).shape
        if self.program.chance(0.5):
            self.add("Transpose", [x], Kind(dtype, shape[::-1]))
        else:
            flat = int(np.prod(shape))
            self.add("Reshape", [x, self.numbers([-1])], Kind(dtype, (flat,)))

    def gather(self) -> None:
        x = self.tensor(rank=1)
        dtype, (size, *rest) = self.kind(x).dtype, self.kind(x).shape
        places = self.program.rng.integers(0, size, self.program.pick(((), (1,), (2,))))
        places = np.asarray(places, np.int64)
        index = self.constant(places)
        if places.shape == () and self.program.chance(0.5) and self.program.opset > OLD:
            index = self.within(self.of(COUNT), 0, size - 1)
        self.add("Gather", [x, index], Kind(dtype, (*places.shape, *rest)), axis=0)

    def matmul(self) -> None:
        x = self.tensor("float32", rank=2)
        m, k = self.kind(x).shape[-2:]
        if len(self.kind(x).shape) == 2:
            y = self.of(Kind("float32", (k, 3)))
            self.small(self.add("MatMul", [x, y], Kind("float32", (m, 3))))

    def shape(self) -> None:
        """A shape that is known; onnxruntime has another one of rows that are none."""
        x = self.any(lambda kind: isinstance(kind, Kind) and kind.is_known)
        if x is not None:
            self.add("Shape", [x], Kind("int64", (len(self.kind(x).shape),)))

    def open(self) -> None:
        """What reads rows of which a run says how many."""
        x = self.any(lambda kind: isinstance(kind, Kind) and not kind.is_known)
        if x is None:
            return
        kind, rest = self.kind(x), None if self.kind(x).shape is None else self.kind(x).shape[1:]
        op = self.program.pick(("sum", "sum", "all", "twice", "twice", "Abs", "Identity"))
        if kind.dtype == "bool":
            self.add("Not", [x], kind)
        elif op in ("Abs", "Identity"):
            self.add(op, [x], kind)
        elif op == "all" or rest is None:
            self.small(self.summed(x))
        elif op == "twice" and self.program.chance(0.1):  # onnxruntime stops where there is none
            self.add("Gather", [x, self.numbers(0)], Kind(kind.dtype, rest), axis=0)
        elif op == "twice":
            self.add("Concat", [x, x], Kind(kind.dtype, (None, *rest)), axis=0)
        elif self.program.opset < 13:
            self.add("ReduceSum", [x], Kind(kind.dtype, rest), axes=[0], keepdims=0)
        else:
            self.add("ReduceSum", [x, self.numbers([0])], Kind(kind.dtype, rest), keepdims=0)

    def prefix(self) -> None:
        """The first rows, as many as only a run knows, or a window from such a start."""
        x = self.tensor(rank=1)
        dtype, (size, *rest) = self.kind(x).dtype, self.kind(x).shape
        start = self.within(self.of(Kind("int64", (1,))), 0, size - 1)
        none = self.numbers([0])
        if self.program.chance(0.5):
            self.add("Slice", [x, none, start, none], Kind(dtype, (None, *rest)))
            return
        end = self.add("Add", [start, self.numbers([1])], Kind("int64", (1,)))
        self.add("Slice", [x, start, end, none], Kind(dtype, (1, *rest)))

    def quantized(self) -> None:
        """A dense layer between Quantize and Dequantize; all scales are powers of two, so that the
        floats of whoever has floats are exact."""
        size = 16
        x = self.of(Kind("float32", (1, size)))
        given = self.rounded(x)
        weights = self.program.rng.integers(-16, 17, (size, size)).astype(np.int8)
        whole = self.dequantized(self.constant(weights), 1 / 64, (size, size))
        made = self.add("MatMul", [given, whole], Kind("float32", (1, size)))
        self.rounded(made)

    def rounded(self, name: str) -> str:
        """A tensor through int8."""
        shape = self.kind(name).shape
        operands = [name, self.numbers(1 / 16, "float32"), self.numbers(0, "int8")]
        q = self.add("QuantizeLinear", operands, Kind("int8", shape))
        return self.dequantized(q, 1 / 16, shape)

    def dequantized(self, name: str, scale: float, shape) -> str:
        """Numbers of int8."""
        operands = [name, self.numbers(scale, "float32"), self.numbers(0, "int8")]
        return self.add("DequantizeLinear", operands, Kind("float32", shape))

    def step(self) -> None:
        """One more operator, or a few."""
        from random_control_nodes import CONTROL, LISTS

        program = self.program
        if program.control and self.depth < DEPTH and program.chance(0.3):
            program.control -= 1
            program.pick(CONTROL if program.opset > OLD else CONTROL[:3])(self)
            return
        plain: list[Callable[[], object]] = [
            self.unary, self.binary, self.binary, self.binary, self.compare, self.cast,
            self.concat, self.move, self.gather, self.matmul, self.shape, self.open, self.open,
        ]  # fmt: skip
        if program.opset > OLD:
            plain += [self.where, self.prefix, self.quantized]
            plain += [lambda run=run: run(self) for run in LISTS] if program.chance(0.5) else []
        program.pick(plain)()

    def steps(self, least: int, most: int) -> None:
        """Several operators."""
        for _ in range(self.program.count(least, most)):
            self.step()


def random_model(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model of a seed, and inputs."""
    program = Program(seed)
    top = program.top = Scope(program)
    for kind in (*(program.kind() for _ in range(program.count(1, 3))), FLAG, COUNT):
        name = top.takes(kind)
        array = np.array(program.count(0, 4)) if kind == COUNT else program.array(kind)
        program.inputs[name] = array
    top.steps(3, 6)
    while program.control:
        top.step()
    top.steps(0, 4)
    made = [n for node in top.nodes for n in node.output if n in top.values]
    own = [name for name in made if not isinstance(top.values[name], Optional)]
    count = min(len(own), program.count(1, 4))
    outputs = sorted({*own[-1:], *(program.pick(own) for _ in range(count))}) if own else []
    graph = top.graph(outputs or [top.add("Identity", [top.given[0].name], top.values["x1"])])
    domains = [helper.make_opsetid("", program.opset), helper.make_opsetid("local", 1)]
    return helper.make_model(
        graph, opset_imports=domains, ir_version=8, functions=list(program.functions.values())
    ), program.inputs
