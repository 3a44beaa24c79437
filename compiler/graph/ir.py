"""The typed graph: one node per operator, one entry per tensor.

Here is what all operators have in common. Each operator itself is a class of a file in ``ops``: its
fields and what they mean, its typing rule, its meaning in numpy, its plain expression.

Grammar::

    Graph      := inputs outputs nodes tensors constants functions arguments values
    inputs     := tensor*                       names the caller supplies
    outputs    := tensor*                       names the caller reads
    nodes      := Node*                         in an order where every use follows its definition
    tensors    := tensor -> TensorType          every tensor: inputs, constants and results
    constants  := tensor -> array               the tensors known at compile time
    functions  := name -> Graph                 of the outermost graph; called from any region
    arguments  := name -> Value                 inputs that are several tensors, or rows of one;
    values     := name -> Value                 all results, where there are such ones

Operators, each in the first family that takes it, as their classes in ``ops`` say, and steps of
an operator's epilogue; ``python tools/pages.py`` writes these rules::

    Node       := Control      choices, loops and calls, which hold graphs or name one
                | Conversion   where integers begin or end: numbers, or how they lie in memory
                | View         the same bytes at other addresses
                | Integer      from int8 to int8
                | Wide         among integers of 8 and of 32 bits
                | Row          several in a row as one function
                | Foreign      onnxruntime's, or brought by users
                | Stored       from or to a type in which nothing is computed
                | Float        floats alone
                | General      floats, and integers too
    Control    := Call | If | Scan | While
    Conversion := Dequantize | Dequantize16 | FlipSign | Im2col | Pack | Quantize | Quantize16
                | Unpack
    View       := QConcatView | QTakeView | QView
    Integer    := QAdd | QAvgPool | QBatchNorm | QClip | QConcat | QConv2d | QDense | QExchange
                | QInterleave | QInterpolate | QMatMul | QMaxPool | QMaximum | QMinimum | QMultiply
                | QNormalize | QReshape | QSoftmax | QTable | QTake | QTranspose | QTransposeImage
    Wide       := MatMulInteger | QByteSum | QBytes | QGates | QGruReset | QGruState | QLstmCell
                | QLstmState | QNarrow | QWideConv2d | QWideMatMul | QWideNormalize | QWideSum
    Row        := Fused | QAttention
    Foreign    := Custom | External | Open
    Stored     := Decode | Encode
    Float      := AvgPool | BatchNorm | Clip | Conv2d | Dense | DynamicMatMul | Interpolate
                | MaxPool | Relu | Softmax
    General    := Add | ArgReduce | Binary | Cast | Concat | Cumulate | Einsum | Gather
                | GatherElements | GatherND | Interleave | MatMul | Reduce | Reshape
                | ScatterElements | ScatterND | Take | TopK | Transpose | Unary | Where
    Step       := AddStep | TableStep

Every node writes one tensor, but for those of control (``ops/control.py``), which hold graphs of
their own: regions. A region is closed: it reads its inputs and constants alone.

Images are N, C, H, W; convolution weights O, I/groups, KH, KW; dense weights O, I. Pads are (top,
left, bottom, right). Integer nodes work on int8 and follow their ``evaluate`` bit for bit;
``rq(x, s)`` is ``vdla.isa.numbers.rq``: round-half-even of ``x * s``, computed exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from math import prod
from typing import Any, ClassVar, Protocol, Self, TypeVar

from vdla.compiler.graph.axes import Axes
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.runtime.values import Values
from vdla.support.errors import UserError

Known = Container[str]  # the names of constants


class GraphError(UserError):
    """A graph that breaks a rule of this file; says which node or tensor and what was expected.

    ``node`` is the node's name, where one breaks a rule of its own.
    """

    node: str = ""


class Recipe(Protocol):
    """Interface with which an operator writes its function: its operands as tensor expressions."""

    @property
    def out_shape(self) -> Shape:
        """The physical shape the function writes."""

    @property
    def out_dtype(self) -> str:
        """The element type of the operator's output."""

    def block(self, name: str) -> int:
        """Number of channels of a tensor that lie side by side; 0 where none do."""

    def image(self, name: str) -> Callable[[Expr, Expr, Expr, Expr], Expr]:
        """The element of an image at n, c, y, x, however its channels lie."""

    def compute(self, value: Callable[[Expr, Expr, Expr, Expr], Expr], name: str = "out") -> Tensor:
        """The resulting image from its element at n, c, y, x, its channels as its tensor has
        them."""

    def shape(self, name: str) -> Shape:
        """A tensor's logical shape."""

    def dtype(self, name: str) -> str:
        """A tensor's element type."""

    def bits(self, name: str) -> Tensor:
        """A tensor of the graph as an input of unsigned integers: the bits of its elements."""

    def value(self, name: str) -> Array | None:
        """A tensor's value where it is known at compile time."""

    def read(self, name: str, shape: Shape | None = None) -> Tensor:
        """A tensor of the graph as an input, under another dense ``shape`` if one is given."""

    def constant(
        self, suffix: str, array: Array, value_range: tuple[int, int] | None = None
    ) -> Tensor:
        """An array only this function needs; of indices, with the least and greatest that may be
        there, so that any others within can be tried in a search."""

    def part(self, node: Node, keep: str | None = None) -> Tensor:
        """The result of one of several nodes that are one function.

        ``keep`` names a result of an earlier part that is read more than once and so is stored.
        """


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A reader of tensors: an operator, or a step of its epilogue.

    Attributes:
        OPERANDS: the fields that hold tensor names, in calling order.
        COUNTED: where they are a tuple and an optional one, a field with as many as the tuple has.
        PARAMETERS: those of them that hold weights, whose element types are their own.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data",)
    COUNTED: ClassVar[str] = ""
    PARAMETERS: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def own_inputs(self) -> tuple[str, ...]:
        """The tensors that its own fields name, in order; an absent optional one is left out."""
        names: list[str] = []
        for key in self.OPERANDS:
            value = getattr(self, key)
            if isinstance(value, tuple):
                names.extend(value)
            elif value is not None:
                names.append(value)
        return tuple(names)

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the tensors that hold its weights."""
        names = (getattr(self, key) for key in self.PARAMETERS)
        return frozenset(name for name in names if name is not None)

    def renamed(self, names: Mapping[str, str]) -> Self:
        """A copy that reads ``names[t]`` wherever this one reads ``t``; itself where it reads none
        of them under another name."""
        changes: dict[str, Any] = {}
        for key in self.OPERANDS:
            value = getattr(self, key)
            several = isinstance(value, tuple)
            new = tuple(names.get(v, v) for v in value) if several else names.get(value, value)
            if new != value:
                changes[key] = new
        return replace(self, **changes) if changes else self

    @cached_property
    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """The fields that are neither tensor names nor the node's own name, and their values."""
        return tuple((name, getattr(self, name)) for name in self._attribute_names())

    @classmethod
    @cache
    def _attribute_names(cls) -> tuple[str, ...]:
        """The names of the fields that are neither tensor names nor the node's own name."""
        other = {*cls.OPERANDS, "name", "output", "others"}
        return tuple(each.name for each in fields(cls) if each.name not in other)


