"""Reading the texts of programs: tokens with their places, and the error that points at one.

The loop IR and the graph IR have lines and blocks by indentation, as Python does::

    token   ::= name | number | string | mark         mark: an operator or a bracket
    name    ::= letters, digits, _ and dots, no digit first; any other one stands in backquotes,
                with the escapes of JSON: `conv/1`
    number  ::= 3 | 1.5 | 1e-05                       a sign is a token of its own
    string  ::= as in JSON: "vdla.acc"
    comment ::= # to the end of the line
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from vdla.support.errors import UserError

Made = TypeVar("Made")

BARE = r"[^\W\d]\w*(?:\.\w+)*"
KINDS = {
    "space": r"[ \t]+|#.*",
    "float": r"\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+",
    "int": r"\d+",
    "name": BARE,
    "quoted": r"`[^`]*`",
    "string": r'"(?:[^"\\]|\\.)*"',
}
DIGITS = 40  # of a number, at most
WIDTH = 90  # of the part of a line that an error shows


class ParseError(UserError):
    """A text that breaks its grammar, or names what isn't there.

    The message names ``line`` and ``column``, both from 1 on, says what was expected and what was
    found, and shows the place; of a text that is a file's, it names the file first.
    """

    def __init__(self, what: str, line: int, column: int, source: str = "", file: str = "") -> None:
        self.line, self.column = line, column
        start = max(0, column - 1 - WIDTH // 2) if len(source) > WIDTH else 0
        part = source[start : start + WIDTH].replace("\t", " ")
        caret = " " * (column - 1 - start) + "^"
        where = f"{file}, line {line}" if file else f"line {line}"
        super().__init__(f"{where}, column {column}: {what}\n    {part}\n    {caret}")


@dataclass(frozen=True, slots=True)
class Token:
    """``kind``: one of ``KINDS``, "mark", "newline", "indent", "dedent" or "end"."""

    kind: str
    text: str
    line: int
    column: int

    def __str__(self) -> str:
        ends = {
            "newline": "the end of the line",
            "indent": "an indented line",
            "dedent": "the end of the block",
            "end": "the end of the text",
        }
        return ends.get(self.kind, repr(self.text))


def write_name(name: str, reserved: Sequence[str] = ()) -> str:
    """A name as a token: bare where that reads back, else in backquotes."""
    if re.fullmatch(BARE, name) and name not in reserved:
        return name
    return "`" + json.dumps(name)[1:-1].replace("`", "\\u0060") + "`"


def write_string(text: str) -> str:
    """A string as a token."""
    return json.dumps(text)


class Reader:
    """The tokens of a text, one after another."""

    def __init__(self, text: str, marks: Sequence[str], reserved: Sequence[str] = ()) -> None:
        """``marks`` are the operators and brackets; ``reserved`` words are no names."""
        self.lines = [line.removesuffix("\r") for line in text.split("\n")]
        self.reserved = reserved
        longest = sorted(marks, key=len, reverse=True)
        kinds = {**KINDS, "mark": "|".join(map(re.escape, longest))}
        self.pattern = re.compile("|".join(f"(?P<{k}>{p})" for k, p in kinds.items()))
        self.tokens = list(self._tokens())
        self.at = 0

    # --- the grammar's steps ---

    @property
    def token(self) -> Token:
        """The next token, not yet taken."""
        return self.tokens[self.at]

    @property
    def after(self) -> Token:
        """The token behind it."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def next(self) -> Token:
        """The next token, taken; the last one stays."""
        token = self.token
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of these words or marks."""
        return self.token.text in texts

    def listed(self, opening: str, rule: Callable[[], Made], closing: str) -> list[Made]:
        """Any number of what ``rule`` reads, with commas between them, in brackets."""
        self.expect(opening)
        result: list[Made] = []
        while not self.sees(closing):
            result.append(rule())
            if not self.take(",") and not self.sees(closing):
                raise self.error(f"',' or {closing!r}")
        self.next()
        return result

    def several(self, rule: Callable[[], Made]) -> list[Made]:
        """One or more of what ``rule`` reads, with commas between them."""
        result = [rule()]
        while self.take(","):
            result.append(rule())
        return result

    def take(self, text: str) -> bool:
        """Takes the next token if it is this word or mark."""
        if result := self.sees(text):
            self.next()
        return result

    def expect(self, text: str) -> Token:
        """Takes this word or mark."""
        if not self.sees(text):
            raise self.error(repr(text))
        return self.next()

    def end_line(self) -> None:
        """Takes the end of a line."""
        if self.token.kind != "newline":
            raise self.error("the end of the line")
        self.next()

    def block(self, what: str) -> Iterator[None]:
        """One step per line (or inner block) of an indented block."""
        self.end_line()
        if self.token.kind != "indent":
            raise self.error(f"an indented line, {what}")
        self.next()
        while self.token.kind != "dedent":
            yield
        self.next()

    def name(self, what: str) -> str:
        """Takes a name."""
        token = self.token
        if token.kind == "quoted":
            return self._decoded(self.next(), f'"{token.text[1:-1]}"', "a name with JSON's escapes")
        if token.kind != "name" or token.text in self.reserved:
            raise self.error(what)
        return self.next().text

    def string(self, what: str) -> str:
        """Takes a string."""
        if self.token.kind != "string":
            raise self.error(f"{what} in double quotes")
        token = self.next()
        return self._decoded(token, token.text, "a string with JSON's escapes")

    def integer(self, what: str, low: int, high: int) -> int:
        """Takes a whole number from ``low`` to ``high``, its sign before it."""
        start, negative = self.token, self.take("-")
        if self.token.kind != "int":
            raise self.error(what)
        token = self.next()
        value = int(token.text[:DIGITS]) * (-1 if negative else 1)
        if len(token.text) > DIGITS or not low <= value <= high:
            raise self.error(f"{what} from {low} to {high}", start, actual=token.text)
        return value

    def number(self, what: str) -> int | float:
        """Takes a number, its sign before it; ``inf`` and ``nan`` are numbers too."""
        sign = -1 if self.take("-") else 1
        if self.token.kind not in ("int", "float") and not self.sees("inf", "nan"):
            raise self.error(what)
        token = self.next()
        if token.kind != "int":
            return sign * float(token.text)
        if len(token.text) > DIGITS:
            raise self.error(f"{what} of at most {DIGITS} digits", token)
        return sign * int(token.text)

    def error(self, expected: str, token: Token | None = None, actual: str = "") -> ParseError:
        """Expected this, found the next token (or another one)."""
        token = token or self.token
        return self.refused(f"expected {expected}, found {actual or token}", token)

    def refused(self, what: str, token: Token) -> ParseError:
        """An error at a token."""
        return ParseError(what, token.line, token.column, self.lines[token.line - 1])

    def _decoded(self, token: Token, text: str, expected: str) -> str:
        try:
            return str(json.loads(text))
        except ValueError:
            raise self.error(expected, token) from None

    # --- tokens ---

    def _tokens(self) -> Iterator[Token]:
        depths = [0]
        for number, line in enumerate(self.lines, 1):
            result = list(self._line(number, line))
            if not result:
                continue
            yield from self._indentation(result[0], depths)
            yield from result
            yield Token("newline", "", number, len(line) + 1)
        last = len(self.lines)
        for _ in depths[1:]:
            yield Token("dedent", "", last, len(self.lines[-1]) + 1)
        yield Token("end", "", last, len(self.lines[-1]) + 1)

    def _indentation(self, first: Token, depths: list[int]) -> Iterator[Token]:
        lead = self.lines[first.line - 1][: first.column - 1]
        if "\t" in lead:
            raise ParseError(
                "expected spaces before the line, found a tab",
                first.line, lead.index("\t") + 1, self.lines[first.line - 1],
            )  # fmt: skip
        depth = len(lead)
        if depth > depths[-1]:
            depths.append(depth)
            yield Token("indent", "", first.line, first.column)
        while depth < depths[-1]:
            depths.pop()
            if depth > depths[-1]:
                raise self.refused(
                    f"expected an indentation of {depths[-1]} spaces or those of an outer block, "
                    f"found {depth}",
                    first,
                )
            yield Token("dedent", "", first.line, first.column)

    def _line(self, number: int, line: str) -> Iterator[Token]:
        at = 0
        while at < len(line):
            match = self.pattern.match(line, at)
            if match is None:
                open_quote = {'"': "a closing double quote", "`": "a closing backquote"}
                expected = open_quote.get(line[at], "a name, a number or a mark")
                what = f"expected {expected}, found {line[at : at + 20]!r}"
                raise ParseError(what, number, at + 1, line)
            if match.lastgroup != "space":
                yield Token(str(match.lastgroup), match.group(), number, at + 1)
            at = match.end()
