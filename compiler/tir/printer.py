"""The tree as readable text, close to TVMScript; ``parser`` opens with its grammar and reads it."""

from __future__ import annotations

from collections.abc import Iterator

from vdla.compiler.text import write_name, write_string
from vdla.compiler.tir.ir import (
    FLOATS,
    TRUE,
    Alloc,
    Barrier,
    Binary,
    Block,
    Buffer,
    BufferRegion,
    Call,
    Cast,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    Load,
    Not,
    Pragma,
    Prefetch,
    PrimFunc,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    sequence,
)

NOT, COMPARISON, ATOM = 3, 4, 11
SYMBOLS = {  # by operator: its symbol, and how tightly it binds
    "mul": ("*", 10),
    "div": ("/", 10),
    "floordiv": ("//", 10),
    "floormod": ("%", 10),
    "add": ("+", 9),
    "sub": ("-", 9),
    "shl": ("<<", 8),
    "shr": (">>", 8),
    "bitand": ("&", 7),
    "bitxor": ("^", 6),
    "bitor": ("|", 5),
    "lt": ("<", COMPARISON),
    "le": ("<=", COMPARISON),
    "gt": (">", COMPARISON),
    "ge": (">=", COMPARISON),
    "eq": ("==", COMPARISON),
    "ne": ("!=", COMPARISON),
    "and": ("and", 2),
    "or": ("or", 1),
}
RESERVED = (
    "func", "for", "block", "where", "reads", "writes", "init", "alloc", "if", "else",
    "prefetch", "barrier", "pass", "and", "or", "not", "True", "False", "inf", "nan",
)  # fmt: skip


class DistinctNames:
    """One distinct name per object, the wanted one where it is free."""

    def __init__(self) -> None:
        self.given: dict[object, str] = {}
        self.used: set[str] = set()

    def __call__(self, thing: Var | Buffer) -> str:
        """Name of a thing, the same each time."""
        if thing not in self.given:
            name, n = thing.name, 1
            while name in self.used:
                name, n = f"{thing.name}_{n}", n + 1
            self.used.add(name)
            self.given[thing] = name
        return self.given[thing]


class ExprPrinter:
    """Writes expressions, with no more brackets than they need."""

    def __init__(self) -> None:
        self.names = DistinctNames()

    def name(self, thing: Var | Buffer) -> str:
        """A variable or a buffer."""
        return write_name(self.names(thing), RESERVED)

    def word(self, name: str) -> str:
        """A function's name, or a dtype."""
        return name

    def number(self, value: int | float, dtype: str) -> str:
        """A number without its dtype: ``True``, ``3``, ``1.5``."""
        if dtype == "bool":
            return str(bool(value))
        return repr(float(value)) if dtype in FLOATS else str(int(value))

    def expr(self, e: Expr, level: int = 0) -> str:
        """An expression where operators bind as tightly as ``level``."""
        text, own = self.expr_level(e)
        return f"({text})" if own < level else text

    def expr_level(self, e: Expr) -> tuple[str, int]:
        """An expression's text, and how tightly its operator binds."""
        match e:
            case Const(value, dtype):
                return self.const(value, dtype), ATOM
            case Var():
                return self.name(e), ATOM
            case Binary(op, a, b) if op in SYMBOLS:
                symbol, own = SYMBOLS[op]
                left = own + 1 if own == COMPARISON else own
                return f"{self.expr(a, left)} {symbol} {self.expr(b, own + 1)}", own
            case Binary(op, a, b):
                return f"{op}({self.expr(a)}, {self.expr(b)})", ATOM
            case Not(a):
                return f"not {self.expr(a, ATOM)}", NOT
            case Cast(Const(value, "int32" | "float32" as own), dtype):
                number = f"{self.word(own)}({self.number(value, own)})"
                return f"{self.word(dtype)}({number})", ATOM
            case Select(cond, a, b):
                return (
                    f"{self.word('select')}({self.expr(cond)}, {self.expr(a)}, {self.expr(b)})",
                    ATOM,
                )
            case Cast(a, dtype):
                return f"{self.word(dtype)}({self.expr(a)})", ATOM
            case Load(buffer, indices):
                return self.element(buffer, indices), ATOM
            case Call(op, args, _):
                return f"{self.word(op)}({self.list(args)})", ATOM
        return repr(e), ATOM

    def const(self, value: int | float, dtype: str) -> str:
        """A literal that reads back with its dtype."""
        text = self.number(value, dtype)
        return text if dtype in ("bool", "int32", "float32") else f"{self.word(dtype)}({text})"

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """An element of a buffer."""
        return f"{self.name(buffer)}[{self.list(indices)}]"

    def list(self, exprs: tuple[Expr, ...]) -> str:
        """Expressions with commas between them."""
        return ", ".join(self.expr(e) for e in exprs)


