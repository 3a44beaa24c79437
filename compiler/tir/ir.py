"""The loop-level IR: one tree for the accelerator, the CPU and the GPU.

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
                | Barrier(scope)
                | Prefetch(region: Region)
                | Token(action: push | pop, source, sink)
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

- A vthread loop with the annotation `threads` deals its steps to that many virtual threads in turn;
  without it each step is a thread.
- A loop runs its variable over 0 .. extent-1. Every loop variable is an int32 and is bound once.
- A Block runs its body for the values its iterators are bound to, if its predicate (over the
  enclosing loops) holds. Its init runs first whenever every reduce iterator is 0. The body may
  mention the iterators and also the loops around the block.
- Regions are boxes of elements that cover every access of the block. They speak of the block's
  iterators and of the loops around it.
- A Prefetch changes nothing; its region may leave the buffer.
- Integers wrap; floordiv and floormod round towards minus infinity; shr is arithmetic for signed
  integers. Select evaluates the chosen side only, so the other one may load out of bounds.
- Call("rq", acc, scale) requantizes exactly: see `ops.requantize`.
- An IntrinCall does what its intrinsic's behaviour says on the elements from each operand's lowest
  corner on; `first` is the condition under which the behaviour's init runs.
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

    `stmt` is the innermost statement that is concerned, where `verify` found it.
    """

    stmt: Stmt | None = None


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def is_int(dtype: str) -> bool:
    """Integers proper: bool is not one."""
    return dtype in INT_RANGES and dtype != "bool"


class Expr:
    """Base of expressions. Operators build nodes; `==` compares structure (use `equal`)."""

    __slots__ = ()

    @property
    def dtype(self) -> str:
        raise NotImplementedError

    def astype(self, dtype: str) -> Expr:
        return cast(self, dtype)

    def equal(self, other: ExprLike) -> Expr:
        return binary("eq", self, other)

    def not_equal(self, other: ExprLike) -> Expr:
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
    value: int | float
    type: str

    def __post_init__(self) -> None:
        check_const(self.value, self.type)

    @property
    def dtype(self) -> str:
        return self.type


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A named value; two variables are the same only if they are one object."""

    name: str
    type: str = "int32"

    @property
    def dtype(self) -> str:
        return self.type


@dataclass(frozen=True, slots=True)
class Binary(Expr):
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
        check_operand(self.op, self.a.dtype)

    @property
    def dtype(self) -> str:
        if self.op in COMPARISONS or self.op in LOGIC:
            return "bool"
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Not(Expr):
    a: Expr

    def __post_init__(self) -> None:
        if self.a.dtype != "bool":
            raise IRError(f"not: expected a bool, found {self.a.dtype}")

    @property
    def dtype(self) -> str:
        return "bool"


@dataclass(frozen=True, slots=True)
class Select(Expr):
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
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    a: Expr
    type: str

    @property
    def dtype(self) -> str:
        return self.type


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A row-major array. Two buffers are the same only if they are one object.

    ``value_range`` bounds the elements of a parameter, both ends included; None where the dtype
    alone does. Each time its Alloc is reached the buffer is a new one; ``copies`` say how many of
    those have a place of their own in memory before the first one's is used again. Elements lie
    densely but where ``alignments`` widen the stride of a dimension.
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
    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> str:
        return self.buffer.dtype


@dataclass(frozen=True, slots=True)
class Call(Expr):
    op: str
    args: tuple[Expr, ...]
    type: str

    def __post_init__(self) -> None:
        if self.op not in CALLS:
            raise IRError(f"expected a pure function ({' '.join(CALLS)}), found {self.op!r}")

    @property
    def dtype(self) -> str:
        return self.type


# --- building expressions -----------------------------------------------------------------------


def check_const(value: int | float, dtype: str) -> None:
    if dtype in INT_RANGES:
        low, high = INT_RANGES[dtype]
        if not isinstance(value, int) or not low <= value <= high:
            raise IRError(f"constant: expected {dtype} ({low} to {high}), found {value!r}")
    elif dtype not in FLOATS:
        raise IRError(f"constant: expected a dtype of {', '.join(DTYPES)}, found {dtype!r}")


def check_operand(op: str, dtype: str) -> None:
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
    return value if isinstance(value, Expr) else const(value, dtype)


def binary(op: str, a: ExprLike, b: ExprLike) -> Expr:
    """`a op b`, where a Python number takes the other side's dtype."""
    if isinstance(a, Expr):
        return Binary(op, a, as_expr(b, a.dtype))
    if isinstance(b, Expr):
        return Binary(op, as_expr(a, b.dtype), b)
    left = const(a)
    return Binary(op, left, const(b, left.dtype))


