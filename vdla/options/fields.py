"""Options that several commands have, each made by a function of what differs between them.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING
from functools import partial
from pathlib import Path

from vdla.options import spelling

PICTURES = ("png", "svg", "pdf")  # formats, the default first
FOLDER = "The farm's certificates; default: $VDLA_FARM, or ~/.local/share/vdla/farm."


def config(
    default: str | None,
    about: str = "A config's name or TOML file.",
    only: Sequence[spelling.Only] = (),
) -> spelling.Default:
    """The accelerator's config: its name, its file, or itself."""
    return spelling.option(
        default,
        "-c",
        "--config",
        typed=str if default else str | None,
        only=only,
        metavar="CONFIG",
        help=about,
    )


def configs(about: str) -> spelling.Default:
    """A config, or several to lay side by side: names, files, or themselves."""
    return spelling.option(
        None,
        "-c",
        "--config",
        typed=list[str] | None,
        shown=None,
        read=_one_or_several,
        metavar="CONFIG",
        help=about,
    )


def _one_or_several(texts: Sequence[str] | None) -> object:
    """A text where there is one; None where there is none."""
    if texts is None or len(texts) < 2:
        return texts[0] if texts else None
    return tuple(texts)


def settings(*only: spelling.Only) -> spelling.Default:
    """Parameters of the config that are overridden, as ``memory.latency=256``."""
    return spelling.option(
        (),
        "--set",
        typed=list[str] | None,
        shown=None,
        read=lambda texts: tuple(texts or ()),
        only=only,
        metavar="KEY=VALUE",
        help="Override a parameter or memory.PARAMETER.",
    )


def board(about: str, *only: spelling.Only, needed: bool = False) -> spelling.Default:
    """A board by its name."""
    default, typed = (MISSING, str) if needed else (None, str | None)
    return spelling.option(default, "--board", typed=typed, only=only, metavar="B", help=about)


def records() -> spelling.Default:
    """Tuned schedules: a log, or none."""
    return spelling.option(
        None, "--records", typed=str | None, compiles=True, metavar="F|none",
        help="Tuned schedules; default: the bundled.",
    )  # fmt: skip


def energy(*only: spelling.Only) -> spelling.Default:
    """The table that energy is estimated by."""
    return spelling.option(
        None, "--energy", typed=str | None, only=only, metavar="TABLE",
        help="Estimate energy by a table: aladdin-45nm, horowitz-45nm, or a TOML file.",
    )  # fmt: skip


def shapes(*only: spelling.Only) -> spelling.Default:
    """Sizes that a model leaves open, by name."""
    return spelling.option(
        None,
        "--shape",
        typed=list[str] | None,
        shown=None,
        read=lambda texts: spelling.sizes(texts or ()) or None,
        only=only,
        compiles=True,
        metavar="NAME=N|INPUT=D0,D1,…",
        help="A size that the model leaves open: a symbolic dimension's, or an input's shape.",
    )


def vthreads(default: tuple[int, ...], *only: spelling.Only) -> spelling.Default:
    """Numbers of virtual threads."""
    return spelling.option(
        default,
        "--vthreads",
        typed=str,
        shown=",".join(map(str, default)),
        read=partial(listed, "--vthreads", 1, 8),
        only=only,
        help="Numbers of virtual threads, with commas.",
    )


def listed(name: str, low: int, high: int | None, text: str | None) -> tuple[int, ...]:
    """Distinct numbers between commas; none where nothing is typed."""
    return () if text is None else tuple(spelling.numbers(name, text, low, high))


def texts(text: str | None) -> tuple[str, ...]:
    """Texts between commas; none where nothing is typed."""
    return () if text is None else tuple(part.strip() for part in text.split(","))


def formats() -> spelling.Default:
    """File formats of pictures."""
    return spelling.option(
        PICTURES[:1],
        "--format",
        typed=str,
        shown=PICTURES[0],
        read=_formats,
        metavar=f"{'|'.join(PICTURES)},…",
        help="Formats of the pictures, with commas.",
    )


def _formats(text: str) -> tuple[str, ...]:
    """Distinct formats between commas."""
    parts = texts(text)
    for part in parts:
        if part not in PICTURES:
            known = f"{', '.join(PICTURES[:-1])} or {PICTURES[-1]}"
            raise spelling.UsageError(f"--format: expected {known}, found {part}")
    return tuple(dict.fromkeys(parts))


def modelled_host() -> spelling.Default:
    """The processor whose time is modelled for what the accelerator leaves."""
    return spelling.option(
        "native", "--host", typed=str, metavar="native|cortex-a9…",
        help="The processor whose time for the rest is modelled, for end-to-end milliseconds.",
    )  # fmt: skip


def strict() -> spelling.Default:
    """Whether the host runs what is no integer of onnxruntime's in every result."""
    return spelling.option(
        False, "--strict", typed=bool, only=[spelling.Only("device", "sim", "rtl", "board")],
        compiles=True,
        help="Leave to the host what may differ by 1 LSB in integers: softmax, normalizations, "
        "recurrent cells.",
    )  # fmt: skip


def samples() -> spelling.Default:
    """Samples of inputs, on which ranges of floats are measured."""
    return spelling.option(
        None, "--calibration", typed=Path | None, metavar="X.npz", compiles=True,
        only=[
            spelling.Only("device", "sim", "rtl", "board"),
            spelling.Only("strict", given=False),
        ],
        help="Samples, one array per input: what a file leaves in floats between integers "
        "becomes integers of the ranges that it has on them.",
    )  # fmt: skip


def turns() -> spelling.Default:
    """Most turns of a loop whose number no constant says."""
    return spelling.option(
        10_000, "--turns", typed=int, compiles=True, min=1, metavar="N",
        help="Most turns of a loop whose number of turns only a run knows.",
    )  # fmt: skip


def farm(*only: spelling.Only) -> spelling.Default:
    """The address of a farm whose machines do the work."""
    return spelling.option(
        None, "--farm", typed=str | None, only=only, metavar="ADDRESS",
        help="Have the machines of a farm do it: vdla farm up.",
    )  # fmt: skip


def folder() -> spelling.Default:
    """A farm's certificates."""
    return spelling.option(
        None, "--folder", typed=Path | None, only=[spelling.Only("farm")], metavar="F",
        help=FOLDER,
    )  # fmt: skip


def without_encryption() -> spelling.Default:
    """Whether a farm without TLS is taken."""
    return spelling.option(
        False, "--without-encryption", typed=bool, only=[spelling.Only("farm")],
        help="Use a farm of which anyone who reaches it can run code.",
    )  # fmt: skip


def part() -> spelling.Default:
    """The part that a design has to fit."""
    return spelling.option(
        "none", "--part", typed=str, metavar="P",
        help="What designs have to fit: xc7z020, or ulx3s, the board's ECP5; none: any size.",
    )  # fmt: skip


def weights() -> spelling.Default:
    """Models' shares of a sum of cycles, by name."""
    return spelling.option(
        None,
        "--weight",
        typed=list[str] | None,
        shown=None,
        read=lambda texts: spelling.weights(texts or ()) or None,
        metavar="MODEL=W",
        help="A model's share of the cycles; 1 unless given.",
    )