R = TypeVar("R", bound=Reader)


@dataclass(frozen=True, kw_only=True)
class Node(Reader):
    """An operator.

    Attributes:
        READS, WRITES: the element types of its data and of its result.
        ON_INT8: the same operator on integers, where it and rounding can change places (a largest
            value stays the largest).
        ELEMENTWISE: whether an element of the result needs the same element of its operands alone.
        CONVERTS: what it only converts where integers begin or end: "numbers", "layout" or nothing.
        NOT_ACCELERATED: why an accelerator of int8 tensors has no instruction for it.
        OPERATOR: false for a class that others only derive from.
    """

    READS: ClassVar[frozenset[str]] = frozenset({"float32"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"float32"})
    ON_INT8: ClassVar[type[Node] | None] = None
    ELEMENTWISE: ClassVar[bool] = False
    CONVERTS: ClassVar[str] = ""
    NOT_ACCELERATED: ClassVar[str] = ""
    OPERATOR: ClassVar[bool] = False

    name: str
    output: str

    def __init_subclass__(cls, *, operator: bool = True) -> None:
        super().__init_subclass__()
        cls.OPERATOR = operator
        if operator:
            BY_OP[cls.__name__] = cls

    @property
    def integer(self) -> type[Node] | None:
        """``ON_INT8``, where rounding and this very node can change places."""
        return self.ON_INT8

    @property
    def by_element(self) -> bool:
        """``ELEMENTWISE``, where all elements go the same way."""
        return self.ELEMENTWISE

    # What an operator says of itself ----------------------------------------------------------

    def result_shape(self, shapes: Sequence[Shape]) -> Shape | None:
        """The shape it writes when it reads ``shapes``; None where its output's type says it.

        Raises:
            GraphError: the operands don't fit together.
        """
        raise NotImplementedError

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        """Computes the node with numpy: the result for operands of logical shapes.

        The oracle for all targets; integer operators are exact.
        """
        raise NotImplementedError

    def express(self, recipe: Recipe) -> Tensor:
        """Writes the node as a tensor expression; integers equal ``evaluate``'s."""
        raise NotImplementedError

    def channel_block(self, operands: Sequence[TensorType]) -> int:
        """Number of channels of its result that should lie side by side, for operands of these
        types.

        Args:
            operands: the types of what it reads, as they lie so far.

        Returns:
            0 for N, C, H, W. It then reads its operands as N, C, H, W too; else it must take them
            as they lie.
        """
        return 0

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        """Axes of its operands and its result that go together, for tensors of these shapes; it
        needs all others as they are."""
        return ()

    def absorbs(self, maker: Node) -> bool:
        """Whether what ``maker`` writes may be computed where this operator reads it."""
        return False

    def clipped(self, low: int, high: int) -> Node | None:
        """This operator with its int8 result clipped, bit for bit; None where a clip isn't the last
        thing that it does."""
        return None

    def with_step(self, node: Node) -> Node | None:
        """This operator and ``node``, which alone reads its result, as one, bit for bit; None where
        there is no such operator."""
        return None

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        """Number of operations that it takes, a multiplication and an addition being two; one for
        each element that it writes unless it says otherwise."""
        return prod(result)

    def before_rounding(self, args: Sequence[Array]) -> tuple[Array, Array, Array | int] | None:
        """For an integer operator that onnxruntime computes in float32, what it rounds.

        The exact result before rounding, in steps of the output; the sum of its terms' sizes; and
        the number of float32 operations that lead to it (see ``graph/rounding.py``). Else None.
        """
        return None

    def error(self, expected: str, actual: object) -> GraphError:
        """A rule of its own that it breaks."""
        error = GraphError(f"node {self.name} ({self.op}): expected {expected}, found {actual}")
        error.node = self.name
        return error

    # What all of them share -------------------------------------------------------------------

    @property
    def op(self) -> str:
        """Name of the operator, for people."""
        return type(self).__name__

    @property
    def epilogue(self) -> tuple[Reader, ...]:
        """Steps that its result goes through before it is stored."""
        return ()

    def step_of(self, kind: type[R]) -> R | None:
        """The step of its epilogue that is of a kind."""
        return next((step for step in self.epilogue if isinstance(step, kind)), None)

    @property
    def classes(self) -> tuple[type[Reader], ...]:
        """The classes of which it is made: its own, and those of its epilogue's steps."""
        return (type(self), *map(type, self.epilogue))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """The tensors read, in order: those of its fields, then those of its epilogue."""
        steps = (name for step in self.epilogue for name in step.own_inputs)
        return (*self.own_inputs, *steps)

    @property
    def parameters(self) -> frozenset[str]:
        """The names of the tensors that hold its weights."""
        return super().parameters.union(*(step.parameters for step in self.epilogue))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The tensors written, in order: one, unless the operator holds graphs."""
        return (self.output,)

    @property
    def regions(self) -> tuple[Graph, ...]:
        """The graphs that it holds, which it runs once, several times or not at all."""
        return ()

    @property
    def inner_tensors(self) -> tuple[str, ...]:
        """The tensors that it keeps to itself, which have types: what passes between its parts."""
        return ()

    def values(self) -> dict[str, Any]:
        """Every field's value by its name, to make another node of."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def writing(self, name: str) -> Self:
        """A copy of the node that writes another tensor."""
        return replace(self, output=name)


