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
    note    ::= "@" NAME "=" (NUMBER | STRING | "True" | "False")
    iter    ::= NAME ":" ("s" | "r") extent: INT "=" expr        spatial or reduce: s8, r16
    region  ::= NAME "[" (expr ["+:" extent: INT]),* "]"         from an element on; without it, one
    operand ::= NAME "=" NAME "[" expr,* "]"                     the lowest corner in a buffer
    param   ::= NAME "=" expr

    expr    ::= expr op expr | "not" expr | "(" expr ")" | literal | NAME | NAME "[" expr,* "]"
              | ("min" | "max") "(" expr "," expr ")" | "select" "(" cond "," a "," b ")"
              | function "(" expr,* ")" | dtype "(" literal ")" | dtype "(" expr ")"
    op, from the loosest to the tightest, all from left to right; comparisons don't chain::

        or   and   (not)   < <= > >= == !=   |   ^   &   << >>   + -   * / // %

A bare literal is an int32, with a point or an exponent (or ``inf``, ``nan``) a float32, ``True``
and ``False`` are bool; ``int8(3)`` is a literal of another dtype, so that the cast of a literal
names both: ``int8(int32(3))``. A name means the loop, iterator or buffer around it that binds it.
Nothing converts by itself: operands have one dtype, or there is a cast.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from vdla.compiler.text import ParseError, Reader, Token
from vdla.compiler.tir import ir
from vdla.compiler.tir.intrin import TensorIntrin
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
from vdla.compiler.tir.printer import COMPARISON, NOT, RESERVED, SYMBOLS
from vdla.compiler.tir.verify import verify

MARKS = (
    *(symbol for symbol, _ in SYMBOLS.values() if not symbol.isalpha()),
    "(", ")", "[", "]", ",", ":", "+:", "..", "=", "@",
)  # fmt: skip
OPERATORS = {symbol: (op, level) for op, (symbol, level) in SYMBOLS.items()}
ITER_KINDS = {"s": "spatial", "r": "reduce"}
LARGEST = (1 << 31) - 1  # of an extent: loop variables are int32
Names = ChainMap[str, tuple[Var | Buffer, Token]]  # what is bound, and where
Made = TypeVar("Made")


def parse(text: str, intrinsics: Iterable[TensorIntrin] = ()) -> PrimFunc:
    """The function of a text; ``show`` prints it as it was.

    Args:
        text: one ``func``.
        intrinsics: those that it may call.

    Raises:
        ParseError: the text breaks the grammar, or what it says isn't well formed; names line
            and column.
    """
    parser = _Parser(text, intrinsics)
    try:
        return parser.function()
    except RecursionError:
        raise parser.read.error("fewer levels of nesting") from None


