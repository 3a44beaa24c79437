"""What the commands' functions are annotated with: arguments, and options spelled out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer

from vdla.options.fields import FOLDER
from vdla.options.spelling import Spelling, read, spelling

Model = Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file or a bundled name.")]
ConfigName = Annotated[
    str, typer.Option("-c", "--config", metavar="CONFIG", help="A config's name or TOML file.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a parameter or memory.PARAMETER."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Out = Annotated[Path | None, typer.Option("-o", "--output-file", metavar="FILE")]
FarmAddress = Annotated[str, typer.Argument(metavar="ADDRESS", help="As vdla farm up prints it.")]
FarmFolder = Annotated[
    Path | None,
    typer.Option("--folder", metavar="F", help=FOLDER),
]
WithoutEncryption = Annotated[
    bool,
    typer.Option(
        "--without-encryption",
        help="Let anyone who reaches the farm run code on its machines, and read along.",
    ),
]
FARM_ADDRESS = "tls://127.0.0.1:8786"
Function = TypeVar("Function", bound=Callable[..., None])


def spelled(function: Function) -> Function:
    """A command whose parameters that are options of a class are spelled out."""
    parameters, groups = [], {}
    for parameter in signature(function, eval_str=True).parameters.values():
        kind = parameter.annotation
        if is_dataclass(kind):
            groups[parameter.name] = cast(type[Any], kind)
            parameters += [_parameter(f.name, s) for f in fields(kind) if (s := spelling(f))]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(function)
    def call(**typed: object) -> None:
        grouped = {name: read(kind, typed) for name, kind in groups.items()}
        function(**typed, **grouped)

    call.__annotations__ = {p.name: p.annotation for p in parameters}
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return cast(Function, call)


def _parameter(name: str, how: Spelling) -> Parameter:
    kind: Any = Annotated[how.typed, typer.Option(*how.names, **how.more)]
    default = Parameter.empty if how.default is MISSING else how.default
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
