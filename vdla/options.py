"""What commands and the API's functions are told: one class for both, one field per option.

    @dataclass(frozen=True)
    class Compile:
        vthreads: int = option(2, "--vthreads", typed=int, help="Virtual threads.", min=1, max=8)

A field's type and default are Python's. ``option`` says how the command line spells it, what kind
of text is typed there, and how that is read; a field without it is for Python alone. ``spelled`` in
``vdla/cli.py`` makes a command's options of a class, ``takes`` a function's keyword arguments.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial, wraps
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from vdla.support.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vdla.compiler.codegen.target import Target
    from vdla.compiler.frontend.shapes import Shapes
    from vdla.compiler.tune.cpu.records import FunctionRecords
    from vdla.compiler.tune.records import Records
    from vdla.isa.config import Config

    Inputs = Mapping[str, NDArray[Any]]

Progress = Callable[[str, int, int], None]  # told (what, done, of)
Report = Callable[[str], None]


class UsageError(UserError):
    """An option whose value makes no sense."""


@dataclass(frozen=True)
class Spelling:
    """How the command line spells an option.

    ``typed`` is the kind of what is typed, ``default`` stands there when nothing is, ``read`` turns
    it into the field's value, ``more`` is typer's: help, metavar, limits.
    """

    names: tuple[str, ...]
    typed: Any
    default: Any
    read: Callable[[Any], Any]
    more: Mapping[str, Any]


def option(
    default: Any,
    *names: str,
    typed: Any,
    shown: Any = MISSING,
    read: Callable[[Any], Any] = lambda value: value,
    **more: Any,
) -> Any:
    """A field that the command line has, too. ``shown``: its default there, when it is another."""
    shown = default if shown is MISSING else shown
    spelling = Spelling(names, typed, shown, read, more)
    return field(default=default, metadata={"spelling": spelling})


def spelling(of: Field[Any]) -> Spelling | None:
    """How the command line spells a field; None for one that only Python has."""
    found: Spelling | None = of.metadata.get("spelling")
    return found


def _quiet(what: str, done: int, total: int) -> None:
    """Tells nobody."""


def _silent(text: str) -> None:
    """Tells nobody."""


# Options that several commands have ---------------------------------------------------------------


def _config(default: str | None, about: str = "A config's name or TOML file.") -> Any:
    typed = str if default else str | None
    return option(default, "-c", "--config", typed=typed, metavar="CONFIG", help=about)


def _settings() -> Any:
    return option(
        (),
        "--set",
        typed=list[str] | None,
        shown=None,
        read=lambda texts: tuple(texts or ()),
        metavar="KEY=VALUE",
        help="Override a parameter or memory.PARAMETER.",
    )


def _records() -> Any:
    return option(
        None,
        "--records",
        typed=str | None,
        metavar="F|none",
        help="Tuned schedules; default: the bundled.",
    )


def _shapes() -> Any:
    return option(
        None,
        "--shape",
        typed=list[str] | None,
        shown=None,
        read=lambda texts: sizes(texts or ()) or None,
        metavar="NAME=N|INPUT=D0,D1,…",
        help="A size that the model leaves open: a symbolic dimension's, or an input's shape.",
    )


def _vthreads(default: tuple[int, ...]) -> Any:
    return option(
        default,
        "--vthreads",
        typed=str,
        shown=",".join(map(str, default)),
        read=partial(_listed, "--vthreads", 1, 8),
        help="Numbers of virtual threads, with commas.",
    )


def _listed(name: str, low: int, high: int | None, text: str | None) -> tuple[int, ...]:
    return () if text is None else tuple(numbers(name, text, low, high))


def sizes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The values of ``--shape``: a name to its one size, or to several with commas between."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, listed = text.rpartition("=")
        try:
            found[name.strip()] = tuple(int(part) for part in listed.split(","))
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise UsageError(f"--shape: expected NAME=N or INPUT=D0,D1,…, found {text!r}")
    return found


def numbers(option: str, text: str, low: int, high: int | None = None) -> list[int]:
    """The value of an option that lists distinct numbers, with commas between them."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    inside = all(low <= n and (high is None or n <= high) for n in found)
    if not found or not inside or len(set(found)) < len(found):
        span = f"from {low} to {high}" if high is not None else f"from {low} up"
        raise UsageError(f"{option}: expected distinct numbers {span}, found {text!r}")
    return found


