"""A function written as Python, read by Python's own parser; it is never run.

Grammar, ``expr`` and ``region`` as in :mod:`vdla.compiler.tir.script_expr`, ``x,*`` any number of x
with commas between; ``vdla.`` may be any module's name, or left out::

    func    ::= "@vdla.prim_func" ["(" target=…, settings=…, name=… ")"]
                "def" NAME "(" (NAME ":" "vdla.Buffer(" buffer ")"),* "):" suite
    buffer  ::= shape, dtype, scope="vdla.acc", copies=2, value_range=(-128, 127),
                align=[(dimension, factor, offset), …], name="as the text has it"
    suite   ::= stmt*
    stmt    ::= "for" NAME "in" ("range" | "vdla." KIND) "(" extent, tag=…, note=… "):" suite
              | NAME "= vdla.alloc(" buffer ")"                  for the rest of its suite
              | "with vdla.alloc(" buffer ") as" NAME ":" suite  or for one of its own
              | "if" expr ":" suite ["else:" suite]
              | NAME "[" expr,* "]" "=" expr                     and "+=" and its like
              | "vdla." INTRINSIC "(" operand,* ")"              dst=A[i, 0], imm=3, first=k == 0
              | "vdla.prefetch(" region ")" | "vdla.barrier()" | "pass"
              | "with vdla.block(" "name" "):" head* suite
    head    ::= NAME "= vdla.spatial(" extent, expr ")" | NAME "= vdla.reduce(" extent, expr ")"
              | "vdla.where(" expr ")" | "vdla.reads(" region,* ")" | "vdla.writes(" region,* ")"
              | "with vdla.init():" suite

KIND is one of ``serial``, ``parallel``, ``vectorized``, ``unrolled``, ``thread`` and ``vthread``.
Names that Python can't spell are texts: ``name="a b"`` of a loop or a buffer, a loop's
``notes=[("a b", 1)]``, ``**{"a b": 1}`` among an intrinsic's arguments, and ``vdla.call("a b", …)``
for one whose name is such.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from vdla.compiler.tir import ir, script_source
from vdla.compiler.tir.in_bounds import check_bounds
from vdla.compiler.tir.ir import (
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
from vdla.compiler.tir.script_expr import OPERATORS, Bound, ScriptExprs
from vdla.compiler.tir.script_source import Source, word_of
from vdla.compiler.tir.verify import verify

Intrinsics = Callable[[], Iterable[TensorIntrin]]
ITERATORS = ("spatial", "reduce")
BUFFER = ("shape", "dtype", "scope", "copies", "value_range", "align", "name")
STATEMENT = "a statement: for, if, with, pass, A[i] = …, name = vdla.alloc(…) or a call"


def read_script(
    source: Source, intrinsics: Intrinsics, name: str = "", *, bounds: bool = True
) -> PrimFunc:
    """The function of a script; ``show_script`` prints it as it was.

    Args:
        source: one function.
        intrinsics: gives those that it may call, when it first calls one.
        name: the function's; by default that of Python's function.
        bounds: whether every access has to be proved to lie inside its buffer.

    Raises:
        ParseError: the script breaks the grammar, or what it says isn't well formed; names file,
            line and column.
    """
    tree = source.tree()
    try:
        return _Script(source, intrinsics, bounds).function(tree, name)
    except RecursionError:
        raise source.expected("fewer levels of nesting", tree, "more") from None


class _Script(ScriptExprs):
    """One method per rule of the grammar."""

    def __init__(self, source: Source, intrinsics: Intrinsics, bounds: bool) -> None:
        super().__init__(source)
        self.intrinsics, self.bounds = intrinsics, bounds
        self.known_intrinsics: Mapping[str, TensorIntrin] | None = None
        self.places: dict[object, ast.AST] = {}

    def function(self, tree: ast.FunctionDef, name: str) -> PrimFunc:
        args = tree.args
        plain = not (args.vararg or args.kwarg or args.kwonlyargs or args.defaults)
        if not plain or args.posonlyargs:
            raise self.source.expected("parameters as A: vdla.Buffer(shape, dtype)", tree, "others")
        params = tuple(map(self.param, args.args))
        body = tree.body
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]  # a docstring
        func = PrimFunc(name or tree.name, params, self.suite(body))
        try:
            verify(func)
            if self.bounds:
                check_bounds(func)
            return func
        except IRError as error:
            raise self.source.refused(str(error), self.places.get(error.stmt, tree)) from None

    def param(self, arg: ast.arg) -> Buffer:
        """A parameter with its type."""
        wanted = 'a parameter\'s type, as vdla.Buffer((4, 16), "int8")'
        call = arg.annotation
        if not isinstance(call, ast.Call) or word_of(call.func) != "Buffer":
            raise self.source.expected(wanted, call or arg, "" if call else arg.arg)
        made = self.source.types.get(arg.arg)
        if isinstance(made, script_source.Buffer):
            return self.buffer_of(arg.arg, {k: v for k, v in vars(made).items() if v != ""}, call)
        return self.buffer(arg.arg, call, arg)

    def buffer(self, name: str, call: ast.Call, at: ast.AST) -> Buffer:
        """A buffer of what a call says; from here on a name means it."""
        given = self.named(call, BUFFER)
        for wanted in ("shape", "dtype"):
            if wanted not in given:
                raise self.source.expected(f"a buffer's {wanted}", call)
        values = {key: self.source.constant(e, f"a buffer's {key}") for key, e in given.items()}
        return self.buffer_of(name, values, call)

    def buffer_of(self, name: str, values: Mapping[str, object], at: ast.AST) -> Buffer:
        """A buffer of some values by name; from here on a name means it."""
        shape = values["shape"]
        dims = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
        own, scope = str(values.get("name", name)), str(values.get("scope", "global"))
        more = values.get("copies", 1), values.get("value_range"), values.get("align", [])
        buffer = self.node(at, _buffer, own, dims, str(values["dtype"]), scope, *more)
        self.bind(name, buffer, at)
        return buffer

    def named(self, call: ast.Call, known: Iterable[str], most: int = 2) -> dict[str, ast.expr]:
        """A call's arguments by name; the first ``most`` may stand without."""
        names = list(known)
        if len(call.args) > most or any(isinstance(each, ast.Starred) for each in call.args):
            raise self.source.expected(f"arguments {', '.join(names)}", call)
        result = dict(zip(names, call.args, strict=False))
        for each in call.keywords:
            if each.arg not in names or each.arg in result:
                raise self.source.expected(f"each of {', '.join(names)} once", each.value,
                                           each.arg or "**")  # fmt: skip
            result[each.arg] = each.value
        return result

    # Statements -------------------------------------------------------------------------------

    def suite(self, body: list[ast.stmt]) -> Stmt:
        with self.scope():
            return self.statements(body)

    def statements(self, body: list[ast.stmt]) -> Stmt:
        """Statements that are left of a suite."""
        result: list[Stmt] = []
        for n, node in enumerate(body):
            if isinstance(node, ast.Pass):
                continue
            if (name := self.allocated(node)) is not None:
                assert isinstance(node, ast.Assign)
                assert isinstance(node.value, ast.Call)
                with self.scope():
                    buffer = self.buffer(name, node.value, node)
                    result.append(Alloc(buffer, self.statements(body[n + 1 :])))
                self.places[result[-1]] = node
                break
            result.append(self.statement(node))
            self.places[result[-1]] = node
        return seq(*result)

    def allocated(self, node: ast.stmt) -> str | None:
        """The name of a buffer that a statement allocates; None of any other statement."""
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(func)) if word_of(func) == "alloc":
                return name
        return None

    def statement(self, node: ast.stmt) -> Stmt:
        match node:
            case ast.For(ast.Name(name), ast.Call() as steps, body, []):
                return self.loop(name, steps, body, node)
            case ast.If(cond, body, orelse):
                then = self.typed("bool", "a condition", cond), self.suite(body)
                return If(*then, self.suite(orelse) if orelse else None)
            case ast.With([ast.withitem(ast.Call() as call, name)], body):
                return self.with_call(call, name, body)
            case ast.Assign([ast.Subscript() as place], value):
                return self.store(place, value)
            case ast.AugAssign(ast.Subscript() as place, op, value) if type(op) in OPERATORS:
                old = ast.copy_location(ast.Subscript(place.value, place.slice, ast.Load()), place)
                return self.store(place, ast.copy_location(ast.BinOp(old, op, value), node))
            case ast.Expr(ast.Call() as call):
                return self.called(call)
        raise self.source.expected(STATEMENT, node)

    def loop(self, name: str, steps: ast.Call, body: list[ast.stmt], at: ast.For) -> Stmt:
        word = word_of(steps.func)
        kind = "serial" if word == "range" else word
        if kind not in LOOP_KINDS:
            raise self.source.expected(f"range or a kind of {', '.join(LOOP_KINDS)}", steps)
        if len(steps.args) != 1:
            raise self.source.expected("one number of steps", steps)
        extent = self.extent(steps.args[0])
        more = {str(k.arg): self.source.constant(k.value, "a number or a text")
                for k in steps.keywords}  # fmt: skip
        own, tag = str(more.pop("name", name)), str(more.pop("tag", ""))
        listed = more.pop("notes", [])
        notes = [*more.items(), *(listed if isinstance(listed, list | tuple) else [])]
        if not all(isinstance(each, tuple) and _is_note(*each) for each in notes):
            raise self.source.expected("notes as [(name, number or text)]", steps)
        with self.scope():
            var = Var(own)
            self.bind(name, var, at.target)
            return For(var, extent, kind, self.suite(body), tag, tuple(notes))

    def store(self, place: ast.Subscript, value: ast.expr) -> Stmt:
        buffer, indices = self.element(place)
        return Store(buffer, indices, self.typed(buffer.dtype, f"a value for {buffer.name}", value))

    def with_call(self, call: ast.Call, name: ast.expr | None, body: list[ast.stmt]) -> Stmt:
        """An allocation with a suite of its own, or a block."""
        word = word_of(call.func)
        if word == "alloc" and isinstance(name, ast.Name):
            with self.scope():
                return Alloc(self.buffer(name.id, call, name), self.suite(body))
        if word == "block" and name is None:
            label = self.named(call, ["name"], 1).get("name")
            text = None if label is None else self.source.constant(label, "the block's name")
            if not isinstance(text, str):
                raise self.source.expected("the block's name", call)
            return self.block(text, body)
        raise self.source.expected("vdla.alloc(…) as NAME or vdla.block(…)", call)

    def called(self, call: ast.Call) -> Stmt:
        """A statement that looks like a function's call."""
        word = word_of(call.func)
        if word == "barrier" and not call.args and not call.keywords:
            return ir.Barrier()
        if word == "prefetch" and len(call.args) == 1 and not call.keywords:
            return ir.Prefetch(self.region(call.args[0]))
        return self.intrinsic(word, call)

    # Blocks -----------------------------------------------------------------------------------

    def block(self, name: str, body: list[ast.stmt]) -> Stmt:
        outside, iters = self.bound, list[BlockIter]()
        regions: dict[str, tuple[BufferRegion, ...]] = {"reads": (), "writes": ()}
        init: Stmt | None = None
        predicate: Expr = TRUE
        with self.scope():
            for n, node in enumerate(body):
                match node:
                    case ast.Assign([ast.Name(own)], ast.Call(func) as call) if (
                        word_of(func) in ITERATORS
                    ):
                        iters.append(self.iterator(own, call, outside, node))
                    case ast.Expr(ast.Call(func, args, [])) if word_of(func) in regions:
                        regions[word_of(func)] = tuple(map(self.region, args))
                    case ast.Expr(ast.Call(func, [cond], [])) if word_of(func) == "where":
                        with self.seen_from(outside):
                            predicate = self.typed("bool", "a condition", cond)
                    case ast.With([ast.withitem(ast.Call(func), None)], first) if (
                        word_of(func) == "init"
                    ):
                        init = self.suite(first)
                    case _:
                        body = body[n:]
                        break
            else:
                body = []
            inner = self.suite(body)
        return Block(
            name, tuple(iters), regions["reads"], regions["writes"], inner, init, predicate
        )

    def iterator(self, name: str, call: ast.Call, outside: Bound, at: ast.AST) -> BlockIter:
        """An iterator, bound to an expression over the loops around the block."""
        given = self.named(call, ("extent", "binding", "name"))
        if "extent" not in given or "binding" not in given:
            raise self.source.expected("an iterator's extent and binding", call)
        with self.seen_from(outside):
            binding = self.index(given["binding"])
        own = self.source.constant(given["name"], "a name") if "name" in given else name
        var = Var(str(own), binding.dtype)
        self.bind(name, var, at)
        return BlockIter(var, self.extent(given["extent"]), word_of(call.func), binding)

    # Intrinsics -------------------------------------------------------------------------------

    def intrinsic(self, word: str, call: ast.Call) -> Stmt:
        """A tensor intrinsic's call."""
        if word == "call" and call.args:
            word = str(self.source.constant(call.args[0], "an intrinsic's name"))
        elif call.args:
            raise self.source.expected("arguments by name", call.args[0])
        if self.known_intrinsics is None:
            self.known_intrinsics = {each.name: each for each in self.intrinsics()}
        intrin = self.known_intrinsics.get(word)
        if intrin is None:
            known = ", ".join(self.known_intrinsics) or "none: the target has none"
            raise self.source.expected(f"an intrinsic ({known})", call, word or "another call")
        formals = {formal.name: formal for formal in intrin.operands}
        wanted = {param.name: param.dtype for param in intrin.params}
        wanted |= {"first": "bool"} if intrin.is_reduction else {}
        operands: dict[str, BufferRef] = {}
        params: dict[str, Expr] = {}
        for key, value in self.arguments(call):
            if key in operands or key in params:
                raise self.source.expected("each argument once", value, f"{key} twice")
            if key not in formals and key not in wanted:
                known = ", ".join((*formals, *wanted))
                raise self.source.expected(f"an argument of {word} ({known})", value, key)
            if key in formals:
                operands[key] = self.operand(formals[key], value)
            else:
                params[key] = self.typed(wanted[key], f"{key}:", value)
        missing = [key for key in (*formals, *wanted) if key not in operands and key not in params]
        if missing:
            raise self.source.expected(
                f"{word}'s arguments", call, f"none for {', '.join(missing)}"
            )
        first = params.pop("first") if intrin.is_reduction else None
        refs = tuple(operands[key] for key in formals)
        return Evaluate(IntrinCall(intrin, refs, params, first))

    def arguments(self, call: ast.Call) -> Iterable[tuple[str, ast.expr]]:
        """A call's arguments by name; those of a dictionary behind two stars, too."""
        for each in call.keywords:
            if each.arg is not None:
                yield each.arg, each.value
            elif isinstance(each.value, ast.Dict) and None not in each.value.keys:
                for key, value in zip(each.value.keys, each.value.values, strict=True):
                    assert key is not None
                    yield str(self.source.constant(key, "an argument's name")), value
            else:
                raise self.source.expected("arguments by name", each.value)

    def operand(self, formal: Buffer, e: ast.expr) -> BufferRef:
        """A corner in a buffer of the operand's dtype, with its dimensions at least."""
        buffer, indices = self.element(e)
        if buffer.dtype != formal.dtype:
            wanted = f"{formal.name}: a buffer of {formal.dtype}"
            raise self.source.expected(wanted, e, f"{buffer.name} of {buffer.dtype}")
        if len(indices) < len(formal.shape):
            wanted = f"{formal.name}: a buffer of {len(formal.shape)} dimensions or more"
            raise self.source.expected(wanted, e, f"{buffer.name} of {len(indices)}")
        return BufferRef(buffer, indices)


def _buffer(*args: object) -> Buffer:
    """A buffer of values of any type.

    Raises:
        IRError: one isn't what it has to be.
    """
    name, shape, dtype, scope, copies, ends, align = args
    if not isinstance(copies, int) or isinstance(copies, bool) or copies < 1:
        raise IRError(f"buffer {name}: expected copies of 1 or more, found {copies!r}")
    for what, value, size in (("value_range", ends, 2), *(("align", a, 3) for a in _listed(align))):
        ints = isinstance(value, tuple) and all(type(each) is int for each in value)
        if value is not None and not (ints and len(value) == size):  # type: ignore[arg-type]
            raise IRError(
                f"buffer {name}: expected {what} of {size} whole numbers, found {value!r}"
            )
    made: Callable[..., Buffer] = Buffer
    return made(name, shape, dtype, scope, copies, ends, tuple(_listed(align)))


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _is_note(name: object = None, value: object = None, *rest: object) -> bool:
    """Whether something is a loop's annotation."""
    return isinstance(name, str) and isinstance(value, Pragma) and not rest
