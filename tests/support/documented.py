"""Command lines that documents show: of ``vdla``, and of the repository's scripts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from vdla.commands.cli import app
from vdla.options.spelling import UsageError

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md", "CONTRIBUTING.md", "docs/*.md", "docs/recipes/*.md", "docs/reference/*.md",
    "docs/decisions/*.md", "examples/**/README.md",
)  # fmt: skip
SHELL = ("sh", "bash", "console", "")  # languages of fenced blocks; one without shows outputs, too
OUTPUT = "text"  # the language of what a command prints, below the command
FENCED = re.compile(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^\n]*\n|\n(?= {4}))+")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
SCRIPT = r"python (?:tools|benchmarks|training|tests/support|examples)/\S+\.py"
BEGIN = re.compile(rf"(?<![\w./$'*-])(?:vdla (?=[a-z])|{SCRIPT})")
END = (";", "&&", "||", "|", ">", ">>", "<", "&", ")")

VALUES = {  # words that stand for what a reader puts there
    "A": "tiny", "B": "pynq-z2", "P": "xc7z020", "HOST": "cortex-a9", "N": "4", "N,N": "1,2",
    "CONFIG": "paper", "[CONFIG]": "paper", "NAME": "paper", "NET": "digits", "MODEL": "digits",
    "MODEL…": "digits", "MODEL.onnx": "model.onnx", "KEY=VALUE…": "block_out=32",
    "[KEY=VALUE…]": "block_out=32", "$SLURM_CPUS_PER_TASK": "4",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A command line: where it stands, its words, and whether it is in a block of its own."""

    page: str
    number: int
    words: tuple[str, ...]
    block: bool

    @property
    def where(self) -> str:
        """Page and line."""
        return f"{self.page}:{self.number}"

    def __str__(self) -> str:
        return shlex.join(self.words)


def pages() -> list[str]:
    """The documents."""
    return [str(path.relative_to(ROOT)) for each in PAGES for path in sorted(ROOT.glob(each))]


def command_lines(page: str) -> list[Line]:
    """The command lines of a document, in order."""
    lines = [*_blocks(page), *_in_sentences(page)]
    return sorted(lines, key=lambda line: line.number)


def _blocks(page: str) -> Iterator[Line]:
    """Those of blocks, fenced or indented."""
    text = (ROOT / page).read_text()
    for match in FENCED.finditer(text):
        if match[2] in (*SHELL, OUTPUT):
            yield from _in_block(page, text, match.start(3), match[3], match[2])
    for match in INDENTED.finditer(_without(FENCED, text)):
        yield from _in_block(page, text, match.start(), match[0], "")


def _in_block(page: str, text: str, start: int, block: str, language: str) -> Iterator[Line]:
    number = text.count("\n", 0, start) + 1
    joined = block.replace("\\\n", "  ")  # a line that goes on
    for offset, line in enumerate(joined.splitlines()):
        plain = line.strip().removeprefix("$ ")
        begin = BEGIN.search(_without_comment(plain))
        if language == OUTPUT and not line.startswith("$ "):
            continue
        if begin and (language or begin.start() == 0):
            yield from _line(page, number + offset, plain[begin.start() :], True)


def spans(page: str) -> Iterator[tuple[int, str]]:
    """Code within a document's sentences, with its line's number."""
    plain = _without(INDENTED, _without(FENCED, (ROOT / page).read_text()))
    for match in SPAN.finditer(plain):
        yield plain.count("\n", 0, match.start()) + 1, " ".join(match[1].split())


def _in_sentences(page: str) -> Iterator[Line]:
    """Those within sentences."""
    for number, text in spans(page):
        command = text.removeprefix("time ")
        if BEGIN.match(command):
            yield from _line(page, number, command, False)


def _line(page: str, number: int, command: str, block: bool) -> Iterator[Line]:
    """A command line, unless it is the beginning of a sentence about vdla."""
    words = _words(command)
    if words[0] != "vdla" or words[1] in app.commands:
        yield Line(page, number, tuple(words), block)


def _words(command: str) -> list[str]:
    """A command's words, up to its end, its redirections and its comment."""
    lexer = shlex.shlex(_without_comment(command), posix=True, punctuation_chars=";&|><)")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = []
    try:
        for word in lexer:
            if word in END:
                break
            words.append(word)
    except ValueError:  # the quotation that it stands in ends
        words = shlex.split(command.split('"')[0])
    return words


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s)#.*", "", line)


def _without(pattern: re.Pattern[str], text: str) -> str:
    """A text whose matches are empty lines."""
    return pattern.sub(lambda match: "\n" * match[0].count("\n"), text)


def filled(words: Sequence[str]) -> list[str]:
    """Words of a command line, with values where a page has words that stand for them."""
    pairs = zip(("", *words), words, strict=False)
    return [
        "paper" if (option, word) == ("-c", "B") else re.sub("=N$", "=4", VALUES.get(word, word))
        for option, word in pairs
    ]


def context_of(words: tuple[str, ...]) -> click.Context:
    """A command line, parsed and not run.

    Raises:
        ClickException, UsageError: it is wrong.
    """
    command, path = app, click.Context(app, info_name="vdla")
    rest = filled(words)
    while isinstance(command, click.Group):
        name = rest.pop(0) if rest else ""
        if name not in command.commands:
            raise UsageError(f"{command.name}: expected a command, found {name!r}")
        if command is not app:
            path = click.Context(command.commands[name], path, name)
        command = command.commands[name]
    return command.make_context(command.name, rest, path)