# The commands' ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compile:
    """How a model is compiled.

    ``records`` are tuned schedules: a log's path, "none", or None for the bundled ones. ``shapes``
    are sizes that the file leaves open, by name: an input's as a whole, or a symbolic dimension's:
    ``{"image": (1, 3, 224, 224)}``, ``{"batch": 4}``.
    """

    config: str | Path | Config | None = _config(None, "Default: paper, or the board's.")
    settings: Sequence[str] = _settings()
    device: str = option("sim", "--device", typed=str, help="sim, or cpu for the host alone.")
    board: str | None = option(
        None,
        "--board",
        typed=str | None,
        metavar="B",
        help="For this board: its config, its processor.",
    )
    target: str | Target | None = option(
        None,
        "--target",
        typed=str | None,
        metavar="P",
        help="The processor of what the accelerator leaves: native, x86-64-v3, cortex-a9, …",
    )
    vthreads: int = option(2, "--vthreads", typed=int, min=1, max=8, help="Virtual threads.")
    dump: Path | None = option(
        None, "--dump", typed=Path | None, help="Folder for the text after each pass."
    )
    records: str | Path | Records | FunctionRecords | None = _records()
    shapes: Shapes | None = _shapes()
    progress: Progress = _quiet


@dataclass(frozen=True)
class Run:
    """What a model is run with, and where: ``device`` is sim, rtl, board or cpu.

    ``inputs`` are one array per graph input, of its exact shape and dtype. For a model that isn't
    compiled yet, ``config``, ``records`` and ``shapes`` are as for ``compile``; sizes that it
    leaves open are the inputs' own unless ``shapes`` gives them. A module brings its config with
    it. With the device board: ``port`` is where it is, ``virtual`` takes the RTL of the whole board
    instead.
    ``threads`` share what the host computes; the results are the same for any number.
    ``waves`` is an FST file that the RTL writes; ``samples`` random inputs are what ``check``
    compares. ``report`` is told what takes long.
    """

    inputs: Inputs | None = None
    device: str = option("sim", "--device", typed=str, help="sim, rtl, board or cpu.")
    config: str | Path | Config | None = _config(None, "Default: paper, or the board's.")
    settings: Sequence[str] = _settings()
    board: str | None = option(
        None, "--board", typed=str | None, metavar="B", help="With --device board: which."
    )
    port: str | None = option(
        None, "--port", typed=str | None, metavar="PORT",
        help="The board's serial port; default: found.",
    )  # fmt: skip
    virtual: bool = option(
        False, "--virtual", typed=bool, help="Run on the RTL of the whole board instead."
    )
    records: str | Path | Records | FunctionRecords | None = _records()
    shapes: Shapes | None = _shapes()
    samples: int = option(8, "--samples", typed=int, min=1, help="Random inputs that --check uses.")
    threads: int | None = option(
        None, "--threads", typed=int | None, min=1, help="Of host code; default: all processors."
    )
    waves: Path | None = None
    progress: Progress = _quiet
    report: Report = _silent


@dataclass(frozen=True)
class RunFiles:
    """What ``vdla run`` reads and writes."""

    input: Path | None = option(
        None, "--input", typed=Path | None, metavar="X.npz", help="One array per input."
    )
    output: Path | None = option(
        None, "--output", typed=Path | None, metavar="Y.npz", help="Where the outputs go."
    )
    trace: Path | None = option(
        None,
        "--trace",
        typed=Path | None,
        help="Write a Perfetto timeline; or, from rtl to a .fst file, waves.",
    )


@dataclass(frozen=True)
class Compare:
    """What is compared: schedules for some numbers of virtual threads, on a config."""

    config: str | Path | Config = _config("paper")
    vthreads: Sequence[int] = _vthreads((1, 2))
    settings: Sequence[str] = _settings()
    records: str | Path | Records | None = _records()
    shapes: Shapes | None = _shapes()
    latencies: Sequence[int] = option(
        (),
        "--latency",
        typed=str | None,
        shown=None,
        read=partial(_listed, "--latency", 0, None),
        metavar="N,N,…",
        help="Sweep over memory latencies, in cycles; schedules are chosen anew at each.",
    )
    progress: Progress = _quiet


@dataclass(frozen=True)
class CompareOutput:
    """What ``vdla compare`` shows beside the table, and where it writes."""

    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for the plots and the trace.")
    trace_layer: str = option(
        "", "--trace-layer", typed=str, help="The layer to trace; default: the first."
    )
    same_schedule: bool = option(
        False,
        "--same-schedule",
        typed=bool,
        help="Also the schedule of the most threads by itself: serialized by tokens, and with "
        "threads and buffer copies apart.",
    )
    report: Path | None = option(
        None,
        "--report",
        typed=Path | None,
        metavar="OUT.html",
        help="Write one page that opens offline.",
    )


