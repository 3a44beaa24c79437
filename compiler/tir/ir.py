"""The loop-level IR: the program between tensor expressions and code for accelerator or CPU.

Grammar (every node is an immutable dataclass of the same name)::

    PrimFunc  ::= PrimFunc(name, params: Buffer*, body: Stmt)
    Buffer    ::= Buffer(name, shape: int*, dtype, scope, copies: int, value_range, alignments)
                    scope: "global" | "vdla.acc" | ...; copies: what steps of a loop take in turn;
                    value_range: (int, int) | None, what the caller promises of a parameter;
                    alignments: (dimension, factor, offset)*, its stride is offset modulo factor

    Stmt      ::= For(var, extent: int, kind, body, thread_tag, annotations)
                    kind: serial | parallel | vectorized | unrolled | thread | vthread
                | Block(name, iters: BlockIter*, reads: Region*, writes: Region*,
                        body, init: Stmt | None, predicate: Expr)
                | Alloc(buffer, body)
                | Store(buffer, indices: Expr*, value)
                | If(cond, then, orelse: Stmt | None)
                | Seq(stmts: Stmt*)
                | Evaluate(call: IntrinCall)
                | Prefetch(region: Region)
    BlockIter ::= BlockIter(var, extent: int, kind: spatial | reduce, binding: Expr)
    Region    ::= BufferRegion(buffer, ranges: (low: Expr, extent: int)*)
    IntrinCall::= IntrinCall(intrin, operands: BufferRef*, params: {name: Expr}, first: Expr | None)

    Expr      ::= Const(value, dtype) | Var(name, dtype)
                | Binary(op, a, b) | Not(a) | Select(cond, a, b) | Cast(a, dtype)
                | Load(buffer, indices: Expr*) | Call(op, args, dtype)
    op        ::= add sub mul div floordiv floormod min max shl shr  (operands and result alike)
                | lt le gt ge eq ne                                  (bool)
                | and or                                             (bool, bool -> bool)
                | bitand bitor bitxor                                (integers)
    dtype     ::= bool int8 uint8 int16 int32 int64 float32 float64

Rules of meaning:

- A loop runs its variable over 0 .. extent-1. Every loop variable is an int32 and is bound once.
- A vthread loop with the annotation ``threads`` deals its steps to that many virtual threads in
  turn; without it each step is a thread. A thread loop's steps run in any order; the targets here
  run them one after another.
- A Block runs its body for the values its iterators are bound to, if its predicate (over the
  enclosing loops) holds. Its init runs first whenever every reduce iterator is 0. The body may
  mention the iterators and also the loops around the block.
- Regions are boxes of elements that cover every access of the block. They speak of the block's
  iterators and of the loops around it.
- A Prefetch changes nothing; its region may leave the buffer.
- Integers wrap; floordiv and floormod round towards minus infinity; shr is arithmetic for signed
  integers. Select evaluates the chosen side only, so the other one may load out of bounds.
- Call("rq", acc, scale) requantizes exactly: see ``ops.requantize``.
- An IntrinCall does what its intrinsic's behaviour says on the elements from each operand's lowest
  corner on; ``first`` is the condition under which the behaviour's init runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from vdla.compiler.tir.intrin import TensorIntrin

INT_RANGES: dict[str, tuple[int, int]] = {
    "bool": (0, 1),
    "int8": (-(1 << 7), (1 << 7) - 1),
    "uint8": (0, (1 << 8) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
FLOATS = ("float32", "float64")
DTYPES = (*INT_RANGES, *FLOATS)

ARITHMETIC = ("add", "sub", "mul", "div", "floordiv", "floormod", "min", "max", "shl", "shr")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
LOGIC = ("and", "or")
BITWISE = ("bitand", "bitor", "bitxor")
BINARY_OPS = (*ARITHMETIC, *COMPARISONS, *LOGIC, *BITWISE)
COMMUTATIVE = ("add", "mul", "min", "max", "eq", "ne", "and", "or", "bitand", "bitor", "bitxor")

FLOAT_CALLS = ("exp", "sqrt", "rint", "floor", "tanh", "erf", "log", "pow")
CALLS = (*FLOAT_CALLS, "abs", "rq")
THREADS = "threads"  # annotation of a vthread loop: how many threads its steps are dealt to
LOOP_KINDS = ("serial", "parallel", "vectorized", "unrolled", "thread", "vthread")

ExprLike = Union["Expr", int, float, bool]
Pragma = int | float | str | bool


class IRError(Exception):
    """The tree is not well formed; the message says what, and where.

    ``stmt`` is the innermost statement that is concerned, where ``verify`` found it.
    """

    stmt: Stmt | None = None


def is_float(dtype: str) -> bool:
    """Whether a dtype is one of ``FLOATS``."""
    return dtype in FLOATS


def is_int(dtype: str) -> bool:
    """Whether a dtype is one of integers; bool is not."""
    return dtype in INT_RANGES and dtype != "bool"


class Expr:
    """Base of expressions: pure values, built by Python's operators.

    ``a == b`` compares two expressions as trees and gives a Python bool; ``a.equal(b)`` is the
    expression that compares their values.
    """

    __slots__ = ()

    @property
    def dtype(self) -> str:
        """The type of the value, one of ``DTYPES``."""
        raise NotImplementedError

    def astype(self, dtype: str) -> Expr:
        """The value as another dtype; itself where it has that one.

        Integers wrap; floats become integers by dropping the fraction.
        """
        return cast(self, dtype)

    def equal(self, other: ExprLike) -> Expr:
        """The expression of whether both values are equal, a bool."""
        return binary("eq", self, other)

    def not_equal(self, other: ExprLike) -> Expr:
        """The expression of whether both values differ, a bool."""
        return binary("ne", self, other)

    def __add__(self, other: ExprLike) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return binary("sub", other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return binary("mul", self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return binary("mul", other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return binary("div", self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return binary("div", other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return binary("floordiv", other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return binary("floormod", self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return binary("floormod", other, self)

    def __lshift__(self, other: ExprLike) -> Expr:
        return binary("shl", self, other)

    def __rshift__(self, other: ExprLike) -> Expr:
        return binary("shr", self, other)

    def __lt__(self, other: ExprLike) -> Expr:
        return binary("lt", self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return binary("le", self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return binary("gt", self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return binary("ge", self, other)

    def __and__(self, other: ExprLike) -> Expr:
        return binary("and" if self.dtype == "bool" else "bitand", self, other)

    def __or__(self, other: ExprLike) -> Expr:
        return binary("or" if self.dtype == "bool" else "bitor", self, other)

    def __xor__(self, other: ExprLike) -> Expr:
        return binary("bitxor", self, other)

    def __invert__(self) -> Expr:
        return Not(self)

    def __neg__(self) -> Expr:
        return binary("sub", 0, self)

    def __bool__(self) -> bool:
        raise TypeError(
            "an expression has no truth value; use te.all, te.any, te.if_then_else or .equal()"
        )


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A number of a dtype; an integer lies in the dtype's range."""

    value: int | float
    type: str

    def __post_init__(self) -> None:
        _check_const(self.value, self.type)

    @property
    def dtype(self) -> str:
        """The constant's type."""
        return self.type


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A named value; two variables are the same only if they are one object."""

    name: str
    type: str = "int32"

    @property
    def dtype(self) -> str:
        """The variable's type."""
        return self.type


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """``a op b`` for one of ``BINARY_OPS``; both operands have the same dtype."""

    op: str
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        if self.op not in BINARY_OPS:
            raise IRError(f"expected a binary operator ({' '.join(BINARY_OPS)}), found {self.op!r}")
        if self.a.dtype != self.b.dtype:
            raise IRError(
                f"{self.op}: expected operands of one dtype, found "
                f"{self.a.dtype} and {self.b.dtype}; cast one of them"
            )
        _check_operand(self.op, self.a.dtype)

    @property
    def dtype(self) -> str:
        """That of the operands; bool for comparisons and logic."""
        if self.op in COMPARISONS or self.op in LOGIC:
            return "bool"
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """The negation of a bool."""

    a: Expr

    def __post_init__(self) -> None:
        if self.a.dtype != "bool":
            raise IRError(f"not: expected a bool, found {self.a.dtype}")

    @property
    def dtype(self) -> str:
        """Always bool."""
        return "bool"


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """``a`` where the bool ``cond`` holds, else ``b``; only the chosen one is evaluated."""

    cond: Expr
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        if self.cond.dtype != "bool":
            raise IRError(f"select: expected a bool condition, found {self.cond.dtype}")
        if self.a.dtype != self.b.dtype:
            raise IRError(
                f"select: expected two values of one dtype, found "
                f"{self.a.dtype} and {self.b.dtype}; cast one of them"
            )

    @property
    def dtype(self) -> str:
        """That of both values."""
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A value as another dtype: integers wrap, floats become integers by dropping the fraction."""

    a: Expr
    type: str

    @property
    def dtype(self) -> str:
        """The type that the value becomes."""
        return self.type


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A row-major array in some memory. Two buffers are the same only if they are one object.

    Each time its Alloc is reached the buffer is a new one.

    Attributes:
        name: in the program's text; not necessarily unique.
        shape: the length of each dimension.
        dtype: of the elements.
        scope: the memory: ``"global"``, or a target's own, such as ``"vdla.acc"``.
        copies: how many of the new ones have a place of their own in memory before the first one's
            is used again.
        value_range: bounds of a parameter's elements, both ends included; None where the dtype
            alone bounds them.
        alignments: (dimension, factor, offset) where a dimension's stride is widened until it is
            ``offset`` modulo ``factor``, in elements; elsewhere elements lie densely.

    Raises:
        IRError: a dtype that isn't known, a length that isn't positive, or a range or an alignment
            that doesn't fit.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str = "global"
    copies: int = 1
    value_range: tuple[int, int] | None = None
    alignments: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise IRError(
                f"buffer {self.name}: expected a dtype of {', '.join(DTYPES)}, found {self.dtype!r}"
            )
        if any(not isinstance(n, int) or n < 1 for n in self.shape):
            raise IRError(
                f"buffer {self.name}: expected a shape of positive ints, found {self.shape}"
            )
        if self.value_range is not None:
            low, high = INT_RANGES.get(self.dtype, (1, 0))
            if not low <= self.value_range[0] <= self.value_range[1] <= high:
                raise IRError(
                    f"buffer {self.name}: expected a value_range (low, high) within "
                    f"{self.dtype}, found {self.value_range}"
                )
        for dim, factor, offset in self.alignments:
            if not 0 <= dim < len(self.shape) or not 0 <= offset < factor:
                raise IRError(
                    f"buffer {self.name}: expected alignments (dimension, factor, offset "
                    f"< factor) of its {len(self.shape)} dimensions, found "
                    f"{(dim, factor, offset)}"
                )

    @property
    def size(self) -> int:
        """How many elements the array has."""
        total = 1
        for n in self.shape:
            total *= n
        return total

    @property
    def strides(self) -> tuple[int, ...]:
        """How many elements lie from one index of each dimension to the next."""
        return _layout(self.shape, self.alignments)[0]

    @property
    def span(self) -> int:
        """How many elements its memory holds, those between rows included."""
        return _layout(self.shape, self.alignments)[1]


@lru_cache
def _layout(
    shape: tuple[int, ...], alignments: tuple[tuple[int, int, int], ...]
) -> tuple[tuple[int, ...], int]:
    """(strides, span) of a buffer."""
    wanted = {dim: (factor, offset) for dim, factor, offset in alignments}
    strides: list[int] = []
    stride = 1
    for dim in reversed(range(len(shape))):
        factor, offset = wanted.get(dim, (1, 0))
        stride += (offset - stride) % factor
        strides.append(stride)
        stride *= shape[dim]
    return tuple(reversed(strides)), stride


@dataclass(frozen=True, slots=True)
class Load(Expr):
    """The element of a buffer at ``indices``, one per dimension."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> str:
        """That of the buffer."""
        return self.buffer.dtype


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """One of the pure functions in ``CALLS``; ``call`` makes one and checks its arguments."""

    op: str
    args: tuple[Expr, ...]
    type: str

    def __post_init__(self) -> None:
        if self.op not in CALLS:
            raise IRError(f"expected a pure function ({' '.join(CALLS)}), found {self.op!r}")

    @property
    def dtype(self) -> str:
        """The type of the result, which is that of the arguments."""
        return self.type


