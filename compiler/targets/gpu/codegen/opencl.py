"""Kernels as OpenCL C.

    __kernel void f_0(__global uchar *memory, const ulong at0, const ulong at1)
    {
        __global const float *A = (__global const float *)(memory + at0);
        …
    }

Rules:

- All buffers that a kernel gets lie in one memory, each at an offset in bytes.
- Numbers are those of the loop IR: integers wrap, ``min`` and ``max`` give NaN where either side
  is, floats are rounded after every operation. ``float16`` is stored as such and computed as
  float, which needs no extension; it is rounded where it is stored or converted.
- An index may be an int: a function with a larger buffer has no code here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.gpu.codegen.kernel import Kernel, element_number, is_unrounded
from vdla.compiler.tir.arith import bounds, is_index
from vdla.compiler.tir.ir import (
    BLOCK_TAGS,
    INT_RANGES,
    LOCAL,
    SHARED,
    Alloc,
    Barrier,
    Binary,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Not,
    Prefetch,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    binary,
    is_float,
)
from vdla.compiler.tir.lower import written_buffers
from vdla.compiler.tir.visitor import stmt_loads

TYPES = {
    "bool": "uchar", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
    "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong",
    "float16": "float", "float32": "float", "float64": "double",
}  # fmt: skip
STORED = {**TYPES, "float16": "half"}
SUFFIXES = {"uint32": "u", "int64": "L", "uint64": "UL", "float32": "f", "float16": "f"}
SYMBOLS = {  # by operator: its symbol, and how tightly it binds in C
    "mul": ("*", 10), "div": ("/", 10), "add": ("+", 9), "sub": ("-", 9),
    "shl": ("<<", 8), "shr": (">>", 8), "lt": ("<", 7), "le": ("<=", 7), "gt": (">", 7),
    "ge": (">=", 7), "eq": ("==", 6), "ne": ("!=", 6), "bitand": ("&", 5), "bitxor": ("^", 4),
    "bitor": ("|", 3), "and": ("&&", 2), "or": ("||", 1),
}  # fmt: skip
UNARY, ATOM = 11, 12
WRAPPING = ("add", "sub", "mul", "shl")
UNSIGNED = {"int8": "uchar", "int16": "ushort", "int32": "uint", "int64": "ulong"}
WORDS = """
    auto bool break case char const constant continue default do double else enum extern float
    for global goto half if image1d_t image2d_t image3d_t inline int kernel local long memory
    private read_only register restrict return sampler_t short signed sizeof size_t static struct
    switch typedef uchar uint ulong union unsigned ushort vload_half vstore_half void volatile
    while write_only read_write barrier event_t complex imaginary exp sqrt rint floor tanh log pow
    erf sin cos tan asin acos atan sinh cosh asinh acosh atanh fabs fma isnan
