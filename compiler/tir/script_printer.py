"""A function as decorated Python, which ``script`` opens with the grammar of and reads back."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite

from vdla.compiler.tir.ir import (
    LOOP_KINDS,
    TRUE,
    Alloc,
    Barrier,
    Block,
    Buffer,
    BufferRef,
    BufferRegion,
    Const,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    Pragma,
    Prefetch,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    sequence,
)
from vdla.compiler.tir.printer import ExprPrinter

MODULE = "vdla"
BUILTINS = ("range", "min", "max", "abs")
STATEMENTS = (
    *LOOP_KINDS, "alloc", "block", "spatial", "reduce", "where", "reads", "writes", "init",
    "prefetch", "barrier", "call",
)  # fmt: skip
ADD = 9  # how tightly a sum binds


def show_script(func: PrimFunc, target: str = "") -> str:
    """The function as Python under ``@vdla.prim_func``; ``target`` names what its intrinsics are
    of."""
    return "\n".join(_ScriptPrinter().function(func, target)) + "\n"


class _ScriptPrinter(ExprPrinter):
    """Writes nodes as Python."""

    def __init__(self) -> None:
        super().__init__()
        self.identifiers: dict[object, str] = {}

    # Words ------------------------------------------------------------------------------------

    def name(self, thing: Var | Buffer) -> str:
        """An identifier of Python, distinct from all others."""
        if thing not in self.identifiers:
            wanted = re.sub(r"[^0-9A-Za-z_]", "_", self.names(thing))
            if not wanted or wanted[0].isdigit() or keyword.iskeyword(wanted):
                wanted = f"v_{wanted}"
            name, n, used = wanted, 1, {MODULE, *BUILTINS, *self.identifiers.values()}
            while name in used:
                name, n = f"{wanted}_{n}", n + 1
            self.identifiers[thing] = name
        return self.identifiers[thing]

    def word(self, name: str) -> str:
        """A function of the module, or one of Python's own."""
        return name if name in BUILTINS else f"{MODULE}.{name}"

    def number(self, value: int | float, dtype: str) -> str:
        """A number; infinities and NaN are the module's."""
        text = super().number(value, dtype)
        if isinstance(value, float) and not isfinite(value):
            return f"-{self.word(text[1:])}" if text[0] == "-" else self.word(text)
        return text

    def own_name(self, thing: Var | Buffer) -> list[tuple[str, object]]:
        """The argument that keeps a name which Python doesn't have."""
        identifier = self.name(thing)
        return [] if identifier == self.names(thing) else [("name", self.names(thing))]

    # Places -----------------------------------------------------------------------------------

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """An element of a buffer; of one without dimensions, ``A[()]``."""
        return f"{self.name(buffer)}[{self.list(indices) or '()'}]"

    def region(self, region: BufferRegion) -> str:
        """A region as slices: ``A[y : y + 4, x]``."""
        dims = ", ".join(self.slice(low, extent) for low, extent in region.ranges)
        return f"{self.name(region.buffer)}[{dims or '()'}]"

    def slice(self, low: Expr, extent: int) -> str:
        """The part of a dimension from an index on."""
        if extent == 1:
            return self.expr(low)
        if isinstance(low, Const) and low.dtype == "int32":
            return f"{self.expr(low)} : {int(low.value) + extent}"
        return f"{self.expr(low)} : {self.expr(low, ADD)} + {extent}"

    def buffer(self, word: str, buffer: Buffer) -> str:
        """A buffer's type, or its allocation: ``vdla.alloc((4,), "int32", scope="vdla.acc")``."""
        more: list[tuple[str, object]] = []
        if buffer.scope != "global":
            more.append(("scope", buffer.scope))
        if buffer.copies > 1:
            more.append(("copies", buffer.copies))
        if buffer.value_range:
            more.append(("value_range", buffer.value_range))
        if buffer.alignments:
            more.append(("align", [*buffer.alignments]))
        more += self.own_name(buffer)
        named = "".join(f", {key}={self.value(value)}" for key, value in more)
        return f'{self.word(word)}({buffer.shape!r}, "{buffer.dtype}"{named})'

    # Statements -------------------------------------------------------------------------------

    def function(self, func: PrimFunc, target: str) -> Iterator[str]:
        """Lines of a function with its decorator."""
        params = [f"{self.name(p)}: {self.buffer('Buffer', p)}" for p in func.params]
        name = func.name
        if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
            name = "main"
        given = {"target": target} if target else {}
        given |= {"name": func.name} if name != func.name else {}
        how = ", ".join(f"{key}={self.value(value)}" for key, value in given.items())
        yield f"@{self.word('prim_func')}" + (f"({how})" if how else "")
        yield f"def {name}({', '.join(params)}):"
        yield from self.indent(self.stmt(func.body))

    def stmt(self, s: Stmt) -> Iterator[str]:
        """Lines of a statement."""
        match s:
            case For():
                yield f"for {self.name(s.var)} in {self.loop(s)}:"
                yield from self.indent(self.stmt(s.body))
            case Block():
                yield from self.block(s)
            case Alloc(buffer, body):
                yield f"{self.name(buffer)} = {self.buffer('alloc', buffer)}"
                yield from self.stmt(body)
            case Store(buffer, indices, value):
                yield f"{self.element(buffer, indices)} = {self.expr(value)}"
            case If(cond, then, orelse):
                yield f"if {self.expr(cond)}:"
                yield from self.indent(self.stmt(then))
                if orelse is not None:
                    yield "else:"
                    yield from self.indent(self.stmt(orelse))
            case Seq():
                yield from self.sequence(sequence(s))
            case Evaluate(call):
                yield self.call(call)
            case Prefetch(region):
                yield f"{self.word('prefetch')}({self.region(region)})"
            case Barrier():
                yield f"{self.word('barrier')}()"

    def sequence(self, stmts: tuple[Stmt, ...]) -> Iterator[str]:
        """Lines of statements; an allocation that ends before the last one has a suite."""
        for inner in stmts:
            if isinstance(inner, Alloc) and inner is not stmts[-1]:
                name = self.name(inner.buffer)
                yield f"with {self.buffer('alloc', inner.buffer)} as {name}:"
                yield from self.indent(self.stmt(inner.body))
            else:
                yield from self.stmt(inner)

    def indent(self, lines: Iterable[str]) -> Iterator[str]:
        """Lines of a suite."""
        return (f"    {line}" for line in list(lines) or ["pass"])

    def loop(self, s: For) -> str:
        """The steps of a loop: ``range(8)``, ``vdla.vthread(8, threads=2)``."""
        own = self.own_name(s.var) + ([("tag", s.thread_tag)] if s.thread_tag else [])
        notes = dict(s.annotations)
        if len(notes) == len(s.annotations) and all(map(_is_plain, notes.items())):
            own += notes.items()
        elif s.annotations:
            own.append(("notes", [*s.annotations]))
        named = "".join(f", {key}={self.value(value)}" for key, value in own)
        plain = s.kind == "serial" and not own
        return f"{'range' if plain else self.word(s.kind)}({s.extent}{named})"

    def value(self, value: object) -> str:
        """A plain value as Python has it, texts in double quotes."""
        if isinstance(value, list | tuple):
            parts = ", ".join(map(self.value, value))
            return f"[{parts}]" if isinstance(value, list) else f"({parts})"
        if isinstance(value, str):
            return f'"{"".join(map(_character, value))}"'
        if isinstance(value, float):
            return self.number(value, "float32")
        return repr(value)

    def block(self, s: Block) -> Iterator[str]:
        """Lines of a block: its iterators, what it touches, its init and its body."""
        yield f"with {self.word('block')}({self.value(s.name)}):"
        lines: list[str] = []
        for i in s.iters:
            more = "".join(f", {key}={self.value(value)}" for key, value in self.own_name(i.var))
            bound = f"{i.extent}, {self.expr(i.binding)}{more}"
            lines.append(f"{self.name(i.var)} = {self.word(i.kind)}({bound})")
        if s.predicate != TRUE:
            lines.append(f"{self.word('where')}({self.expr(s.predicate)})")
        for word, regions in (("reads", s.reads), ("writes", s.writes)):
            if regions:
                lines.append(f"{self.word(word)}({', '.join(map(self.region, regions))})")
        if s.init is not None:
            lines += [f"with {self.word('init')}():", *self.indent(self.stmt(s.init))]
        yield from self.indent([*lines, *(list(self.stmt(s.body)) or ["pass"])])

    def call(self, call: IntrinCall) -> str:
        """A tensor intrinsic's call."""
        pairs: list[tuple[str, str]] = [
            (formal.name, self.corner(ref))
            for formal, ref in zip(call.intrin.operands, call.operands, strict=True)
        ]
        pairs += [(name, self.expr(value)) for name, value in call.params.items()]
        pairs += [] if call.first is None else [("first", self.expr(call.first))]
        name = call.intrin.name
        if _is_word(name) and name not in STATEMENTS:
            return f"{self.word(name)}({self.arguments(dict(pairs))})"
        return f"{self.word('call')}({self.value(name)}, {self.arguments(dict(pairs))})"

    def corner(self, ref: BufferRef) -> str:
        """The lowest corner of an operand."""
        return self.element(ref.buffer, ref.indices)

    def arguments(self, given: Mapping[str, str]) -> str:
        """Arguments by name; those that Python can't spell stand in a dictionary."""
        odd = [f"{self.value(name)}: {text}" for name, text in given.items() if not _is_word(name)]
        plain = [f"{name}={text}" for name, text in given.items() if _is_word(name)]
        return ", ".join([*plain, *([f"**{{{', '.join(odd)}}}"] if odd else [])])


def _character(c: str) -> str:
    """A character of a text in double quotes."""
    if c == '"' or not c.isprintable() or c == "\\":
        return '\\"' if c == '"' else c.encode("unicode_escape").decode()
    return c


def _is_word(name: str) -> bool:
    """Whether Python has a name as a keyword argument."""
    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def _is_plain(note: tuple[str, Pragma]) -> bool:
    """Whether an annotation can be an argument of a loop."""
    return _is_word(note[0]) and note[0] not in ("name", "tag", "notes")