# --- building expressions -----------------------------------------------------------------------


def _check_const(value: int | float, dtype: str) -> None:
    """Raises where a value isn't one of the dtype."""
    if dtype in INT_RANGES:
        low, high = INT_RANGES[dtype]
        if not isinstance(value, int) or not low <= value <= high:
            raise IRError(f"constant: expected {dtype} ({low} to {high}), found {value!r}")
    elif dtype not in FLOATS:
        raise IRError(f"constant: expected a dtype of {', '.join(DTYPES)}, found {dtype!r}")


def _check_operand(op: str, dtype: str) -> None:
    """Raises where an operator doesn't take operands of a dtype."""
    if op in LOGIC and dtype != "bool":
        raise IRError(f"{op}: expected bool operands, found {dtype}")
    if op in (*BITWISE, "shl", "shr", "floordiv", "floormod") and not is_int(dtype):
        raise IRError(f"{op}: expected integer operands, found {dtype}")
    if op == "div" and not is_float(dtype):
        raise IRError(f"div: expected float operands, found {dtype}; use floordiv (//)")
    if op in ("add", "sub", "mul") and dtype == "bool":
        raise IRError(f"{op}: expected numbers, found bool")


def const(value: int | float | bool, dtype: str | None = None) -> Const:
    """A constant; without a dtype, bool, int32 or float32 by its Python type."""
    if dtype is None:
        dtype = (
            "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
        )
    if dtype in FLOATS:
        return Const(float(value), dtype)
    if isinstance(value, float):
        raise IRError(f"constant: expected {dtype}, found {value!r}")
    return Const(int(value), dtype)


