"""Options of ``package``: the form of a package, and how the model in it is compiled.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vdla.options.models import Compile
from vdla.options.spelling import option


@dataclass(frozen=True)
class Package(Compile):
    """Options by which a model is packaged. Those of ``compile`` count for a model, and not for a
    module, which is compiled already.

    ``form`` is "static", "shared", "c", "wheel", "wasm" or "page". ``target`` is the processor that
    runs it; by default this one, for a wheel any of its architecture, and wasm32 for a page.
    ``name`` is an identifier of C, by default the file's. ``device`` is by default "cpu", and "sim"
    where a board or a config is given, whose programs a board runs.
    """

    form: str = option(
        "static", "--as", typed=str, metavar="FORM",
        help="static, shared, c, wheel, wasm or page.",
    )  # fmt: skip
    name: str | None = option(
        None, "--name", typed=str | None, help="Of the package; default: the file's."
    )
    version: str = option("0.1.0", "--version", typed=str, help="Of a wheel.")
    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for what is made.")
    device: str | None = option(  # type: ignore[assignment]
        None, "--device", typed=str | None, help="cpu; or sim for programs that a board runs."
    )
