"""A graph's text read back: what :mod:`vdla.compiler.graph.printer` prints, and what people edit.

Grammar of the text; tokens are those of :mod:`vdla.compiler.text`, every rule but ``type`` and
``value`` is a line, ``x,*`` is any number of x with commas between::

    text     ::= graph+                             functions behind the first, by their names
    graph    ::= "graph" NAME, and indented: (input | constant | output | argument | result | node)*
    input    ::= "input" NAME ":" type              what the caller supplies
    constant ::= "constant" NAME ":" type           its array stands beside the text
    output   ::= "output" NAME                      what the caller reads
    argument ::= "argument" NAME "=" whole          an input of the caller's that is no tensor
    result   ::= "result" NAME "=" whole            all results, where one is no tensor
    whole    ::= tensor: NAME | KIND "(" whole,* ")"  as runtime/values.py has them
    node     ::= node: NAME ":" output: NAME,* "=" OP "(" operand: NAME,* ")" field* ":" type,*
                 and indented: ["float" "because" STRING], the parts of a Fused: node*,
                 the regions of a node of control: graph*
    field    ::= NAME "=" value
    value    ::= NUMBER | STRING | "True" | "False" | "None" | "(" value,* ")"
               | RECORD "(" (NAME "=" value),* ")"  a requantization, or a step of an epilogue
               | "<" INT ("values" | "bytes") ">"   stands beside the text, under NODE@FIELD
    type     ::= dtype "[" INT,* "]" ["/" block: INT] ["*" scale: NUMBER "@" zero_point: INT]

OP is a class of :mod:`vdla.compiler.graph.ops`, its operands and fields are those of the class;
fields that are left out take the class's defaults. Order counts: what a node reads comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vdla.compiler.graph.fields import Fields, NodeFields, fits, operators, shown, words
from vdla.compiler.graph.infer import verify_whole
from vdla.compiler.graph.ir import Graph, GraphError, Node
from vdla.compiler.graph.types import RECORDS, TENSOR_DTYPES, Array, Quant, TensorType
from vdla.compiler.text import ParseError, Reader, Token
from vdla.runtime.dtypes import read_as, to_write
from vdla.runtime.values import KINDS, Listed, Value

MARKS = ("(", ")", "[", "]", "<", ">", ",", ":", "=", "/", "*", "@", "-")
LARGEST = (1 << 63) - 1


def parse_graph(text: str, values: Mapping[str, Array]) -> Graph:
    """The graph of a text; ``format_graph`` prints it as it was.

    Args:
        text: one ``graph``, and its functions.
        values: what stands beside it, as ``printer.beside`` gives it: constants by name, and long
            fields of nodes. What the text doesn't name is ignored.

    Raises:
        ParseError: the text breaks the grammar, a value is missing or has another type, or the
            graph isn't well formed; names line and column.
    """
    return Parser(text, values).text()


def write_values(path: Path, values: Mapping[str, Array]) -> None:
    """Writes what stands beside a text into an ``.npz`` file."""
    named: dict[str, Any] = {f"={name}": to_write(array) for name, array in values.items()}
    np.savez(path, **named)  # savez has a parameter of its own, which no tensor may be called


def read_graph(path: str | Path) -> Graph:
    """A graph that ``vdla compile --dump`` wrote, perhaps edited since.

    ``NN_PASS.npz`` beside the text has what its pass added, so all up to the text's number are
    read; all there are for a text whose name begins with no number.

    Raises:
        ParseError: as in :func:`parse_graph`, or the file isn't UTF-8.
        OSError: there is no such file.
    """
    path, values = Path(path), dict[str, Array]()
    for archive in sorted(path.parent.glob("*.npz")):
        if archive.name[:2] <= path.name[:2]:
            with np.load(archive) as arrays:
                values.update({name.removeprefix("="): arrays[name] for name in arrays.files})
    try:
        return parse_graph(path.read_text(encoding="utf-8"), values)
    except UnicodeDecodeError as error:
        raise ParseError(f"expected UTF-8, found {error.reason}", 1, 1) from None


class Parser:
    """One method per rule of the grammar."""

    def __init__(self, text: str, values: Mapping[str, Array]) -> None:
        self.read = Reader(text, MARKS)
        self.values = values
        self.tensors: dict[str, TensorType] = {}
        self.constants: dict[str, Array] = {}
        self.reasons: dict[str, str] = {}
        self.wholes: dict[str, dict[str, Value]] = {}  # arguments and results
        self.places: dict[str, Token] = {}  # of nodes

    def text(self) -> Graph:
        start = self.read.token
        first, functions = self.graph(), dict[str, Graph]()
        while self.read.token.kind != "end":
            token = self.read.token
            function = self.graph()
            if function.name in functions:
                raise self.read.error("each function once", token, f"{function.name} twice")
            functions[function.name] = function
        graph = replace(first, functions=functions)
        try:
            verify_whole(graph)
        except GraphError as error:
            raise self.read.refused(str(error), self.places.get(error.node, start)) from None
        return graph

    def graph(self) -> Graph:
        """A graph, with tensors of its own."""
        around = self.tensors, self.constants, self.reasons, self.wholes
        self.tensors, self.constants, self.reasons = {}, {}, {}
        self.wholes = {"argument": {}, "result": {}}
        try:
            return self.lines()
        finally:
            self.tensors, self.constants, self.reasons, self.wholes = around

    def lines(self) -> Graph:
        self.read.expect("graph")
        name = self.read.name("the graph's name")
        inputs: list[str] = []
        outputs: list[tuple[str, Token]] = []
        nodes: list[Node] = []
        for _ in self.read.block("an input, a constant, an output or a node"):
            self.line(inputs, outputs, nodes)
        for output, token in outputs:
            if output not in self.tensors:
                raise self.read.error("an output that is a tensor above or below", token, output)
        names = tuple(output for output, _ in outputs)
        return Graph(tuple(inputs), names, tuple(nodes), self.tensors, self.constants,
                     name, self.reasons, {}, *self.wholes.values())  # fmt: skip

    def line(self, inputs: list[str], outputs: list[tuple[str, Token]], nodes: list[Node]) -> None:
        word = "" if self.read.after.text == ":" else self.read.token.text
        if word not in ("input", "constant", "output", *self.wholes):
            nodes.append(self.node())
            return
        self.read.next()
        token = self.read.token
        name = self.read.name("a tensor's name")
        if word in self.wholes:
            self.read.expect("=")
            self.wholes[word][name] = self.whole()
        elif word == "output":
            outputs.append((name, token))
        else:
            self.read.expect(":")
            self.define(name, token, self.type())
            if word == "input":
                inputs.append(name)
            else:
                self.constants[name] = self.constant(name, token)
        self.read.end_line()

    def whole(self) -> Value:
        """A tensor, or what is made of some."""
        token = self.read.token
        name = self.read.name("a tensor's name, or a kind of value")
        if not self.read.sees("("):
            return name
        parts = self.read.listed("(", self.whole, ")")
        try:
            return Listed(tuple(parts)) if name == "Listed" else KINDS[name](*parts)
        except (KeyError, TypeError):
            expected = f"a value ({', '.join(KINDS)}) and what it is made of"
            raise self.read.error(expected, token, name) from None

    # --- tensors ---

    def define(self, name: str, token: Token, kind: TensorType) -> None:
        if name in self.tensors:
            raise self.read.error("a tensor written once", token, f"{name} again")
        self.tensors[name] = kind

    def type(self) -> TensorType:
        if not self.read.sees(*TENSOR_DTYPES):
            raise self.read.error(f"a dtype of {', '.join(TENSOR_DTYPES)}")
        dtype = self.read.next().text
        shape = tuple(self.read.listed("[", self.extent, "]"))
        block, quant = 0, None
        token = self.read.token
        if self.read.take("/"):
            if len(shape) not in (2, 4):
                raise self.read.error("channel blocks of 2 or 4 dimensions", token, str(len(shape)))
            block = self.size()
        if self.read.take("*"):
            scale = float(self.read.number("a scale"))
            self.read.expect("@")
            quant = Quant(scale, self.read.integer("a zero point", -LARGEST, LARGEST))
        return TensorType(shape, dtype, quant, block)

    def extent(self) -> int:
        return self.read.integer("a size", 0, LARGEST)

    def size(self) -> int:
        return self.read.integer("a size", 1, LARGEST)

    def constant(self, name: str, token: Token) -> Array:
        kind = self.tensors[name]
        wanted = f"{kind.dtype}{list(kind.physical)}"
        if name not in self.values:
            raise self.read.error(f"{wanted} for {name} among the values", token, "none")
        array = read_as(np.asarray(self.values[name]), kind.dtype)
        if array.shape != kind.physical or str(array.dtype) != kind.dtype:
            actual = f"{array.dtype}{list(array.shape)}"
            raise self.read.error(f"{wanted} for {name} among the values", token, actual)
        return array

    # --- nodes ---

    def node(self, around: str = "") -> Node:
        """A node; a part may be called as the Fused ``around`` it."""
        token = self.read.token
        name = self.read.name("a node's name")
        if name in self.places and name != around:
            line = self.places[name].line
            raise self.read.error("a new node's name", token, f"{name}, as in line {line}")
        self.places[name] = token
        self.read.expect(":")
        at = self.read.token
        output, *others = self.read.several(lambda: self.read.name("a tensor's name"))
        self.read.expect("=")
        draft = self.operator(name, output)
        draft.take_others(others, lambda: self.read.error(f"one result of {draft.op}", at))
        self.read.expect(":")
        kind, *kinds = self.read.several(self.type)
        if len(kinds) != len(others):
            count = str(1 + len(kinds))
            raise self.read.error(f"types of {1 + len(others)} results", actual=count)
        parts = self.below(name, draft)
        if parts is None:
            for each, its in zip((output, *others), (kind, *kinds), strict=True):
                self.define(each, at, its)
            return draft(())
        if parts[-1].output != output or self.tensors[output] != kind:
            last = parts[-1].output
            raise self.read.error(f"{last} and its type, as the last part writes it", at, output)
        return draft(parts)

    def below(self, name: str, draft: NodeFields) -> tuple[Node, ...] | None:
        """Parts indented below a node; None for a node without. A reason for which it is float goes
        to ``reasons``.
        """
        parts: list[Node] = []
        regions = list(draft.regions)
        if not self._indented():
            self.read.end_line()
        else:
            for _ in self.read.block("a part"):
                if regions and self.read.sees("graph"):
                    draft.fields[regions.pop(0)] = self.graph()
                elif self.read.sees("float") and self.read.after.text == "because":
                    self.read.next(), self.read.next()
                    self.reasons[name] = self.read.string("a reason")
                    self.read.end_line()
                elif draft.parts:
                    parts.append(self.node(name))
                else:
                    raise self.read.error(f"float because, the one line below a {draft.op}")
        if regions:
            raise self.read.error(f"{len(draft.regions)} graphs below the {draft.op} above")
        if draft.parts and not parts:
            raise self.read.error(f"the parts of the {draft.op} above")
        return tuple(parts) if draft.parts else None

    def _indented(self) -> bool:
        return self.read.token.kind == "newline" and self.read.after.kind == "indent"

    def operator(self, name: str, output: str) -> NodeFields:
        token = self.read.token
        op = self.read.name("an operator")
        if op not in operators():
            raise self.read.error(f"an operator ({', '.join(operators())})", token, op)
        draft = NodeFields(operators()[op], name, output)
        names = self.read.listed("(", self.operand, ")")
        expected = draft.take_operands(names)
        if expected:
            raise self.read.error(f"{expected} of {op}", token, str(len(names)))
        while not self.read.sees(":"):
            self.field(draft)
        self.check_fields(draft, token)
        return draft

    def check_fields(self, draft: Fields, token: Token) -> None:
        """Raises ParseError at a class's name where one of its fields has no value."""
        if missing := draft.missing():
            actual = f"none for {', '.join(missing)}"
            raise self.read.error(f"the fields of {draft.op}", token, actual)

    def operand(self) -> str:
        token = self.read.token
        name = self.read.name("a tensor")
        if name not in self.tensors:
            raise self.read.error("operands defined before their use", token, name)
        return name

    def field(self, draft: Fields) -> None:
        token = self.read.token
        key = self.read.name("a field or ':'")
        if key not in draft.open:
            known = ", ".join(draft.open) or "none is left"
            raise self.read.error(f"a field of {draft.op} ({known})", token, key)
        self.read.expect("=")
        token = self.read.token
        value = self.value(draft.path(key))
        hint = draft.open.pop(key)
        if not fits(value, hint):
            raise self.read.error(f"{key}: {words(hint)}", token, shown(value))
        draft.fields[key] = value

    def value(self, key: str) -> object:
        constants = {"True": True, "False": False, "None": None}
        token = self.read.token
        if token.text in constants:
            return constants[self.read.next().text]
        if token.kind == "string":
            return self.read.string("a value")
        if token.text == "(":
            return tuple(self.read.listed("(", lambda: self.value(key), ")"))
        if self.read.take("<"):
            return self.long(key, token)
        if token.text in RECORDS:
            return self.record(key)
        return self.read.number("a value")

    def record(self, path: str) -> object:
        """A value with fields of its own."""
        token = self.read.next()
        draft = Fields(RECORDS[token.text], path)
        self.read.listed("(", lambda: self.field(draft), ")")
        self.check_fields(draft, token)
        return draft.cls(**draft.fields)

    def long(self, key: str, token: Token) -> object:
        """A value that stands beside the text."""
        count = self.read.integer("a number of values", 0, LARGEST)
        if not self.read.sees("values", "bytes"):
            raise self.read.error("values or bytes")
        word = self.read.next().text
        self.read.expect(">")
        wanted = f"{count} {word} for {key} among the values"
        if key not in self.values:
            raise self.read.error(wanted, token, "none")
        array = np.asarray(self.values[key])
        if array.ndim != 1 or len(array) != count or (word == "bytes" and array.dtype != np.uint8):
            raise self.read.error(wanted, token, f"{array.dtype}{list(array.shape)}")
        return array.tobytes() if word == "bytes" else tuple(array.tolist())


__all__ = ["ParseError", "operators", "parse_graph", "read_graph", "write_values"]
