"""What commands and the API's functions are told: one class for both, one field per option.

    @dataclass(frozen=True)
    class Compile:
        vthreads: int = option(2, "--vthreads", typed=int, help="Virtual threads.", min=1, max=8)

A field's type and default are Python's. ``option`` says how the command line spells it, what kind
of text is typed there, how that is read, and with which other options it counts; a field without it
is for Python alone. What is made of such classes is in ``spelling.py``.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdla.options import fields
from vdla.options.spelling import Only, UsageError, option

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from vdla.compiler.frontend.shapes import Shapes
    from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
    from vdla.compiler.targets.processor.description.processor import Processor
    from vdla.compiler.targets.search.function_records import FunctionRecords
    from vdla.isa.config import Config

    Inputs = Mapping[str, NDArray[Any]]

Progress = Callable[[str, int, int], None]  # called with (what, done, of)
Report = Callable[[str], None]


# Where options count
ON_BOARD = Only("device", "board")
WITH_BOARD = Only("device", "board", "sim", "rtl")
ON_SIMULATOR = Only("device", "sim")
RUN_ALONE = (Only("check", given=False), Only("profile", given=False))
ACCELERATOR = Only("target", "accelerator")
NO_FARM = Only("farm", given=False)
PROCESSORS = ("cpu", "x86-64-v3", "x86-64-v4")  # whose schedules this machine can time
ON_CPU = Only("target", *PROCESSORS)
NAMED = Only("target", "accelerator", "gpu", *PROCESSORS[1:])  # not the processor at hand
RANDOM_PROGRAMS = Only("model", given=False)
NO_BOARD = Only("board", given=False)


class Sized:
    """Options with the sizes that a model leaves open."""

    shapes: Shapes | None

    def __post_init__(self) -> None:
        """Raises UsageError unless the sizes are a dictionary."""
        if self.shapes is not None and not isinstance(self.shapes, Mapping):
            raise UsageError(
                "shapes: expected a dictionary of names, as {'batch': 4, 'x': (1, 3, 8, 8)}, "
                f"found {self.shapes!r}"
            )


class Placed(Sized):
    """Options with nodes that the user places, too."""

    places: Mapping[str, str] | None

    def __post_init__(self) -> None:
        """Raises UsageError unless the places are a dictionary of names."""
        super().__post_init__()
        given = {} if self.places is None else self.places
        named = isinstance(given, Mapping) and all(
            isinstance(each, str) for pair in given.items() for each in pair
        )
        if not named:
            raise UsageError(
                "places: expected a dictionary of names, as {'conv1': 'gpu'}, "
                f"found {self.places!r}"
            )


def quiet(what: str, done: int, total: int) -> None:
    """A progress callback that does nothing."""


def silent(text: str) -> None:
    """A message callback that does nothing."""


# The commands' ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compile(Placed):
    """How a model is compiled.

    ``records`` are tuned schedules: a log's path, "none", or None for the bundled ones. ``shapes``
    are sizes that the file leaves open, by name: an input's as a whole, or a symbolic dimension's:
    ``{"image": (1, 3, 224, 224)}``, ``{"batch": 4}``. ``strict`` leaves to the host what in
    integers isn't onnxruntime's result bit for bit: softmax, normalizations, recurrent cells.
    ``host`` gpu has a GPU run what the accelerator leaves; ``gpu`` is "opencl", or NVIDIA's
    architecture, as "sm_80"; ``places`` are nodes to run on vdla, gpu or cpu, by their names.
    ``host`` is also a processor's name, as "cortex-a9": the module has its code and, by a model,
    its time. ``placement`` "cost" leaves to the host what is faster there by the models of both.
    """

    config: str | Path | Config | None = fields.config(None, "Default: paper, or the board's.")
    settings: Sequence[str] = fields.settings()
    device: str = option("sim", "--device", typed=str, help="sim; gpu, or cpu for the host alone.")
    board: str | None = fields.board("For this board: its config, its memory, its processor.")
    target: str | Processor | None = fields.target("native, x86-64-v3, cortex-a9 …")
    vthreads: int = option(
        2, "--vthreads", typed=int, only=[Only("device", "sim", "rtl")], min=1, max=8,
        help="Virtual threads.",
    )  # fmt: skip
    dump: Path | None = option(
        None, "--dump", typed=Path | None, help="Folder for the text after each pass."
    )
    records: str | Path | TileRecords | FunctionRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    host: str = fields.host()
    gpu: str = fields.gpu()
    places: Mapping[str, str] | None = fields.places()
    placement: str = fields.placement()
    strict: bool = fields.strict()
    progress: Progress = quiet


@dataclass(frozen=True)
class Run(Placed):
    """What a model is run with, and where: ``device`` is sim, rtl, board, gpu or cpu.

    ``inputs`` are one array per graph input, of its exact shape and dtype. For a model that isn't
    compiled yet, ``config``, ``records`` and ``shapes`` are as for ``compile``; sizes that it
    leaves open are the inputs' own unless ``shapes`` gives them. A module brings its config with
    it. ``host``, ``gpu``, ``places``, ``placement`` and ``strict`` are as for ``compile``, too; a
    host by its name is modelled and not run: its functions run on this machine. With the device
    board: ``port`` is where it is, ``virtual`` takes the RTL of the whole board instead.
    ``threads`` share what the host computes; the results are the same for any number.
    ``no_native`` refuses a module that brings code for this processor, which runs with all that the
    caller may do, for another package's target, or models for onnxruntime.
    ``waves`` is an FST file that the RTL writes. ``check`` compares ``samples`` random inputs, or
    those in ``batches``. ``report`` is told what takes long.
    """

    inputs: Inputs | None = None
    device: str = option("sim", "--device", typed=str, help="sim, rtl, board, gpu or cpu.")
    config: str | Path | Config | None = fields.config(None, "Default: paper, or the board's.")
    settings: Sequence[str] = fields.settings()
    board: str | None = fields.board(
        "The board; simulated: the one whose memory it is.", WITH_BOARD
    )
    port: str | None = option(
        None, "--port", typed=str | None, only=[ON_BOARD], metavar="PORT",
        help="The board's serial port; default: found.",
    )  # fmt: skip
    virtual: bool = option(
        False, "--virtual", typed=bool, only=[ON_BOARD],
        help="Run on the RTL of the whole board instead.",
    )  # fmt: skip
    target: str | Processor | None = fields.target("native, or less of it: native,-winograd")
    records: str | Path | TileRecords | FunctionRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    samples: int = option(
        8, "--samples", typed=int, min=1,
        only=[Only("check"), Only("input", given=False), Only("images", given=False)],
        help="Random inputs that --check uses.",
    )  # fmt: skip
    threads: int | None = option(
        None, "--threads", typed=int | None, min=1, help="Of host code; default: all processors."
    )
    no_native: bool = option(
        False, "--no-native", typed=bool,
        help="Refuse an M.vdla with code for this processor or another package's target, or "
        "models for onnxruntime.",
    )  # fmt: skip
    host: str = fields.host()
    gpu: str = fields.gpu()
    places: Mapping[str, str] | None = fields.places()
    placement: str = fields.placement()
    strict: bool = fields.strict()
    waves: Path | None = None
    batches: Sequence[Inputs] = ()
    progress: Progress = quiet
    report: Report = silent


@dataclass(frozen=True)
class RunFiles:
    """What ``vdla run`` reads and writes."""

    input: Path | None = option(
        None, "--input", typed=Path | None, metavar="X.npz", help="One array per input."
    )
    output: Path | None = option(
        None, "--output", typed=Path | None, only=RUN_ALONE, metavar="Y.npz",
        help="Where the outputs go.",
    )  # fmt: skip
    trace: Path | None = option(
        None,
        "--trace",
        typed=Path | None,
        only=RUN_ALONE,
        help="Write a Perfetto timeline; or, from rtl to a .fst file, waves.",
    )
    images: int | None = option(
        None, "--images", typed=int | None, min=1,
        only=(Only("input", given=False), Only("profile", given=False)),
        help="Of a bundled model's test images, so many; default: all; one on a virtual board, "
        "none with --check.",
    )  # fmt: skip
    energy: str | None = fields.energy(ON_SIMULATOR, *RUN_ALONE)


@dataclass(frozen=True)
class Compare(Sized):
    """What is compared: schedules for some numbers of virtual threads, on a config.

    ``energy`` names the table by which the energy of each layer is estimated; none by default.
    ``host`` is the processor whose time is modelled for what the accelerator leaves, "native" this
    machine's.
    """

    config: str | Path | Config | None = fields.config(None, "Default: paper, or the board's.")
    vthreads: Sequence[int] = fields.vthreads((1, 2))
    settings: Sequence[str] = fields.settings()
    records: str | Path | TileRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    latencies: Sequence[int] = option(
        (),
        "--latency",
        typed=str | None,
        shown=None,
        read=partial(fields.listed, "--latency", 0, None),
        metavar="N,N,…",
        help="Sweep over memory latencies, in cycles; schedules are chosen anew at each.",
    )
    energy: str | None = fields.energy()
    board: str | None = fields.board("In front of this board's memory.")
    host: str = fields.modelled_host()
    progress: Progress = quiet


@dataclass(frozen=True)
class Offload(Sized):
    """What a network is put on: a ``board``, with its processor and a config in its fabric.

    ``config`` and ``records`` are as for ``compile``.
    """

    board: str = fields.board("Its processor, its memory, its clock.", needed=True)
    config: str | Path | Config | None = fields.config(None, "Default: the board's.")
    settings: Sequence[str] = fields.settings()
    records: str | Path | TileRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    progress: Progress = quiet


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
        help="Also the schedule of the most threads by itself: serialized by tokens, with one "
        "engine alone, and with threads and buffer copies apart.",
    )
    report: Path | None = option(
        None,
        "--report",
        typed=Path | None,
        metavar="OUT.html",
        help="Write one page that opens offline.",
    )


@dataclass(frozen=True)
class Tune(Sized):
    """How schedules are searched for: the records' file, made or gone on with, and the search.

    ``trials`` is the most candidates per distinct layer, ``layer`` the one to search for; all
    without it. With another target than ``accelerator``, where functions share their trials, it
    is the mean; ``strategy`` says which schedules there are, and what is the accelerator's alone
    (``config``, ``settings``, ``vthreads``, ``workers``, ``board``) is refused. With a ``board``,
    its own counters measure and not the simulator: at each of ``ports`` one, by default at all
    that are found, or as many ``virtual`` ones as ``workers``. With a ``farm``, its workers
    measure: those that have the board, ``gpu``, or a processor as ``cpu:x86-64-v3``.
    """

    log: str | Path = option(
        MISSING, "--log", typed=Path, metavar="F", help="Records; resumed if there."
    )
    config: str | Path | Config | None = fields.config(
        None, "Default: paper, or the board's.", [ACCELERATOR]
    )
    settings: Sequence[str] = fields.settings(ACCELERATOR)
    trials: int = option(64, "--trials", typed=int, min=1, help="Candidates per distinct layer.")
    searcher: str = option(
        "xgboost", "--searcher", typed=str, help="xgboost, random, grid or genetic."
    )
    vthreads: Sequence[int] = fields.vthreads((2,), ACCELERATOR)
    layer: str = option("", "--layer", typed=str, metavar="NAME", help="This layer alone.")
    seed: int = option(0, "--seed", typed=int, min=0, help="Of the search's random draws.")
    workers: int = option(
        2, "--workers", typed=int, only=[ACCELERATOR, NO_FARM], min=1, max=64,
        help="Processes that measure; with --virtual, virtual boards.",
    )  # fmt: skip
    shapes: Shapes | None = fields.shapes()
    progress: Progress = quiet
    target: str = option(
        "accelerator", "--target", typed=str,
        help="accelerator; cpu or gpu for the one at hand; x86-64-v3 or -v4 for its instructions.",
    )  # fmt: skip
    strategy: str = option(
        "template", "--strategy", typed=str, only=[Only("target", *PROCESSORS, "gpu")],
        help="On a processor or GPU: template, or sketch for none.",
    )  # fmt: skip
    threads: int = option(
        1, "--threads", typed=int, only=[ON_CPU], min=1, help="That share a candidate's loops."
    )
    board: str | None = option(
        None, "--board", typed=str | None, only=[ACCELERATOR], metavar="B",
        help="Measure on boards of this kind, and not on the simulator.",
    )  # fmt: skip
    ports: Sequence[str] = option(
        (), "--port", typed=str | None, shown=None, read=fields.texts,
        only=[Only("board"), NO_FARM], metavar="PORT,PORT…",
        help="The boards' serial ports; default: all that are found.",
    )  # fmt: skip
    virtual: bool = option(
        False, "--virtual", typed=bool, only=[Only("board"), NO_FARM],
        help="Measure on the RTL of whole boards instead.",
    )  # fmt: skip
    farm: str | None = fields.farm(NAMED)
    folder: Path | None = fields.folder()
    without_encryption: bool = fields.without_encryption()
    report: Report = silent


@dataclass(frozen=True)
class Quantize(Sized):
    """What a float model is quantized with.

    ``calibration`` is an .npz with one array per input, samples along the first axis. Without it
    standard normal samples are used: good for speed studies, poor for accuracy.
    """

    calibration: str | Path | None = option(
        None, "--calibration", typed=Path | None, metavar="X.npz"
    )
    shapes: Shapes | None = fields.shapes()


@dataclass(frozen=True)
class Lockstep(Sized):
    """What simulator and RTL run side by side: random programs, or a model's.

    With a ``board``, the RTL is its whole design with its memory, and the config its own.
    """

    config: str | Path | Config | None = fields.config(None, "Default: paper, or the board's.")
    settings: Sequence[str] = fields.settings()
    board: str | None = option(
        None, "--board", typed=str | None, metavar="B",
        help="Run the board's whole design, with its memory.",
    )  # fmt: skip
    programs: int = option(
        100, "--programs", typed=int, only=[RANDOM_PROGRAMS], min=1, help="Random programs to run."
    )
    seed: int = option(
        0, "--seed", typed=int, only=[RANDOM_PROGRAMS], min=0, help="The first program's number."
    )
    model: str | None = option(
        None, "--model", typed=str | None, metavar="MODEL", help="Run a model's program instead."
    )
    coverage: bool = option(
        False, "--coverage", typed=bool, only=[RANDOM_PROGRAMS],
        help="Say which goals the programs have reached.",
    )  # fmt: skip
    memories: int = option(
        3, "--memories", typed=int, only=[RANDOM_PROGRAMS, NO_BOARD], min=1, max=3,
        help="Memories that each program meets; 1 for long runs.",
    )  # fmt: skip
    workers: int = option(
        1, "--workers", typed=int, only=[RANDOM_PROGRAMS], min=1, max=64,
        help="Processes that run programs.",
    )  # fmt: skip
    shapes: Shapes | None = fields.shapes(Only("model"))
    farm: str | None = fields.farm(RANDOM_PROGRAMS)
    folder: Path | None = fields.folder()
    without_encryption: bool = fields.without_encryption()


@dataclass(frozen=True)
class Synth:
    """What is made for a board: by which toolchain, of which config, and where."""

    toolchain: str | None = option(
        None, "--toolchain", typed=str | None, metavar="T", help="Default: the board's first."
    )
    config: str | Path | Config | None = fields.config(None, "Default: the board's.")
    settings: Sequence[str] = fields.settings()
    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for the project's folder.")
    progress: Progress = quiet