def as_expr(value: ExprLike, dtype: str | None = None) -> Expr:
    """A Python number as a constant of ``dtype``, as in ``const``; an expression as it is."""
    return value if isinstance(value, Expr) else const(value, dtype)


def binary(op: str, a: ExprLike, b: ExprLike) -> Expr:
    """``a op b``, where a Python number takes the other side's dtype.

    Raises:
        IRError: the operands' dtypes differ, or the operator doesn't take them.
    """
    if isinstance(a, Expr):
        return Binary(op, a, as_expr(b, a.dtype))
    if isinstance(b, Expr):
        return Binary(op, as_expr(a, b.dtype), b)
    left = const(a)
    return Binary(op, left, const(b, left.dtype))


def cast(value: ExprLike, dtype: str) -> Expr:
    """``value`` as ``dtype``; itself where it already is.

    Raises:
        IRError: there is no such dtype.
    """
    if dtype not in DTYPES:
        raise IRError(f"cast: expected a dtype of {', '.join(DTYPES)}, found {dtype!r}")
    expr = as_expr(value)
    return expr if expr.dtype == dtype else Cast(expr, dtype)


def call(op: str, *args: ExprLike) -> Expr:
    """A pure function of its arguments, one of ``CALLS``; the result has their dtype.

    Raises:
        IRError: there is no such function, or it doesn't take these arguments.
    """
    exprs = tuple(as_expr(a) for a in args)
    wanted = 2 if op in ("pow", "rq") else 1
    if len(exprs) != wanted:
        raise IRError(f"{op}: expected {wanted} arguments, found {len(exprs)}")
    dtypes = ", ".join(e.dtype for e in exprs)
    if op == "rq" and any(e.dtype != "int32" for e in exprs):
        raise IRError(f"rq: expected int32 operands, found {dtypes}")
    if op in FLOAT_CALLS and any(not is_float(e.dtype) for e in exprs):
        raise IRError(f"{op}: expected float operands, found {dtypes}")
    if any(e.dtype != exprs[0].dtype for e in exprs):
        raise IRError(f"{op}: expected operands of one dtype, found {dtypes}")
    return Call(op, exprs, exprs[0].dtype)