def cast(value: ExprLike, dtype: str) -> Expr:
    """`value` as `dtype`; nothing where it already is."""
    if dtype not in DTYPES:
        raise IRError(f"cast: expected a dtype of {', '.join(DTYPES)}, found {dtype!r}")
    expr = as_expr(value)
    return expr if expr.dtype == dtype else Cast(expr, dtype)


def call(op: str, *args: ExprLike) -> Expr:
    """A pure function of its arguments, typed by `op`."""
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
    """The conjunction; True for none."""
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
    var: Var
    extent: int
    kind: str
    body: Stmt
    thread_tag: str = ""
    annotations: tuple[tuple[str, Pragma], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class BlockIter:
    var: Var
    extent: int
    kind: str
    binding: Expr


@dataclass(frozen=True, slots=True, eq=False)
class BufferRegion:
    buffer: Buffer
    ranges: tuple[tuple[Expr, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block(Stmt):
    name: str
    iters: tuple[BlockIter, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    body: Stmt
    init: Stmt | None = None
    predicate: Expr = TRUE

    @property
    def reduce_iters(self) -> tuple[BlockIter, ...]:
        return tuple(i for i in self.iters if i.kind == "reduce")

    @property
    def bindings(self) -> dict[Var, Expr]:
        return {i.var: i.binding for i in self.iters}


@dataclass(frozen=True, slots=True, eq=False)
class Alloc(Stmt):
    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Store(Stmt):
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    cond: Expr
    then: Stmt
    orelse: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BufferRef:
    """A position in a buffer: the lowest corner of what an intrinsic touches."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class IntrinCall:
    intrin: TensorIntrin
    operands: tuple[BufferRef, ...]
    params: Mapping[str, Expr] = field(default_factory=dict)
    first: Expr | None = None

    def operand(self, name: str) -> BufferRef:
        """The operand that the intrinsic's behaviour calls `name`."""
        for buffer, ref in zip(self.intrin.operands, self.operands, strict=True):
            if buffer.name == name:
                return ref
        known = ", ".join(b.name for b in self.intrin.operands)
        raise KeyError(f"{self.intrin.name}: expected an operand of {known}, found {name!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Stmt):
    call: IntrinCall


@dataclass(frozen=True, slots=True, eq=False)
class Barrier(Stmt):
    scope: str = "global"


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch(Stmt):
    region: BufferRegion


@dataclass(frozen=True, slots=True, eq=False)
class Token(Stmt):
    action: str
    source: str
    sink: str


@dataclass(frozen=True, slots=True, eq=False)
class PrimFunc:
    name: str
    params: tuple[Buffer, ...]
    body: Stmt


def seq(*stmts: Stmt) -> Stmt:
    """The statements in order, nested sequences flattened, one statement bare."""
    flat = tuple(part for stmt in stmts for part in sequence(stmt))
    return flat[0] if len(flat) == 1 else Seq(flat)


def sequence(stmt: Stmt) -> tuple[Stmt, ...]:
    """What `stmt` does in order: itself, or the statements of a Seq, those of inner ones too."""
    if not isinstance(stmt, Seq):
        return (stmt,)
    return tuple(part for inner in stmt.stmts for part in sequence(inner))


def point(buffer: Buffer, indices: Sequence[Expr]) -> BufferRegion:
    """The region of one element."""
    return BufferRegion(buffer, tuple((i, 1) for i in indices))
