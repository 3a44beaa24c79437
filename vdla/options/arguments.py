"""Annotations of the commands' functions, and the commands that are made of them.

    @command(app)
    def offload(model: Model, options: Offload, out: Annotated[Path, Option("--out")]) -> None:

A parameter's annotation says what is typed there; one that is a class of options stands for all of
its fields that are ``option``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial
from inspect import Parameter, cleandoc, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, get_args, get_origin

import click

from vdla.options.completion import completion_of
from vdla.options.fields import FOLDER
from vdla.options.help import Command
from vdla.options.spelling import Spelling, read, spelling


@dataclass(frozen=True)
class Argument:
    """Argument that stands in the command line without a name."""

    metavar: str
    help: str = ""


class Option:
    """Option that stands in the command line after one of some names, by default the parameter's;
    of a number, from ``min`` to ``max``."""

    def __init__(
        self,
        *names: str,
        metavar: str | None = None,
        help: str | None = None,
        min: int | None = None,
        max: int | None = None,
    ) -> None:
        self.names, self.metavar, self.help, self.bounds = names, metavar, help, (min, max)


Model = Annotated[str, Argument("MODEL", "A file of a model, FILE.py:NAME, or a bundled name.")]
ConfigName = Annotated[
    str, Option("-c", "--config", metavar="CONFIG", help="A config's name or TOML file.")
]
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Override a parameter or memory.PARAMETER."),
]
Json = Annotated[bool, Option("--json", help="Print one JSON object on stdout.")]
Out = Annotated[Path | None, Option("-o", "--output-file", metavar="FILE")]
FarmAddress = Annotated[str, Argument("ADDRESS", "As vdla farm up prints it.")]
FarmFolder = Annotated[Path | None, Option("--folder", metavar="F", help=FOLDER)]
WithoutEncryption = Annotated[
    bool,
    Option(
        "--without-encryption",
        help="Let anyone who reaches the farm run code on its machines, and read along.",
    ),
]
FARM_ADDRESS = "tls://127.0.0.1:8786"


def command(
    group: click.Group, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a command to a group: a function, by its own name unless there is another."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        text, _, examples = cleandoc(function.__doc__ or "").partition("\nExamples:\n")
        taken = signature(function, eval_str=True).parameters.values()
        groups: dict[str, type[object]] = {
            p.name: p.annotation
            for p in taken
            if isinstance(p.annotation, type) and is_dataclass(p.annotation)
        }
        made = Command(
            name or function.__name__,
            callback=partial(_call, function, groups),
            params=[made for parameter in taken for made in _made_of(parameter)],
            help=text.rstrip(),
            short_help=text.partition("\n\n")[0],
        )
        made.examples = cleandoc(examples)
        group.add_command(made)
        return function

    return add


def _call(
    function: Callable[..., None], groups: Mapping[str, type[object]], /, **typed: object
) -> None:
    """Calls a command's function with what was typed, the options of a class as one object."""
    for name, value in typed.items():
        if isinstance(value, tuple):  # click's, of what may stand there several times
            typed[name] = list(value) or None
    grouped = {name: read(kind, typed) for name, kind in groups.items()}
    function(**typed, **grouped)


def _made_of(parameter: Parameter) -> list[click.Parameter]:
    """Parameters of the command line for a function's parameter."""
    if is_dataclass(parameter.annotation):
        spelled = {f.name: s for f in fields(parameter.annotation) if (s := spelling(f))}
        return [_option_of(name, how) for name, how in spelled.items()]
    typed, how = get_args(parameter.annotation)
    return [_made(parameter.name, typed, how, parameter.default)]


def _option_of(name: str, how: Spelling) -> click.Parameter:
    """An option that is a field of a class."""
    default = Parameter.empty if how.default is MISSING else how.default
    return _made(name, how.typed, Option(*how.names, **how.more), default)


def _made(name: str, typed: object, how: Argument | Option, default: object) -> click.Parameter:
    """An argument or an option; without a default it is required."""
    kind, several = _kind(typed)
    make: Callable[..., click.Parameter]
    if isinstance(how, Argument):
        make = partial(
            click.Argument, [name], metavar=how.metavar, help=how.help or None, type=kind,
            nargs=-1 if several else 1, shell_complete=completion_of(how.metavar),
        )  # fmt: skip
    else:
        names = how.names or (f"--{name.replace('_', '-')}",)
        make = partial(
            click.Option, [name, *names], metavar=how.metavar, help=how.help,
            type=_bounded(kind, how.bounds), multiple=several, is_flag=kind is bool,
            show_default=True, shell_complete=completion_of(how.metavar),
        )  # fmt: skip
    return make(required=True) if default is Parameter.empty else make(default=default)


def _bounded(
    kind: type, bounds: tuple[int | None, int | None]
) -> type | click.IntRange | click.FloatRange:
    """The type of a number within bounds, if there are any."""
    if bounds == (None, None):
        return kind
    return click.IntRange(*bounds) if kind is int else click.FloatRange(*bounds)


def _kind(typed: object) -> tuple[type, bool]:
    """The type of one value of what is typed, and whether there may be several."""
    if isinstance(typed, UnionType):
        (typed,) = (each for each in get_args(typed) if each is not NoneType)
    if get_origin(typed) is list:
        return get_args(typed)[0], True
    assert isinstance(typed, type)
    return typed, False