TRUE = Const(1, "bool")
FALSE = Const(0, "bool")
ZERO = Const(0, "int32")


def all_of(*conds: Expr) -> Expr:
    """Whether every condition holds; ``TRUE`` for none."""
    kept = [c for c in conds if c != TRUE]
    if FALSE in kept:
        return FALSE
    result: Expr = TRUE
    for cond in kept:
        result = cond if result == TRUE else Binary("and", result, cond)
    return result


# --- statements ---------------------------------------------------------------------------------


class Stmt:
    """Base of statements; a statement is equal only to itself."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """A loop that runs its variable over 0 to ``extent - 1``.

    Attributes:
        var: the loop's variable, an int32.
        extent: how many steps.
        kind: one of ``LOOP_KINDS``; how the steps may run.
        body: what a step does.
        thread_tag: which threads the steps are, where ``kind`` is ``"thread"`` or ``"vthread"``.
        annotations: notes by key, for passes.
    """

    var: Var
    extent: int
    kind: str
    body: Stmt
    thread_tag: str = ""
    annotations: tuple[tuple[str, Pragma], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BlockIter:
    """An iterator of a block: a variable that stands for ``binding``, over the loops around it.

    Its values lie in 0 to ``extent - 1``. ``kind`` is ``"spatial"`` where each value writes
    elements of its own, ``"reduce"`` where all of them add to the same ones.
    """

    var: Var
    extent: int
    kind: str
    binding: Expr


@dataclass(frozen=True, slots=True, eq=False)
class BufferRegion:
    """A box of a buffer's elements: per dimension, the lowest index and how many from there on."""

    buffer: Buffer
    ranges: tuple[tuple[Expr, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    """One stage's computation at one point of its domain, independent of the loops around it.

    Schedules move and reshape the loops; what the block does is said in its iterators alone, and
    the loops only give these their values.

    Attributes:
        name: the stage's name.
        iters: the iterators.
        reads: regions that cover every read; what a reduction accumulates isn't counted.
        writes: regions that cover every write.
        body: what is done at one point.
        init: what runs before the body where every reduce iterator is 0; None for no reduction.
        predicate: the block runs only where it holds; over the loops around.
    """

    name: str
    iters: tuple[BlockIter, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    body: Stmt
    init: Stmt | None = None
    predicate: Expr = TRUE

    @property
    def reduce_iters(self) -> tuple[BlockIter, ...]:
        """The iterators that are reduced over."""
        return tuple(i for i in self.iters if i.kind == "reduce")

    @property
    def bindings(self) -> dict[Var, Expr]:
        """What each iterator is bound to."""
        return {i.var: i.binding for i in self.iters}


@dataclass(frozen=True, slots=True, eq=False)
class Alloc(Stmt):
    """A buffer that exists inside ``body`` alone; each time it is reached, a new one."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Store(Stmt):
    """Writes ``value`` to the element of ``buffer`` at ``indices``; both have the same dtype."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    """Does ``then`` where the bool ``cond`` holds, else ``orelse``, if there is one."""

    cond: Expr
    then: Stmt
    orelse: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    """Statements in order; an empty one does nothing."""

    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BufferRef:
    """A position in a buffer: the lowest corner of what an intrinsic touches."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class IntrinCall:
    """A call of a tensor intrinsic: one instruction on one vector.

    Attributes:
        intrin: the intrinsic.
        operands: the lowest corner of each operand, in the intrinsic's order.
        params: the value of each param, by name.
        first: of a reduction, the condition under which the init runs; None for no reduction.
    """

    intrin: TensorIntrin
    operands: tuple[BufferRef, ...]
    params: Mapping[str, Expr] = field(default_factory=dict)
    first: Expr | None = None

    def operand(self, name: str) -> BufferRef:
        """The operand that the intrinsic's behaviour calls ``name``.

        Raises:
            KeyError: it has none of that name.
        """
        for buffer, ref in zip(self.intrin.operands, self.operands, strict=True):
            if buffer.name == name:
                return ref
        known = ", ".join(b.name for b in self.intrin.operands)
        raise KeyError(f"{self.intrin.name}: expected an operand of {known}, found {name!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Stmt):
    """A statement that does what an intrinsic call does."""

    call: IntrinCall


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch(Stmt):
    """A hint that a region, which may leave its buffer, will be read soon; it changes nothing."""

    region: BufferRegion


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc:
    """A function: it reads and writes the arrays that it gets for its parameters, in place."""

    name: str
    params: tuple[Buffer, ...]
    body: Stmt


def seq(*stmts: Stmt) -> Stmt:
    """The statements in order, nested sequences flattened, one statement bare."""
    flat = tuple(part for stmt in stmts for part in sequence(stmt))
    return flat[0] if len(flat) == 1 else Seq(flat)


def sequence(stmt: Stmt) -> tuple[Stmt, ...]:
    """What ``stmt`` does in order: itself, or the statements of a Seq, those of inner ones too."""
    if not isinstance(stmt, Seq):
        return (stmt,)
    return tuple(part for inner in stmt.stmts for part in sequence(inner))


def point(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    """The region of one element."""
    return BufferRegion(buffer, tuple((i, 1) for i in indices))