N = TypeVar("N", bound=Node)
BY_OP: dict[str, type[Node]] = {}  # operators by the names of their classes, as texts have them


@dataclass(frozen=True, kw_only=True)
class IntegerNode(Node, operator=False):
    """An operator from int8 to int8."""

    READS: ClassVar[frozenset[str]] = frozenset({"int8"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8"})


STRICT = "kept on the host by --strict"  # begins the reason why a node stayed float

# --- the graph -----------------------------------------------------------------------------------


@dataclass
class Graph:
    """See the grammar at the top of the file. Passes return a new graph and change none; they share
    arrays."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    tensors: dict[str, TensorType]
    constants: dict[str, Array] = field(default_factory=dict)
    name: str = "graph"
    reasons: dict[str, str] = field(default_factory=dict)  # why a node by its name stayed float
    functions: dict[str, Graph] = field(default_factory=dict)  # that nodes call by their names
    arguments: Values = field(default_factory=dict)  # what inputs are, where they are no tensors
    values: Values = field(default_factory=dict)  # all results, where one is no tensor

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """Tensor to the node that writes it."""
        return {name: node for node in self.nodes for name in node.outputs}

    @cached_property
    def uses(self) -> Mapping[str, tuple[Node, ...]]:
        """Tensor to the nodes that read it, once per read."""
        result: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                result.setdefault(name, []).append(node)
        return {name: tuple(result.get(name, ())) for name in self.tensors}

    def node(self, name: str) -> Node:
        """The node called ``name``."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def of(self, kinds: type[N] | tuple[type[N], ...]) -> list[N]:
        """The nodes of some kinds, in order."""
        return [node for node in self.nodes if isinstance(node, kinds)]

    def activations(self, node: Node) -> tuple[str, ...]:
        """The node's operands that aren't constants."""
        return tuple(name for name in node.inputs if name not in self.constants)

    def copy(
        self,
        nodes: Iterable[Node] | None = None,
        tensors: Mapping[str, TensorType] | None = None,
        constants: Mapping[str, Array] | None = None,
    ) -> Graph:
        """A copy of the graph with other nodes, or with tensors and constants added or replaced."""
        return Graph(
            self.inputs,
            self.outputs,
            self.nodes if nodes is None else tuple(nodes),
            {**self.tensors, **(tensors or {})},
            {**self.constants, **(constants or {})},
            self.name,
            self.reasons,
            self.functions,
            self.arguments,
            self.values,
        )

    def whole(self) -> Iterator[Graph]:
        """The graph itself, then those that its nodes hold, each with those that its own hold."""
        yield self
        for node in self.nodes:
            for region in node.regions:
                yield from region.whole()
