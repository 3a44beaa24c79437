"""The source of a script: where its nodes stand in a file, and what it takes from around it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType

from vdla.compiler.text import ParseError
from vdla.compiler.tir.script_printer import MODULE
from vdla.support.errors import UserError

LITERAL = (ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.UnaryOp, ast.unaryop,
           ast.expr_context)  # fmt: skip
PLAIN = (*LITERAL, ast.Subscript, ast.BinOp, ast.operator)


class ScriptError(UserError):
    """A function that can't be read as a script: it has no source."""


@dataclass(frozen=True)
class Buffer:
    """The type of a script's parameter: ``A: vdla.Buffer((64, 64), "int8")``.

    Args:
        shape: the length of each dimension.
        dtype: of the elements.
        scope: the memory: "global" for a parameter.
        copies: how many places it takes in turn.
        value_range: least and greatest value that callers promise.
        align: (dimension, factor, offset) where a stride is widened.
        name: the parameter's, where it isn't Python's.
    """

    shape: int | Sequence[int]
    dtype: str
    scope: str = "global"
    copies: int = 1
    value_range: tuple[int, int] | None = None
    align: Sequence[tuple[int, int, int]] = ()
    name: str = ""


@dataclass(frozen=True)
class Source:
    """A function's source: its lines, where the first one stands in the file, how far it is
    indented there, the names of Python around it, and what Python made of parameters' types."""

    lines: list[str]
    file: str = ""
    first: int = 1
    indent: int = 0
    around: Mapping[str, object] = field(default_factory=dict)
    types: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, function: Callable[..., object]) -> Source:
        """Source of a function that is being decorated.

        Raises:
            ScriptError: there is none.
        """
        if not isinstance(function, FunctionType):
            raise ScriptError(f"prim_func: expected a function, found {function!r}")
        try:
            lines, first = inspect.getsourcelines(function)
            file = inspect.getsourcefile(function) or ""
        except (OSError, TypeError):
            raise ScriptError(
                f"prim_func {function.__name__}: expected a function with source in a file, found "
                "none; write it to a file, or give its text to vdla.parse"
            ) from None
        indent = len(lines[0]) - len(lines[0].lstrip())
        plain = textwrap.dedent("".join(lines)).split("\n")
        captured = inspect.getclosurevars(function).nonlocals
        around = {**function.__globals__, **captured}
        return cls(plain, file, first, indent, around, function.__annotations__)

    def tree(self) -> ast.FunctionDef:
        """The function's syntax tree.

        Raises:
            ParseError: it isn't Python, or no function.
        """
        try:
            body = ast.parse("\n".join(self.lines) + "\n").body
        except SyntaxError as error:
            what = f"expected Python, found {error.msg}"
            raise self.error(what, error.lineno or 1, (error.offset or 1) - 1) from None
        except (RecursionError, MemoryError, ValueError) as error:
            raise self.error(f"expected Python, found {error}", 1, 0) from None
        functions = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
        if len(functions) != 1 or not isinstance(functions[0], ast.FunctionDef):
            line = functions[0].lineno if functions else 1
            raise self.error("expected one function, found something else", line, 0)
        return functions[0]

    def error(self, what: str, line: int, column: int) -> ParseError:
        """An error at a place of the dedented source: a line from 1 on, a byte from 0 on."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        column = len(text.encode()[:column].decode(errors="replace"))
        shown = " " * self.indent + text
        return ParseError(what, self.first + line - 1, self.indent + column + 1, shown, self.file)

    def refused(self, what: str, node: ast.AST) -> ParseError:
        """An error at a node."""
        return self.error(what, getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def expected(self, what: str, node: ast.AST, actual: str = "") -> ParseError:
        """Expected this, found a node (or what else is said)."""
        return self.refused(f"expected {what}, found {actual or self.text(node)}", node)

    def text(self, node: ast.AST) -> str:
        """A node as Python has it, on one line and not too long."""
        try:
            text = ast.unparse(node).splitlines()[0]
        except (RecursionError, IndexError):
            text = type(node).__name__
        return text if len(text) <= 40 else f"{text[:37]}..."

    def constant(self, node: ast.expr, what: str) -> object:
        """The value of an expression of literals and of names around the function; a text, around
        which nothing stands, has literals alone.

        Raises:
            ParseError: it is another one, or has no value.
        """
        for part in ast.walk(node):
            if not isinstance(part, PLAIN if self.around else LITERAL):
                raise self.expected(what, node)
            own = isinstance(part, ast.Name) and part.id not in self.around and part.id != MODULE
            if own:
                raise self.expected(f"{what} that is known before the function runs", part)
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<script>", "eval")
        try:
            module = _Module(self.around.get(MODULE))
            return eval(code, {"__builtins__": {}}, {**self.around, MODULE: module})
        except Exception as error:
            raise self.expected(what, node, f"{type(error).__name__}: {error}") from None


@dataclass(frozen=True)
class _Module:
    """The module ``vdla`` in a script, which has numbers of its own: ``vdla.inf``."""

    real: object

    inf = float("inf")
    nan = float("nan")

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


def word_of(node: ast.expr) -> str:
    """The last name of a function that is called: ``exp`` of ``exp``, ``vdla.exp`` and ``T.exp``;
    nothing for another expression."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