class _Printer(ExprPrinter):
    """Writes statements as text."""

    def region(self, region: BufferRegion) -> str:
        dims = []
        for low, extent in region.ranges:
            dims.append(self.expr(low) + ("" if extent == 1 else f" +: {extent}"))
        return f"{self.name(region.buffer)}[{', '.join(dims)}]"

    def buffer(self, buffer: Buffer) -> str:
        shape = ", ".join(map(str, buffer.shape))
        scope = "" if buffer.scope == "global" else f" @{write_string(buffer.scope)}"
        copies = f" x{buffer.copies}" if buffer.copies > 1 else ""
        promised = buffer.value_range
        values = f" in {promised[0]}..{promised[1]}" if promised else ""
        aligned = "".join(f" align{of}" for of in buffer.alignments)
        return f"{self.name(buffer)}: {buffer.dtype}[{shape}]{scope}{copies}{values}{aligned}"

    def stmt(self, s: Stmt) -> Iterator[str]:
        match s:
            case For():
                yield self.loop(s)
                yield from self.indent(s.body)
            case Block():
                yield from self.block(s)
            case Alloc(buffer, body):
                yield f"alloc {self.buffer(buffer)}"
                yield from self.stmt(body)
            case Store(buffer, indices, value):
                yield f"{self.name(buffer)}[{self.list(indices)}] = {self.expr(value)}"
            case If(cond, then, orelse):
                yield f"if {self.expr(cond)}:"
                yield from self.indent(then)
                if orelse is not None:
                    yield "else:"
                    yield from self.indent(orelse)
            case Seq():
                yield from self.sequence(sequence(s))
            case Evaluate(call):
                yield self.call(call)
            case Prefetch(region):
                yield f"prefetch {self.region(region)}"
            case Barrier():
                yield "barrier"

    def sequence(self, stmts: tuple[Stmt, ...]) -> Iterator[str]:
        """An Alloc reaches to the end of its block, or has one of its own."""
        for inner in stmts:
            if isinstance(inner, Alloc) and inner is not stmts[-1]:
                yield f"alloc {self.buffer(inner.buffer)}:"
                yield from self.indent(inner.body)
            else:
                yield from self.stmt(inner)

    def indent(self, s: Stmt) -> Iterator[str]:
        lines = list(self.stmt(s)) or ["pass"]
        return (f"    {line}" for line in lines)

    def loop(self, s: For) -> str:
        kind = "" if s.kind == "serial" and not s.thread_tag else f" {s.kind}"
        tag = f"({write_string(s.thread_tag)})" if s.thread_tag else ""
        notes = "".join(f" @{write_name(k, RESERVED)}={_pragma(v)}" for k, v in s.annotations)
        return f"for {self.name(s.var)} in {s.extent}{kind}{tag}{notes}:"

    def block(self, s: Block) -> Iterator[str]:
        iters = ", ".join(
            f"{self.name(i.var)}: {i.kind[0]}{i.extent} = {self.expr(i.binding)}" for i in s.iters
        )
        yield f"block {write_name(s.name, RESERVED)}({iters}):"
        if s.predicate != TRUE:
            yield f"    where {self.expr(s.predicate)}"
        if s.reads:
            yield "    reads " + ", ".join(map(self.region, s.reads))
        if s.writes:
            yield "    writes " + ", ".join(map(self.region, s.writes))
        if s.init is not None:
            yield "    init:"
            yield from (f"    {line}" for line in self.indent(s.init))
        yield from self.indent(s.body)

    def call(self, call: IntrinCall) -> str:
        operands = [
            f"{write_name(formal.name, RESERVED)}={self.name(ref.buffer)}[{self.list(ref.indices)}]"
            for formal, ref in zip(call.intrin.operands, call.operands, strict=True)
        ]
        params = [
            f"{write_name(name, RESERVED)}={self.expr(value)}"
            for name, value in call.params.items()
        ]
        first = [] if call.first is None else [f"first={self.expr(call.first)}"]
        return f"{write_name(call.intrin.name, RESERVED)}({', '.join(operands + params + first)})"


def _pragma(value: Pragma) -> str:
    """The value of an annotation."""
    return write_string(value) if isinstance(value, str) else repr(value)


def show(node: Expr | Stmt | PrimFunc) -> str:
    """The text of any node."""
    printer = _Printer()
    if isinstance(node, Expr):
        return printer.expr(node)
    if isinstance(node, Stmt):
        return "\n".join(printer.stmt(node))
    head = f"func {write_name(node.name, RESERVED)}({', '.join(map(printer.buffer, node.params))}):"
    return "\n".join([head, *printer.indent(node.body)])
