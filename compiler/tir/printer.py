"""The tree as readable text, close to TVMScript."""

from __future__ import annotations

from collections.abc import Iterator

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
    Prefetch,
    PrimFunc,
    Select,
    Seq,
    Stmt,
    Store,
    Token,
    Var,
)

SYMBOLS = {
    "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7), "floormod": ("%", 7),
    "add": ("+", 6), "sub": ("-", 6), "shl": ("<<", 5), "shr": (">>", 5),
    "bitand": ("&", 4), "bitor": ("|", 4), "bitxor": ("^", 4),
    "lt": ("<", 3), "le": ("<=", 3), "gt": (">", 3), "ge": (">=", 3), "eq": ("==", 3),
    "ne": ("!=", 3), "and": ("and", 2), "or": ("or", 1),
}
ATOM = 9


class Names:
    """One distinct name per object, the wanted one where it is free."""

    def __init__(self) -> None:
        self.given: dict[object, str] = {}
        self.used: set[str] = set()

    def __call__(self, thing: Var | Buffer) -> str:
        if thing not in self.given:
            name, n = thing.name, 1
            while name in self.used:
                name, n = f"{thing.name}_{n}", n + 1
            self.used.add(name)
            self.given[thing] = name
        return self.given[thing]


class Printer:
    def __init__(self) -> None:
        self.name = Names()

    def expr(self, e: Expr, level: int = 0) -> str:
        text, own = self.expr_level(e)
        return f"({text})" if own < level else text

    def expr_level(self, e: Expr) -> tuple[str, int]:
        match e:
            case Const(value, dtype):
                return self.const(value, dtype), ATOM
            case Var():
                return self.name(e), ATOM
            case Binary(op, a, b) if op in SYMBOLS:
                symbol, own = SYMBOLS[op]
                left = own + 1 if own == 3 else own
                return f"{self.expr(a, left)} {symbol} {self.expr(b, own + 1)}", own
            case Binary(op, a, b):
                return f"{op}({self.expr(a)}, {self.expr(b)})", ATOM
            case Not(a):
                return f"not {self.expr(a, 8)}", 2
            case Select(cond, a, b):
                return f"select({self.expr(cond)}, {self.expr(a)}, {self.expr(b)})", ATOM
            case Cast(a, dtype):
                return f"{dtype}({self.expr(a)})", ATOM
            case Load(buffer, indices):
                return f"{self.name(buffer)}[{self.list(indices)}]", ATOM
            case Call(op, args, _):
                return f"{op}({self.list(args)})", ATOM
        return repr(e), ATOM

    def const(self, value: int | float, dtype: str) -> str:
        if dtype == "bool":
            return str(bool(value))
        return str(value) if dtype in ("int32", *FLOATS[:1]) else f"{dtype}({value})"

    def list(self, exprs: tuple[Expr, ...]) -> str:
        return ", ".join(self.expr(e) for e in exprs)

    def region(self, region: BufferRegion) -> str:
        dims = []
        for low, extent in region.ranges:
            text = self.expr(low, 7)
            dims.append(self.expr(low) if extent == 1 else f"{text}:{text}+{extent}")
        return f"{self.name(region.buffer)}[{', '.join(dims)}]"

    def buffer(self, buffer: Buffer) -> str:
        shape = ", ".join(map(str, buffer.shape))
        scope = "" if buffer.scope == "global" else f' @"{buffer.scope}"'
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
            case Seq(stmts):
                for inner in stmts:
                    yield from self.stmt(inner)
            case Evaluate(call):
                yield self.call(call)
            case Barrier(scope):
                yield f'barrier("{scope}")'
            case Prefetch(region):
                yield f"prefetch {self.region(region)}"
            case Token(action, source, sink):
                yield f'{action}("{source}" -> "{sink}")'

    def indent(self, s: Stmt) -> Iterator[str]:
        return (f"    {line}" for line in self.stmt(s))

    def loop(self, s: For) -> str:
        kind = "" if s.kind == "serial" else f" {s.kind}"
        tag = f'("{s.thread_tag}")' if s.thread_tag else ""
        notes = "".join(f" @{key}={value!r}" for key, value in s.annotations)
        return f"for {self.name(s.var)} in {s.extent}{kind}{tag}{notes}:"

    def block(self, s: Block) -> Iterator[str]:
        iters = ", ".join(
            f"{self.name(i.var)}: {i.kind[0]}{i.extent} = {self.expr(i.binding)}" for i in s.iters
        )
        yield f"block {s.name}({iters}):"
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
            f"{formal.name}={self.name(ref.buffer)}[{self.list(ref.indices)}]"
            for formal, ref in zip(call.intrin.operands, call.operands, strict=True)
        ]
        params = [f"{name}={self.expr(value)}" for name, value in call.params.items()]
        first = [] if call.first is None else [f"first={self.expr(call.first)}"]
        return f"{call.intrin.name}({', '.join(operands + params + first)})"


def show(node: Expr | Stmt | PrimFunc) -> str:
    """The text of any node."""
    printer = Printer()
    if isinstance(node, Expr):
        return printer.expr(node)
    if isinstance(node, Stmt):
        return "\n".join(printer.stmt(node))
    head = f"func {node.name}({', '.join(map(printer.buffer, node.params))}):"
    return "\n".join([head, *printer.indent(node.body)])
