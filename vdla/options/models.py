"""Options of the commands about a model: ``compile``, ``run``, ``quantize`` and ``prune``.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdla.options import devices, fields
from vdla.options.common import NO_FARM, Progress, Report, Sized, progress, report
from vdla.options.devices import Placed
from vdla.options.spelling import Only, UsageError, block, option, python_only, ranges, reals

if TYPE_CHECKING:
    from vdla.compiler.frontend.shapes import Shapes
    from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
    from vdla.compiler.targets.processor.description.processor import Processor
    from vdla.compiler.targets.search.function_records import FunctionRecords
    from vdla.isa.config import Config

    Inputs = Mapping[str, Any]  # arrays; for sequences lists of such, None for what is absent

# Where options count
ON_BOARD = Only("device", "board")
WITH_BOARD = Only("device", "board", "sim", "rtl")
ON_SIMULATOR = Only("device", "sim")
RUN_ALONE = tuple(Only(name, given=False) for name in ("check", "profile", "explain"))


@dataclass(frozen=True)
class Compile(Placed):
    """Options by which a model is compiled.

    ``records`` are tuned schedules: a log's path, "none", or None for the bundled ones. ``shapes``
    are sizes that the file leaves open, by name: an input's as a whole, or a symbolic dimension's:
    ``{"image": (1, 3, 224, 224)}``, ``{"batch": 4}``. ``strict`` leaves to the host what in
    integers isn't onnxruntime's result bit for bit: softmax, normalizations, recurrent cells.
    ``calibration`` has one array per input, samples along the first axis, or is an .npz of such:
    what a file leaves in floats between integers becomes integers of the ranges that it has on
    them.
    ``turns`` is how often a loop may run whose number of turns no constant says.
    ``host`` gpu has a GPU run what the accelerator leaves; ``gpu`` is "opencl", or NVIDIA's
    architecture, as "sm_80"; ``places`` are nodes to run on vdla, gpu or cpu, by their names.
    ``host`` is also a processor's name, as "cortex-a9": the module has its code and, by a model,
    its time. ``placement`` "cost" leaves to the host what is faster there by the models of both.
    ``denormals`` "flush" has the processor take numbers below the least normal one for zeros, in
    constants and while its functions run; "keep" computes with them.
    """

    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: paper, or the board's."
    )
    settings: Sequence[str] = fields.settings()
    device: str = option("sim", "--device", typed=str, help="sim; gpu, or cpu for the host alone.")
    board: str | None = fields.board("For this board: its config, its memory, its processor.")
    target: str | Processor | None = devices.target("native, x86-64-v3, cortex-a9, wasm32 …")
    vthreads: int = option(
        2, "--vthreads", typed=int, only=[Only("device", "sim", "rtl")], min=1, max=8,
        help="Virtual threads.",
    )  # fmt: skip
    dump: Path | None = option(
        None, "--dump", typed=Path | None, help="Folder for the text after each pass."
    )
    records: str | Path | TileRecords | FunctionRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    host: str = devices.host()
    gpu: str = devices.gpu()
    places: Mapping[str, str] | None = devices.places()
    placement: str = devices.placement()
    denormals: str = devices.denormals()
    strict: bool = fields.strict()
    calibration: str | Path | Mapping[str, object] | None = fields.samples()
    turns: int = fields.turns()
    progress: Progress = progress()


@dataclass(frozen=True)
class Run(Placed):
    """Options with which a model is run: ``device`` is sim, rtl, board, gpu or cpu.

    ``inputs`` are one array per graph input, of its exact shape and dtype. For a model that isn't
    compiled yet, ``config``, ``records`` and ``shapes`` are as for ``compile``; sizes that it
    leaves open are the inputs' own unless ``shapes`` gives them. A module brings its config with
    it. ``host``, ``gpu``, ``places``, ``placement``, ``denormals``, ``strict`` and ``calibration``
    are as for ``compile``, too; a host by its name is modelled and not run: its functions run on
    this machine.
    With the device board: ``port`` is where it is, ``virtual`` takes the RTL of the whole board
    instead.
    ``threads`` share what the host computes; the results are the same for any number.
    ``no_native`` refuses a module that brings code for this processor, which runs with all that the
    caller may do, for another package's target, or models for onnxruntime.
    With a ``farm``, one of its workers runs the model, on its ``resource``, which says what the
    device is: ``board:ulx3s``, ``rtl``, ``gpu``, ``cpu``, or a processor that code is made for, as
    ``cpu:x86-64-v3``. ``folder`` has the farm's certificates.
    ``waves`` is an FST file that the RTL writes. ``check`` compares ``samples`` random inputs, or
    those in ``batches``. ``report`` is told what takes long.
    """

    inputs: Inputs | None = python_only(
        None, "One array for each input of the graph, of its shape and dtype; default: random ones."
    )
    device: str = option("sim", "--device", typed=str, help="sim, rtl, board, gpu or cpu.")
    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: paper, or the board's."
    )
    settings: Sequence[str] = fields.settings()
    board: str | None = fields.board(
        "The board; simulated: the one whose memory it is.", WITH_BOARD
    )
    port: str | None = option(
        None, "--port", typed=str | None, only=[NO_FARM, ON_BOARD], metavar="PORT",
        help="The board's serial port; default: found.",
    )  # fmt: skip
    virtual: bool = option(
        False, "--virtual", typed=bool, only=[NO_FARM, ON_BOARD],
        help="Run on the RTL of the whole board instead.",
    )  # fmt: skip
    target: str | Processor | None = devices.target("native, or less of it: native,-winograd")
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
    host: str = devices.host()
    gpu: str = devices.gpu()
    places: Mapping[str, str] | None = devices.places()
    placement: str = devices.placement()
    denormals: str = devices.denormals()
    strict: bool = fields.strict()
    calibration: str | Path | Mapping[str, object] | None = fields.samples()
    turns: int = fields.turns()
    farm: str | None = fields.farm(Only("check", given=False), Only("explain", given=False))
    resource: str | None = devices.resource()
    folder: Path | None = fields.folder()
    without_encryption: bool = fields.without_encryption()
    waves: Path | None = python_only(None, "An FST file for waves, of the RTL.")
    batches: Sequence[Inputs] = python_only(
        (), "Inputs that ``check`` compares, in place of random ones."
    )
    progress: Progress = progress()
    report: Report = report()

    def __post_init__(self) -> None:
        """Takes the device and the board from the resource, where it names them.

        Raises:
            UsageError: it is no name of one, or says others than those given.
        """
        super().__post_init__()
        device, board = devices.device_of_resource(self.resource)
        for name, value, usual in (("device", device, Run.device), ("board", board, None)):
            own = getattr(self, name)
            if value is not None and own not in (usual, value):
                raise UsageError(
                    f"--{name}: expected {value}, as --resource {self.resource} says, found {own}"
                )
            if value is not None:
                object.__setattr__(self, name, value)


@dataclass(frozen=True)
class RunFiles:
    """Files that ``vdla run`` reads and writes."""

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
        only=tuple(Only(name, given=False) for name in ("input", "profile", "explain")),
        help="Of a bundled model's test images, so many; default: all; one on a virtual board or "
        "a farm's, none with --check.",
    )  # fmt: skip
    energy: str | None = fields.energy(ON_SIMULATOR, *RUN_ALONE)


@dataclass(frozen=True)
class Quantize(Sized):
    """Options with which a float model is quantized.

    ``calibration`` has one array per input, samples along the first axis, or is an .npz of such, or
    a folder of images, each cut and resized to the input; its pixels, 0 to 255, are reduced by
    ``mean`` and divided by ``std``. Without it standard normal samples are used: good for speed
    studies, poor for accuracy. ``calibrate`` says what ranges are made of samples: "minmax" takes
    all, "percentile" the middle ``percentile`` %, "entropy" loses the least information,
    "distribution" makes mean and deviation fit. ``ranges`` are those of tensors, by name, in place
    of what samples say; ``exclude`` are nodes that stay floats, or "auto:DB" for those that lose
    more by themselves. ``labels`` are the samples' classes, for the accuracy before and after;
    ``score`` is a function of outputs and labels, or its ``FILE.py:NAME``, in place of it.
    ``bits16`` are tensors that get 16 bits, "all", or "auto:DB" for those whose rounding to 8 bits
    has a signal-to-noise ratio below that; ``weights`` are int8, int4, or "int4:32" in groups of as
    many input channels. Repairs: ``equalize`` gives all channels between two layers ranges alike,
    ``smooth`` moves that share of the ranges of a normalization's channels into the weights behind
    it, ``gptq`` rounds weights by what their inputs are, and ``correct_bias`` takes the mean errors
    of the layers' channels off their biases. ``finetune`` are layers whose weights are trained in
    ``steps`` to give the floats' outputs, by name, "all", or "auto:DB" for those that lose more by
    themselves. ``auto`` tries all of them, in the order of their
    cost in cycles of ``config``, and takes the first that loses no more than ``drop`` points of the
    score or, without labels, has outputs of a ratio of ``snr`` dB.
    """

    calibration: str | Path | Mapping[str, Any] | None = option(
        None, "--calibration", typed=Path | None, metavar="X.npz|FOLDER",
        help="Samples: one array per input, or a folder of images.",
    )  # fmt: skip
    labels: str | Path | Sequence[int] | None = option(
        None, "--labels", typed=Path | None, only=[Only("calibration")], metavar="F.npy|F.txt",
        help="A class for each sample: print the accuracy before and after.",
    )  # fmt: skip
    score: str | Callable[..., float] | None = option(
        None, "--score", typed=str | None, only=[Only("labels")], metavar="F.py:NAME",
        help="A function of outputs and labels, in place of the accuracy.",
    )  # fmt: skip
    calibrate: str = option(
        "minmax", "--calibrate", typed=str, metavar="HOW",
        help="Ranges: minmax, entropy, percentile or distribution.",
    )  # fmt: skip
    percentile: float = option(
        99.999, "--percentile", typed=float, only=[Only("calibrate", "percentile")],
        min=50, max=100, help="Share of the values that a range holds, in %.",
    )  # fmt: skip
    per_tensor: bool = option(
        False, "--per-tensor", typed=bool, help="One scale for all channels of a weight."
    )
    symmetric: bool = option(
        False, "--symmetric", typed=bool, help="Activations around 0: no zero points."
    )
    ranges: Mapping[str, tuple[float, float]] | None = option(
        None, "--range", typed=list[str] | None, read=lambda texts: ranges(texts or ()) or None,
        metavar="TENSOR=LOW,HIGH", help="A tensor's range, whatever the samples say.",
    )  # fmt: skip
    exclude: Sequence[str] = option(
        (), "--exclude", typed=list[str] | None, shown=None,
        read=lambda texts: tuple(texts or ()), metavar="NODE|auto:DB",
        help="Nodes that stay floats; those that lose more than DB.",
    )  # fmt: skip
    bits16: Sequence[str] = option(
        (), "--bits16", typed=list[str] | None, shown=None,
        read=lambda texts: tuple(texts or ()), metavar="auto:DB|all|TENSOR",
        help="Tensors of 16 bits; those that lose more than DB by 8.",
    )  # fmt: skip
    weights: str = option(
        "int8",
        "--weights",
        typed=str,
        metavar="int8|int4|int4:N",
        help="Of layers; int4 in groups of N inputs.",
    )
    equalize: bool = option(
        False, "--equalize", typed=bool, help="Give all channels between two layers ranges alike."
    )
    smooth: float = option(
        0.0, "--smooth", typed=float, min=0, max=1, metavar="SHARE",
        help="Of normalizations' ranges, moved into the weights behind (0.5).",
    )  # fmt: skip
    gptq: bool = option(False, "--gptq", typed=bool, help="Round weights by what their inputs are.")
    correct_bias: bool = option(
        False, "--correct-bias", typed=bool, help="Take channels' mean errors off the biases."
    )
    finetune: Sequence[str] = option(
        (), "--finetune", typed=list[str] | None, shown=None,
        only=[Only("calibration"), Only("auto", given=False)],
        read=lambda texts: tuple(texts or ()), metavar="auto:DB|all|NODE",
        help="Layers whose weights are trained; those that lose more than DB.",
    )  # fmt: skip
    steps: int = option(
        200, "--steps", typed=int, only=[Only("finetune")], min=1, metavar="N",
        help="Of fine-tuning, 8 samples each.",
    )  # fmt: skip
    auto: bool = option(
        False, "--auto", typed=bool, help="Try all repairs, those of the fewest cycles first."
    )
    drop: float = option(
        0.5, "--drop", typed=float, only=[Only("auto"), Only("labels")], min=0,
        help="Points of the score that --auto may lose.",
    )  # fmt: skip
    snr: float = option(
        30.0, "--snr", typed=float, only=[Only("auto"), Only("labels", given=False)], min=0,
        metavar="DB", help="Ratio of the outputs that --auto wants.",
    )  # fmt: skip
    config: str | Path | Config | None = fields.config(
        None, "A config, whose cycles --auto counts; default: paper.", [Only("auto")]
    )
    settings: Sequence[str] = fields.settings(Only("auto"))
    mean: tuple[float, ...] = option(
        (0.0,), "--mean", typed=str, shown="0", read=partial(reals, "--mean"),
        metavar="M|R,G,B", help="Of a pixel of 0 to 255, subtracted.",
    )  # fmt: skip
    std: tuple[float, ...] = option(
        (255.0,), "--std", typed=str, shown="255", read=partial(reals, "--std"),
        metavar="S|R,G,B", help="Of a pixel; what is left is divided by it.",
    )  # fmt: skip
    shapes: Shapes | None = fields.shapes()
    progress: Progress = progress()


@dataclass(frozen=True)
class Prune:
    """Options with which a float model is pruned.

    Of each layer the ``share`` of its ``blocks``, outputs × inputs of a tap, that has the least L2
    norm becomes zero. ``layers`` are the nodes that it is for, all by default; those of ``exclude``
    are left alone.
    """

    blocks: tuple[int, int] = option(
        (16, 16), "--blocks", typed=str, shown="16x16", read=partial(block, "--blocks"),
        metavar="OxI", help="Outputs x inputs: the accelerator's block_out x block_in.",
    )  # fmt: skip
    share: float = option(
        0.5, "--share", typed=float, help="Of each layer's blocks, that become zero."
    )
    layers: Sequence[str] = option(
        (), "--layer", typed=list[str] | None, shown=None,
        read=lambda texts: tuple(texts or ()), metavar="NAME", help="This one; default: all.",
    )  # fmt: skip
    exclude: Sequence[str] = option(
        (), "--exclude", typed=list[str] | None, shown=None,
        read=lambda texts: tuple(texts or ()), metavar="NODE", help="A layer to leave alone.",
    )  # fmt: skip