class _Parser:
    """One method per rule of the grammar."""

    def __init__(self, text: str, intrinsics: Iterable[TensorIntrin]) -> None:
        self.read = Reader(text, MARKS, RESERVED)
        self.intrinsics = {intrin.name: intrin for intrin in intrinsics}
        self.names: Names = ChainMap()
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
            return verify(func)
        except IRError as error:
            raise self.read.refused(str(error), self.places.get(error.stmt, start)) from None

    # --- names ---

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is bound inside is forgotten after it."""
        self.names = self.names.new_child()
        yield
        self.names = self.names.parents

    @contextmanager
    def seen_from(self, names: Names) -> Iterator[None]:
        """Inside, other names are bound than around it."""
        around, self.names = self.names, names
        yield
        self.names = around

    def new_name(self, what: str) -> tuple[str, Token]:
        """A name that nothing around it has."""
        token = self.read.token
        name = self.read.name(what)
        if name in self.names:
            line = self.names[name][1].line
            raise self.read.error("a new name", token, f"{name}, which line {line} binds")
        return name, token

    def bind(self, name: str, thing: Var | Buffer, token: Token) -> None:
        self.names[name] = (thing, token)

    def known(self, kind: type[Made], what: str) -> Made:
        """The variable or buffer of a name."""
        token = self.read.token
        name = self.read.name(what)
        thing = self.names[name][0] if name in self.names else None
        if not isinstance(thing, kind):
            group = [n for n, (thing, _) in self.names.items() if isinstance(thing, kind)]
            choice = f" of {', '.join(sorted(group))}" if group else ""
            raise self.read.error(f"{what}{choice}", token, name)
        return thing

    def made(self, token: Token, make: Callable[..., Made], *args: object) -> Made:
        """A node; what its constructor refuses is refused at the token."""
        try:
            return make(*args)
        except IRError as error:
            raise self.read.refused(str(error), token) from None

    # --- parts ---

    def extent(self) -> int:
        return self.read.integer("a whole number", 1, LARGEST)

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

    def buffer(self) -> Buffer:
        name, token = self.new_name("a buffer's name")
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
            ends = ir.INT_RANGES["int64"]
            low = self.read.integer("the least value", *ends)
            self.read.expect("..")
            values = low, self.read.integer("the greatest value", *ends)
        alignments = []
        while self.read.take("align"):
            alignments.append(self.alignment())
        made = self.made(
            token, Buffer, name, shape, dtype, scope, copies, values, tuple(alignments)
        )
        self.bind(name, made, token)
        return made

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

    def element(self) -> tuple[Buffer, tuple[Expr, ...]]:
        """``NAME[expr, …]``, with as many indices as the buffer has dimensions."""
        start = self.read.token
        buffer = self.known(Buffer, "a buffer")
        indices = tuple(self.read.listed("[", self.index, "]"))
        self.check_rank(buffer, len(indices), start)
        return buffer, indices

    def index(self) -> Expr:
        token = self.read.token
        expr = self.expr()
        if expr.dtype not in ("int32", "int64"):
            raise self.read.error("an index of int32 or int64", token, expr.dtype)
        return expr

    def check_rank(self, buffer: Buffer, found: int, token: Token) -> None:
        if found != len(buffer.shape):
            wanted = f"{len(buffer.shape)} indices of {buffer.name}"
            raise self.read.error(wanted, token, str(found))

    def region(self) -> BufferRegion:
        start = self.read.token
        buffer = self.known(Buffer, "a buffer")
        ranges = tuple(self.read.listed("[", self.range, "]"))
        self.check_rank(buffer, len(ranges), start)
        return BufferRegion(buffer, ranges)

    def range(self) -> tuple[Expr, int]:
        low = self.index()
        return low, self.extent() if self.read.take("+:") else 1

    def condition(self) -> Expr:
        return self.typed("bool", "a condition")

    def typed(self, dtype: str, what: str) -> Expr:
        token = self.read.token
        expr = self.expr()
        if expr.dtype != dtype:
            raise self.read.error(f"{what} of {dtype}", token, expr.dtype)
        return expr

    # --- statements ---

    def suite(self) -> Stmt:
        with self.scope():
            return self.statements(self.read.block("a statement"))

    def statements(self, lines: Iterator[None]) -> Stmt:
        """What is left of a suite."""
        found: list[Stmt] = []
        for _ in lines:
            start = self.read.token
            if self.read.take("alloc"):
                found.append(self.alloc(lines))
            elif self.read.take("pass"):
                self.read.end_line()
            else:
                found.append(self.statement())
                self.places[found[-1]] = start
        return seq(*found)

    def alloc(self, rest: Iterator[None]) -> Stmt:
        start = self.read.token
        with self.scope():
            buffer = self.buffer()
            if self.read.take(":"):
                made = Alloc(buffer, self.suite())
            else:
                self.read.end_line()
                made = Alloc(buffer, self.statements(rest))
        self.places[made] = start
        return made

    def statement(self) -> Stmt:
        rules = {"for": self.loop, "block": self.block, "if": self.conditional}
        word, kind = self.read.token.text, self.read.token.kind
        if word in rules:
            return rules[word]()
        if word == "prefetch":
            made = self.prefetch()
        elif kind not in ("name", "quoted") or word in RESERVED:
            raise self.read.error("a statement")
        elif self.read.after.text == "(":
            made = self.call()
        elif self.read.after.text == "[":
            made = self.store()
        else:
            self.read.next()
            raise self.read.error("'[' of a store or '(' of a call")
        self.read.end_line()
        return made

    def loop(self) -> Stmt:
        self.read.next()
        name, token = self.new_name("the loop's variable")
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
        with self.scope():
            var = Var(name)
            self.bind(name, var, token)
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
        outside = self.names
        with self.scope():
            iters = tuple(self.read.listed("(", lambda: self.iterator(outside), ")"))
            self.read.expect(":")
            predicate: Expr = TRUE
            reads: list[BufferRegion] = []
            writes: list[BufferRegion] = []
            init = None
            with self.scope():
                lines = self.read.block("a statement")
                next(lines)
                if self.read.take("where"):
                    with self.seen_from(outside):
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
        found = [self.region()]
        while self.read.take(","):
            found.append(self.region())
        self.ended(lines)
        return found

    def iterator(self, outside: Names) -> BlockIter:
        name, token = self.new_name("an iterator's name")
        self.read.expect(":")
        letter, extent = self.attached(ITER_KINDS, "an extent (s8 spatial, r8 reduce)")
        self.read.expect("=")
        with self.seen_from(outside):
            binding = self.index()
        var = Var(name, binding.dtype)
        self.bind(name, var, token)
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

    # --- expressions ---

    def expr(self, level: int = 0) -> Expr:
        """An expression whose operators bind as tightly as ``level``."""
        left: Expr
        if self.read.sees("not") and level <= NOT:
            token = self.read.next()
            own, left = NOT, self.made(token, ir.Not, self.expr(NOT))
        else:
            own, left = COMPARISON + 1, self.atom()
        while self.read.sees(*OPERATORS):
            op, binds = OPERATORS[self.read.token.text]
            if binds < level or binds > own == NOT:
                break
            if binds == own == COMPARISON:
                raise self.read.error("'and', 'or' or brackets: comparisons don't chain")
            token = self.read.next()
            left = self.made(token, ir.binary, op, left, self.expr(binds + 1))
            own = binds
        return left

    def atom(self) -> Expr:
        token = self.read.token
        if self.read.take("("):
            expr = self.expr()
            self.read.expect(")")
            return expr
        if self.sees_literal():
            return self.literal()
        if token.kind not in ("name", "quoted") or token.text in RESERVED:
            raise self.read.error("a value")
        if self.read.after.text == "(" and token.kind == "name":
            return self.function_call()
        if self.read.after.text == "[":
            return ir.Load(*self.element())
        return self.known(Var, "a variable")

    def sees_literal(self) -> bool:
        kind = self.read.token.kind
        return kind in ("int", "float") or self.read.sees("-", "inf", "nan", "True", "False")

    def literal(self) -> Expr:
        """A literal of its own dtype."""
        token = self.read.token
        if self.read.sees("True", "False"):
            return ir.const(self.read.next().text == "True")
        return self.made(token, ir.const, self.number())

    def number(self) -> int | float:
        negated = self.read.sees("-") and self.read.after
        if negated and negated.kind not in ("int", "float") and negated.text not in ("inf", "nan"):
            self.read.next()
            raise self.read.error("a number after '-'; an expression is negated as 0 - x")
        return self.read.number("a number")

    def function_call(self) -> Expr:
        token = self.read.next()
        name = token.text
        if name in DTYPES:
            return self.converted(name, token)
        counts = {"min": 2, "max": 2, "select": 3}
        if name not in counts and name not in ir.CALLS:
            known = ", ".join((*DTYPES, *counts, *ir.CALLS))
            raise self.read.error(f"a function ({known})", token)
        args = self.read.listed("(", self.expr, ")")
        if len(args) != counts.get(name, len(args)):
            raise self.read.error(f"{counts[name]} arguments of {name}", token, str(len(args)))
        if name == "select":
            return self.made(token, ir.Select, *args)
        if name in counts:
            return self.made(token, ir.Binary, name, *args)
        return self.made(token, ir.call, name, *args)

    def converted(self, dtype: str, token: Token) -> Expr:
        """``dtype(3)``, a literal; ``dtype(expr)``, a cast."""
        self.read.expect("(")
        first = self.read.at
        if self.sees_literal() and not self.read.sees("True", "False"):
            value = self.number()
            if self.read.sees(")"):
                self.read.next()
                return self.made(self.read.tokens[first], ir.const, value, dtype)
            self.read.at = first
        made = ir.Cast(self.expr(), dtype)
        self.read.expect(")")
        return made


def _again(lines: Iterator[None]) -> Iterator[None]:
    """The lines, the one that is begun among them."""
    yield None
    yield from lines


__all__ = ["ParseError", "parse"]