@dataclass(frozen=True)
class Tune:
    """How schedules are searched for: the records' file, made or gone on with, and the search.

    ``trials`` is the most candidates per distinct layer, ``layer`` the one to search for; all
    without it. With the target ``cpu``, where functions share their trials, it is the mean;
    ``strategy`` says which schedules there are, one worker measures, and what is the
    accelerator's (``config``, ``settings``, ``vthreads``) doesn't count.
    """

    log: str | Path = option(
        MISSING, "--log", typed=Path, metavar="F", help="Records; resumed if there."
    )
    config: str | Path | Config = _config("paper")
    settings: Sequence[str] = _settings()
    trials: int = option(64, "--trials", typed=int, min=1, help="Candidates per distinct layer.")
    searcher: str = option(
        "xgboost", "--searcher", typed=str, help="xgboost, random, grid or genetic."
    )
    vthreads: Sequence[int] = _vthreads((2,))
    layer: str = option("", "--layer", typed=str, metavar="NAME", help="This layer alone.")
    seed: int = option(0, "--seed", typed=int, min=0, help="Of the search's random draws.")
    workers: int = option(
        2, "--workers", typed=int, min=1, max=64, help="Processes that measure."
    )  # fmt: skip
    shapes: Shapes | None = _shapes()
    progress: Progress = _quiet
    target: str = option(
        "accelerator", "--target", typed=str, help="accelerator, or cpu for this processor."
    )
    strategy: str = option(
        "template", "--strategy", typed=str, help="On the cpu: template, or sketch for none."
    )


@dataclass(frozen=True)
class Quantize:
    """What a float model is quantized with.

    ``calibration`` is an .npz with one array per input, samples along the first axis. Without it
    standard normal samples are used: good for speed studies, poor for accuracy.
    """

    calibration: str | Path | None = option(
        None, "--calibration", typed=Path | None, metavar="X.npz"
    )
    shapes: Shapes | None = _shapes()


@dataclass(frozen=True)
class Lockstep:
    """What simulator and RTL run side by side: random programs, or a model's."""

    config: str | Path | Config = _config("paper")
    settings: Sequence[str] = _settings()
    programs: int = option(100, "--programs", typed=int, min=1, help="Random programs to run.")
    seed: int = option(0, "--seed", typed=int, min=0, help="The first program's number.")
    model: str | None = option(
        None,
        "--model",
        typed=str | None,
        metavar="MODEL",
        help="Run a model's program instead.",
    )
    coverage: bool = option(
        False, "--coverage", typed=bool, help="Say which goals the programs have reached."
    )
    memories: int = option(
        3,
        "--memories",
        typed=int,
        min=1,
        max=3,
        help="Memories that each program meets; 1 for long runs.",
    )
    workers: int = option(
        1, "--workers", typed=int, min=1, max=64, help="Processes that run programs."
    )
    shapes: Shapes | None = _shapes()


@dataclass(frozen=True)
class Synth:
    """What is made for a board: by which toolchain, of which config, and where."""

    toolchain: str | None = option(
        None, "--toolchain", typed=str | None, metavar="T", help="Default: the board's first."
    )
    config: str | Path | Config | None = _config(None, "Default: the board's.")
    settings: Sequence[str] = _settings()
    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for the project's folder.")
    progress: Progress = _quiet


# Functions that take them -------------------------------------------------------------------------

P = ParamSpec("P")
Model = TypeVar("Model", contravariant=True)
Options = TypeVar("Options")
Told = TypeVar("Told", contravariant=True)
Result = TypeVar("Result", covariant=True)


class Taking(Protocol[Model, P, Told, Result]):
    """A function of a model that takes options as one object, or spelled out as arguments."""

    @overload
    def __call__(self, model: Model, options: Told, /) -> Result: ...
    @overload
    def __call__(self, model: Model, /, *args: P.args, **kwargs: P.kwargs) -> Result: ...


def takes(
    kind: Callable[P, Options],
) -> Callable[[Callable[[Model, Options], Result]], Taking[Model, P, Options, Result]]:
    """Lets callers of a function of a model and options give the options' fields instead."""

    def decorate(
        function: Callable[[Model, Options], Result],
    ) -> Taking[Model, P, Options, Result]:
        @wraps(function)
        def call(model: Model, *args: Any, **kwargs: Any) -> Result:
            whole = len(args) == 1 and not kwargs and type(args[0]) is kind
            return function(model, args[0] if whole else kind(*args, **kwargs))

        first, *_ = signature(function).parameters.values()
        call.__signature__ = Signature([first, *signature(kind).parameters.values()])  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def read(kind: type[Options], typed: dict[str, Any]) -> Options:
    """Options of a class from what was typed, by field; it is taken out of ``typed``.

    Raises:
        UsageError: a text that makes no sense; names the option.
    """
    spelled = {f.name: s for f in fields(kind) if (s := spelling(f))}  # type: ignore[arg-type]
    return kind(**{name: each.read(typed.pop(name)) for name, each in spelled.items()})
