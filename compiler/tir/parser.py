"""A function's text read back: what :mod:`vdla.compiler.tir.printer` prints, and what people edit.

Grammar of the text; tokens are those of :mod:`vdla.compiler.text`, ``suite`` is a newline and an
indented block, ``x,*`` is any number of x with commas between::

    func    ::= "func" NAME "(" buffer,* ")" ":" suite
    buffer  ::= NAME ":" dtype "[" INT,* "]" ["@" scope: STRING] ["x" copies: INT]
                ["in" low: INT ".." high: INT]
                ("align" "(" dimension: INT "," factor: INT "," offset: INT ")")*
    suite   ::= stmt* | "pass"
    stmt    ::= "for" NAME "in" extent: INT [kind ["(" thread_tag: STRING ")"]] note* ":" suite
              | "block" NAME "(" iter,* ")" ":" ["where" expr] ["reads" region,*]
                ["writes" region,*] ["init" ":" suite] suite     all of them in one suite
              | "alloc" buffer             for the rest of its suite
              | "alloc" buffer ":" suite   or for one of its own
              | "if" expr ":" suite ["else" ":" suite]
              | NAME "[" expr,* "]" "=" expr                     store
              | NAME "(" operand,* param,* ["first" "=" expr] ")" a tensor intrinsic's call
              | "prefetch" region
              | "barrier"
    note    ::= "@" NAME "=" (NUMBER | STRING | "True" | "False")
    iter    ::= NAME ":" ("s" | "r") extent: INT "=" expr        spatial or reduce: s8, r16
    operand ::= NAME "=" NAME "[" expr,* "]"                     the lowest corner in a buffer
    param   ::= NAME "=" expr

Regions and expressions are those of :mod:`vdla.compiler.tir.parse_expr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vdla.compiler.text import ParseError, Token
from vdla.compiler.tir import ir
from vdla.compiler.tir.in_bounds import check_bounds
from vdla.compiler.tir.ir import (
    DTYPES,
    LOOP_KINDS,
    TRUE,
    Alloc,
    Block,
    BlockIter,
    Buffer,
    BufferRef,
    BufferRegion,
    Evaluate,
    Expr,
    For,
    If,
    IntrinCall,
    IRError,
    Pragma,
    PrimFunc,
    Stmt,
    Store,
    Var,
    seq,
)
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.compiler.tir.names import Bound
from vdla.compiler.tir.parse_expr import LARGEST, ExprParser
from vdla.compiler.tir.printer import RESERVED
from vdla.compiler.tir.verify import verify

ITER_KINDS = {"s": "spatial", "r": "reduce"}


def parse(text: str, intrinsics: Iterable[TensorIntrin] = (), *, bounds: bool = True) -> PrimFunc:
    """The function of a text; ``show`` prints it as it was.

    Args:
        text: one ``func``.
        intrinsics: those that it may call.
        bounds: whether every access has to be proved to lie inside its buffer.

    Raises:
        ParseError: the text breaks the grammar, or what it says isn't well formed; names line
            and column.
    """
    parser = _Parser(text, intrinsics, bounds)
    try:
        return parser.function()
    except RecursionError:
        raise parser.read.error("fewer levels of nesting") from None


class _Parser(ExprParser):
    """One method per rule of the grammar."""

    def __init__(self, text: str, intrinsics: Iterable[TensorIntrin], bounds: bool) -> None:
        super().__init__(text)
        self.bounds = bounds
        self.intrinsics = {intrin.name: intrin for intrin in intrinsics}
        self.places: dict[object, Token] = {}

    def function(self) -> PrimFunc:
        start = self.read.expect("func")
        name = self.read.name("the function's name")
        params = tuple(self.read.listed("(", self.buffer, ")"))
        self.read.expect(":")
        func = PrimFunc(name, params, self.suite())
        if self.read.token.kind != "end":
            raise self.read.error("the end of the text")
        try:
            verify(func)
            if self.bounds:
                check_bounds(func)
            return func
        except IRError as error:
            raise self.read.refused(str(error), self.places.get(error.stmt, start)) from None

    def buffer(self) -> Buffer:
        name, token = self.names.new("a buffer's name")
        self.read.expect(":")
        if not self.read.sees(*DTYPES):
            raise self.read.error(f"a dtype of {', '.join(DTYPES)}")
        dtype = self.read.next().text
        shape = tuple(self.read.listed("[", self.extent, "]"))
        scope, copies, values = "global", 1, None
        if self.read.take("@"):
            scope = self.read.string("the buffer's memory")
        if self.read.token.kind == "name" and not self.read.sees("in", "align"):
            _, copies = self.attached("x", "a number of copies (x2)")
        if self.read.take("in"):
            ends = ir.INT_RANGES["int64"][0], ir.INT_RANGES["uint64"][1]
            low = self.read.integer("the least value", *ends)
            self.read.expect("..")
            values = low, self.read.integer("the greatest value", *ends)
        alignments = []
        while self.read.take("align"):
            alignments.append(self.alignment())
        buffer = self.node(
            token, Buffer, name, shape, dtype, scope, copies, values, tuple(alignments)
        )
        self.names.bind(name, buffer, token)
        return buffer

    def alignment(self) -> tuple[int, int, int]:
        """``(dimension, factor, offset)`` of a stride."""
        largest = ir.INT_RANGES["int32"][1]
        self.read.expect("(")
        dimension = self.read.integer("a dimension", 0, largest)
        self.read.expect(",")
        factor = self.read.integer("a factor", 0, largest)
        self.read.expect(",")
        offset = self.read.integer("an offset", 0, largest)
        self.read.expect(")")
        return dimension, factor, offset

    def attached(self, letters: Iterable[str], what: str) -> tuple[str, int]:
        """A letter and a number in one word: ``x2``, ``s8``."""
        token = self.read.token
        letter, digits = token.text[:1], token.text[1:]
        if token.kind != "name" or letter not in letters or not digits.isdecimal():
            raise self.read.error(what)
        if len(digits) > len(str(LARGEST)) or not 1 <= int(digits) <= LARGEST:
            raise self.read.error(f"{what} from 1 to {LARGEST}")
        self.read.next()
        return letter, int(digits)

    def suite(self) -> Stmt:
        with self.names.scope():
            return self.statements(self.read.block("a statement"))

    def statements(self, lines: Iterator[None]) -> Stmt:
        """Statements that are left of a suite."""
        result: list[Stmt] = []
        for _ in lines:
            start = self.read.token
            if self.read.take("alloc"):
                result.append(self.alloc(lines))
            elif self.read.take("pass"):
                self.read.end_line()
            else:
                result.append(self.statement())
                self.places[result[-1]] = start
        return seq(*result)

    def alloc(self, rest: Iterator[None]) -> Stmt:
        start = self.read.token
        with self.names.scope():
            buffer = self.buffer()
            if self.read.take(":"):
                stmt = Alloc(buffer, self.suite())
            else:
                self.read.end_line()
                stmt = Alloc(buffer, self.statements(rest))
        self.places[stmt] = start
        return stmt

    def statement(self) -> Stmt:
        rules = {"for": self.loop, "block": self.block, "if": self.conditional}
        word, kind = self.read.token.text, self.read.token.kind
        if word in rules:
            return rules[word]()
        if word == "prefetch":
            stmt = self.prefetch()
        elif word == "barrier":
            self.read.next()
            stmt = ir.Barrier()
        elif kind not in ("name", "quoted") or word in RESERVED:
            raise self.read.error("a statement")
        elif self.read.after.text == "(":
            stmt = self.call()
        elif self.read.after.text == "[":
            stmt = self.store()
        else:
            self.read.next()
            raise self.read.error("'[' of a store or '(' of a call")
        self.read.end_line()
        return stmt

    def loop(self) -> Stmt:
        self.read.next()
        name, token = self.names.new("the loop's variable")
        self.read.expect("in")
        extent, kind, tag = self.extent(), "serial", ""
        if not self.read.sees(":", "@"):
            if not self.read.sees(*LOOP_KINDS):
                raise self.read.error(f"':', '@' or a kind of {', '.join(LOOP_KINDS)}")
            kind = self.read.next().text
        if self.read.take("("):
            tag = self.read.string("the thread's tag")
            self.read.expect(")")
        notes = []
        while self.read.take("@"):
            key = self.read.name("an annotation's name")
            self.read.expect("=")
            notes.append((key, self.pragma()))
        self.read.expect(":")
        with self.names.scope():
            var = Var(name)
            self.names.bind(name, var, token)
            return For(var, extent, kind, self.suite(), tag, tuple(notes))

    def pragma(self) -> Pragma:
        if self.read.sees("True", "False"):
            return self.read.next().text == "True"
        if self.read.token.kind == "string":
            return self.read.string("a value")
        return self.read.number("a number, a string, True or False")

    def block(self) -> Stmt:
        self.read.next()
        name = self.read.name("the block's name")
        outside = self.names.bound
        with self.names.scope():
            iters = tuple(self.read.listed("(", lambda: self.iterator(outside), ")"))
            self.read.expect(":")
            predicate: Expr = TRUE
            reads: list[BufferRegion] = []
            writes: list[BufferRegion] = []
            init = None
            with self.names.scope():
                lines = self.read.block("a statement")
                next(lines)
                if self.read.take("where"):
                    with self.names.seen_from(outside):
                        predicate = self.condition()
                    self.ended(lines)
                if self.read.take("reads"):
                    reads = self.regions(lines)
                if self.read.take("writes"):
                    writes = self.regions(lines)
                if self.read.take("init"):
                    self.read.expect(":")
                    init = self.suite()
                    self.advance(lines)
                body = self.statements(_again(lines))
        return Block(name, iters, tuple(reads), tuple(writes), body, init, predicate)

    def ended(self, lines: Iterator[None]) -> None:
        """The end of a line of a block's head; a body follows."""
        self.read.end_line()
        self.advance(lines)

    def advance(self, lines: Iterator[None]) -> None:
        if next(lines, self) is self:
            self.read.at -= 1
            raise self.read.error("the block's body")

    def regions(self, lines: Iterator[None]) -> list[BufferRegion]:
        result = [self.region()]
        while self.read.take(","):
            result.append(self.region())
        self.ended(lines)
        return result

    def iterator(self, outside: Bound) -> BlockIter:
        name, token = self.names.new("an iterator's name")
        self.read.expect(":")
        letter, extent = self.attached(ITER_KINDS, "an extent (s8 spatial, r8 reduce)")
        self.read.expect("=")
        with self.names.seen_from(outside):
            binding = self.index()
        var = Var(name, binding.dtype)
        self.names.bind(name, var, token)
        return BlockIter(var, extent, ITER_KINDS[letter], binding)

    def conditional(self) -> Stmt:
        self.read.next()
        cond = self.condition()
        self.read.expect(":")
        then = self.suite()
        if not self.read.take("else"):
            return If(cond, then)
        self.read.expect(":")
        return If(cond, then, self.suite())

    def store(self) -> Stmt:
        buffer, indices = self.element()
        self.read.expect("=")
        return Store(buffer, indices, self.typed(buffer.dtype, f"a value for {buffer.name}"))

    def prefetch(self) -> Stmt:
        self.read.next()
        return ir.Prefetch(self.region())

    def call(self) -> Stmt:
        start = self.read.token
        name = self.read.name("an intrinsic")
        intrin = self.intrinsics.get(name)
        if intrin is None:
            known = ", ".join(self.intrinsics) or "none: no target was given"
            raise self.read.error(f"an intrinsic ({known})", start, name)
        formals = {f.name: f for f in intrin.operands}
        operands: dict[str, BufferRef] = {}
        params: dict[str, Expr] = {}
        wanted = {p.name: p.dtype for p in intrin.params}
        if intrin.is_reduction:
            wanted["first"] = "bool"

        def argument() -> None:
            token = self.read.token
            key = self.read.name("an argument's name")
            if key in operands or key in params:
                raise self.read.error("each argument once", token, f"{key} twice")
            if key not in formals and key not in wanted:
                known = ", ".join((*formals, *wanted))
                raise self.read.error(f"an argument of {name} ({known})", token, key)
            self.read.expect("=")
            if key in formals:
                operands[key] = self.operand(formals[key])
            else:
                params[key] = self.typed(wanted[key], f"{key}:")

        self.read.listed("(", argument, ")")
        missing = [key for key in (*formals, *wanted) if key not in operands and key not in params]
        if missing:
            raise self.read.error(f"{name}'s arguments", start, f"none for {', '.join(missing)}")
        first = params.pop("first") if intrin.is_reduction else None
        refs = tuple(operands[key] for key in formals)
        return Evaluate(IntrinCall(intrin, refs, params, first))

    def operand(self, formal: Buffer) -> BufferRef:
        """A corner in a buffer of the operand's dtype, with its dimensions at least."""
        start = self.read.token
        buffer, indices = self.element()
        if buffer.dtype != formal.dtype:
            wanted = f"{formal.name}: a buffer of {formal.dtype}"
            raise self.read.error(wanted, start, f"{buffer.name} of {buffer.dtype}")
        if len(indices) < len(formal.shape):
            wanted = f"{formal.name}: a buffer of {len(formal.shape)} dimensions or more"
            raise self.read.error(wanted, start, f"{buffer.name} of {len(indices)}")
        return BufferRef(buffer, indices)


def _again(lines: Iterator[None]) -> Iterator[None]:
    """``lines``, with the current line put back in front."""
    yield None
    yield from lines


__all__ = ["ParseError", "parse"]