"""
RESERVED = frozenset(WORDS.split())

HEADER = "#pragma OPENCL FP_CONTRACT OFF\n"
DOUBLE = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
HALVED = """\
// x rounded to the nearest half.
static float halved(float x)
{
    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return vload_half(0, (half *)&bits);
}
"""
REQUANTIZE = """\
// x * m / 2^k, rounded half to even, saturated to int; word packs m (24 bits) and k (6 bits).
static int requantize(int x, int word)
{
    const int k = (word >> 24) & 63;
    const long product = (long)x * (word & 0xffffff);
    const long nearest = k ? (1L << (k - 1)) - 1 + ((product >> k) & 1) : 0;
    return (int)clamp((product + nearest) >> k, -2147483648L, 2147483647L);
}
"""
RECIPROCAL = """\
// The scale word of 1 / y: ⌊2^k / y⌋ and k; 0 for y ≤ 0.
static int reciprocal(int y)
{
    const int k = 54 - clz(y);
    return y > 0 ? (int)((1L << k) / y) | k << 24 : 0;
}
"""
RSQRT = """\
// The scale word of 1 / √y, from its root digit by digit; 0 for y ≤ 0.
static int reciprocal_root(int y)
{
    const int h = (31 - clz(y)) / 2;
    const long whole = (long)y << (46 - 2 * h);
    long root = 1L << 23;
    for (long digit = root >> 1; digit && y > 0; digit >>= 1)
        if ((root + digit) * (root + digit) <= whole) root += digit;
    return y > 0 ? (int)((1L << 46) / root) | (23 + h) << 24 : 0;
}
"""
OF_WORDS = {  # by function of expressions: the name and the text of the helper that computes it
    "rq": ("requantize", REQUANTIZE),
    "reciprocal": ("reciprocal", RECIPROCAL),
    "rsqrt": ("reciprocal_root", RSQRT),
}
DIVIDE = """\
// Rounded towards minus infinity; 0 by 0.
static {type} divide_{type}({type} a, {type} b)
{{
    if (b == 0) return 0;
    if (b == ({type})-1) return ({type})(0 - ({unsigned})a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}}
"""
REMAINDER = """\
// What division towards minus infinity leaves; 0 by 0.
static {type} remainder_{type}({type} a, {type} b)
{{
    if (b == 0 || b == ({type})-1) return 0;
    return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}}
"""
PLAIN = """\
static {type} {name}_{type}({type} a, {type} b)
{{
    return b == 0 ? 0 : a {symbol} b;
}}
"""
EXTREME = """\
static {type} {name}_{type}({type} a, {type} b)
{{
    return a {symbol} b{nan} ? a : b;
}}
"""


def opencl(kernels: Sequence[Kernel]) -> str:
    """The source of some kernels.

    Raises:
        NoCodeError: a buffer has more elements than an int counts.
    """
    helpers: dict[str, str] = {}
    texts = [_Writer(kernel, helpers).kernel() for kernel in kernels]
    wide = any("double" in text for text in (*texts, *helpers.values()))
    return "\n".join([HEADER + (DOUBLE if wide else ""), *helpers.values(), *texts])


@dataclass
class _Writer:
    """Writes one kernel. ``helpers`` are the functions that kernels call, by name."""

    source: Kernel
    helpers: dict[str, str]
    names: dict[object, str] = field(default_factory=dict)
    ranges: dict[Var, tuple[int, int]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def kernel(self) -> str:
        """The text of the kernel."""
        source = self.source
        source.check_sizes()
        written = written_buffers(source.body)
        self.fences = "CLK_LOCAL_MEM_FENCE"
        read = {load.buffer for load in stmt_loads(source.body)}
        if any(buffer in written and buffer in read for buffer in source.buffers):
            self.fences += " | CLK_GLOBAL_MEM_FENCE"
        places = "".join(f", const ulong at{n}" for n in range(len(source.buffers)))
        for n, buffer in enumerate(source.buffers):
            constant = "" if buffer in written else "const "
            kind = f"__global {constant}{STORED[buffer.dtype]} *"
            self.line(1, f"{kind}const {self.name(buffer)} = ({kind})(memory + at{n});")
        self.statement(source.body, 1)
        head = f"void {source.name}(__global uchar *memory{places})"
        size = ", ".join(str(self.threads.get(axis, 1)) for axis in "xyz")
        attribute = f"__attribute__((reqd_work_group_size({size})))"
        return "\n".join([f"__kernel {attribute}", head, "{", *self.lines, "}", ""])

    def __post_init__(self) -> None:
        self.threads: dict[str, int] = {}

    def line(self, depth: int, text: str) -> None:
        """Adds a line."""
        self.lines.append("    " * depth + text)

    def name(self, thing: Var | Buffer) -> str:
        """A name of its own, the wanted one where it is free and C takes it."""
        if thing not in self.names:
            base = re.sub(r"\W", "_", thing.name, flags=re.ASCII)
            if (
                base in RESERVED
                or not base
                or not base[0].isalpha()
                or re.fullmatch(r"at\d+", base)
            ):
                base = f"v_{base}"
            name, n = base, 1
            taken = set(self.names.values())
            while name in taken:
                name, n = f"{base}_{n}", n + 1
            self.names[thing] = name
        return self.names[thing]

    # --- statements ---

    def statement(self, stmt: Stmt, depth: int) -> None:
        """Writes one statement."""
        match stmt:
            case For():
                self.loop(stmt, depth)
            case Alloc(buffer, body):
                self.alloc(buffer, depth)
                self.statement(body, depth)
            case Store(buffer, indices, value):
                self.store(buffer, indices, value, depth)
            case If(cond, then, orelse):
                self.line(depth, f"if ({self.expr(cond)}) {{")
                self.statement(then, depth + 1)
                if orelse is not None:
                    self.line(depth, "} else {")
                    self.statement(orelse, depth + 1)
                self.line(depth, "}")
            case Seq(stmts):
                for inner in stmts:
                    self.statement(inner, depth)
            case Barrier():
                self.line(depth, f"barrier({self.fences});")
            case Prefetch():
                pass
            case _:
                raise NoCodeError(f"{self.source.name}: no OpenCL C for {type(stmt).__name__}")

    def loop(self, loop: For, depth: int) -> None:
        """A loop; one over threads gives its variable the thread's number."""
        name = self.name(loop.var)
        self.ranges[loop.var] = (0, loop.extent - 1)
        if loop.kind == "thread":
            axis = loop.thread_tag[-1]
            number = "get_group_id" if loop.thread_tag in BLOCK_TAGS else "get_local_id"
            if loop.thread_tag not in BLOCK_TAGS:
                self.threads[axis] = loop.extent
            self.line(depth, f"const int {name} = {number}({'xyz'.index(axis)});")
            self.statement(loop.body, depth)
            return
        if loop.kind in ("unrolled", "vectorized"):
            self.line(depth, "#pragma unroll")
        self.line(depth, f"for (int {name} = 0; {name} < {loop.extent}; ++{name}) {{")
        self.statement(loop.body, depth + 1)
        self.line(depth, "}")

    def alloc(self, buffer: Buffer, depth: int) -> None:
        """A buffer's declaration."""
        if buffer.scope == SHARED:
            kind = "ushort" if buffer.dtype == "float16" else TYPES[buffer.dtype]
            self.line(depth, f"__local {kind} {self.name(buffer)}[{buffer.span}];")
        else:
            self.line(depth, f"{TYPES[buffer.dtype]} {self.name(buffer)}[{buffer.span}];")

    def store(self, buffer: Buffer, indices: tuple[Expr, ...], value: Expr, depth: int) -> None:
        """A store of one element."""
        text, place = self.expr(value), self.place(buffer, indices)
        if buffer.dtype == "float16" and buffer.scope != LOCAL:
            self.line(depth, f"vstore_half({text}, {place}, {self.halves(buffer)});")
        else:
            self.line(depth, f"{self.name(buffer)}[{place}] = {text};")

    def halves(self, buffer: Buffer) -> str:
        """A buffer of float16, as OpenCL takes it."""
        name = self.name(buffer)
        return f"(__local half *){name}" if buffer.scope == SHARED else name

    def place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """The number of an element."""
        return self.expr(element_number(buffer, indices, self.ranges))

    # --- expressions ---

    def expr(self, e: Expr, level: int = 0) -> str:
        """An expression's text, in brackets where it binds less tightly than ``level``."""
        text, own = self.expr_level(e)
        return f"({text})" if own < level else text

    def expr_level(self, e: Expr) -> tuple[str, int]:
        """An expression's text, and how tightly it binds."""
        match e:
            case Const(value, dtype):
                return _literal(value, dtype)
            case Var():
                return self.name(e), ATOM
            case Binary():
                return self.binary(e)
            case Not(a):
                return f"!{self.expr(a, UNARY)}", UNARY
            case Select(cond, a, b):
                return f"{self.expr(cond, 1)} ? {self.expr(a, 1)} : {self.expr(b)}", 0
            case Cast(a, dtype):
                return self.cast(a, dtype)
            case Load(buffer, indices):
                place = self.place(buffer, indices)
                if buffer.dtype == "float16" and buffer.scope != LOCAL:
                    return f"vload_half({place}, {self.halves(buffer)})", ATOM
                return f"{self.name(buffer)}[{place}]", ATOM
            case Call(op, args, dtype):
                return self.call(op, args, dtype)
        raise NoCodeError(f"{self.source.name}: no OpenCL C for {type(e).__name__}")

    def binary(self, e: Binary) -> tuple[str, int]:
        """An operator: one of C, or a function where C has none that means the same."""
        op, dtype = e.op, e.a.dtype
        if op in ("floordiv", "floormod"):
            return self.divide(e)
        if op in ("min", "max"):
            return self.extreme(op, dtype, self.expr(e.a), self.expr(e.b))
        symbol, own = SYMBOLS[op]
        if op in WRAPPING and dtype in UNSIGNED and not is_index(e):
            a, b = (f"({UNSIGNED[dtype]}){self.expr(x, UNARY)}" for x in (e.a, e.b))
            return f"({TYPES[dtype]})({a} {symbol} {b})", UNARY
        text = f"{self.expr(e.a, own)} {symbol} {self.expr(e.b, own + 1)}"
        if op in ("add", "sub", "mul", "shl") and dtype in ("uint8", "uint16"):
            return f"({TYPES[dtype]})({text})", UNARY
        return text, own

    def divide(self, e: Binary) -> tuple[str, int]:
        """A division or a remainder towards minus infinity."""
        dtype, symbol = e.dtype, "/" if e.op == "floordiv" else "%"
        if dtype.startswith("uint") and isinstance(e.b, Const) and e.b.value:
            return f"{self.expr(e.a, 10)} {symbol} {self.expr(e.b, 11)}", 10
        low = bounds(e.a, self.ranges) if is_index(e.a) else None
        if low is not None and low[0] >= 0 and isinstance(e.b, Const) and e.b.value > 0:
            return f"{self.expr(e.a, 10)} {symbol} {self.expr(e.b, 11)}", 10
        kind, name = TYPES[dtype], "divide" if e.op == "floordiv" else "remainder"
        template = {"divide": DIVIDE, "remainder": REMAINDER}[name]
        if dtype not in UNSIGNED:
            template = PLAIN
        self.helpers[f"{name}_{kind}"] = template.format(
            type=kind, name=name, symbol=symbol, unsigned=UNSIGNED.get(dtype, kind)
        )
        return f"{name}_{kind}({self.expr(e.a)}, {self.expr(e.b)})", ATOM

    def extreme(self, op: str, dtype: str, a: str, b: str) -> tuple[str, int]:
        """The lesser or greater of two values."""
        kind, name = TYPES[dtype], "least" if op == "min" else "greatest"
        nan = " || isnan(a)" if is_float(dtype) else ""
        symbol = "<" if op == "min" else ">"
        text = EXTREME.format(type=kind, name=name, symbol=symbol, nan=nan)
        self.helpers[f"{name}_{kind}"] = text
        return f"{name}_{kind}({a}, {b})", ATOM

    def cast(self, a: Expr, dtype: str) -> tuple[str, int]:
        """A value as another dtype."""
        text, source = self.expr(a, UNARY), a.dtype
        if is_unrounded(a):
            text = self.halved(text)
        if dtype == "float16" and source != dtype:
            return self.halved(f"(float){text}"), ATOM
        if dtype == "bool":
            return f"{text} != 0", 6
        if is_float(source) and not is_float(dtype):
            between = "" if dtype in ("int32", "int64", "uint64") else "(long)"
            return f"({TYPES[dtype]}){between}{text}", UNARY
        return f"({TYPES[dtype]}){text}", UNARY

    def halved(self, text: str) -> str:
        """A float rounded to a float16, as a float."""
        self.helpers["halved"] = HALVED
        return f"halved({text})"

    def call(self, op: str, args: tuple[Expr, ...], dtype: str) -> tuple[str, int]:
        """A function of OpenCL C, or one of those above."""
        values = ", ".join(self.expr(arg) for arg in args)
        if op in OF_WORDS:
            name, text = OF_WORDS[op]
            self.helpers[name] = text
            return f"{name}({values})", ATOM
        if op == "abs" and not is_float(dtype):
            x = args[0]
            return self.expr_level(
                x if dtype.startswith("uint") else Select(x < 0, binary("sub", 0, x), x)
            )
        return f"{'fabs' if op == 'abs' else op}({values})", ATOM


def _literal(value: int | float, dtype: str) -> tuple[str, int]:
    """A number as C has it."""
    suffix = SUFFIXES.get(dtype, "")
    if is_float(dtype):
        if math.isnan(value):
            return "NAN", ATOM
        text = "INFINITY" if math.isinf(value) else f"{abs(float(value))!r}{suffix}"
        return (f"-{text}", UNARY) if math.copysign(1, value) < 0 else (text, ATOM)
    if dtype in ("int32", "int64") and value == INT_RANGES[dtype][0]:
        return f"({value + 1}{suffix} - 1)", ATOM
    return (f"-{-value}{suffix}", UNARY) if value < 0 else (f"{int(value)}{suffix}", ATOM)
