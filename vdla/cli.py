"""The ``vdla`` command. Results go to stdout, progress and remarks to stderr.

Exit codes: 0 done, 1 the thing checked does not hold, 2 the input is wrong. Wrong input gets one
line that says what was expected, what was found, and where. What a command needs is imported when
it runs, so that help and listings come at once.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from vdla.support.errors import CheckError, UserError

app = typer.Typer(
    name="vdla",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
isa_app = typer.Typer(help="The ISA's generated forms.", no_args_is_help=True)
app.add_typer(isa_app, name="isa")
hw_app = typer.Typer(help="The accelerator's hardware.", no_args_is_help=True)
app.add_typer(hw_app, name="hw")

Model = Annotated[str, typer.Argument(metavar="MODEL", help="An ONNX file or a bundled name.")]
ConfigName = Annotated[
    str, typer.Option("-c", "--config", metavar="CONFIG", help="A config's name or TOML file.")
]
BoardConfig = Annotated[
    str | None,
    typer.Option("-c", "--config", metavar="CONFIG", help="Default: paper, or the board's."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a parameter or memory.PARAMETER."),
]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=N|INPUT=D0,D1,…",
        help="A size that the model leaves open: a symbolic dimension's, or an input's shape.",
    ),
]
RecordsFile = Annotated[
    str | None,
    typer.Option("--records", metavar="F|none", help="Tuned schedules; default: the bundled."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Out = Annotated[Path | None, typer.Option("-o", "--output-file", metavar="FILE")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"vdla {version('vdla')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compile ONNX models for the VDLA accelerator, simulate every cycle, and see why."""


@app.command()
def compare(
    model: Model,
    config: ConfigName = "paper",
    vthreads: Annotated[str, typer.Option(help="Numbers of virtual threads, with commas.")] = "1,2",
    out: Annotated[Path, typer.Option(help="Folder for the plots and the trace.")] = Path("out"),
    trace_layer: Annotated[str, typer.Option(help="The layer to trace; default: the first.")] = "",
    latency: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,…",
            help="Sweep over memory latencies, in cycles; schedules are chosen anew at each.",
        ),
    ] = None,
    same_schedule: Annotated[
        bool,
        typer.Option(
            help="Also the schedule of the most threads by itself: serialized by tokens, and with "
            "threads and buffer copies apart."
        ),
    ] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="OUT.html", help="Write one page that opens offline.")
    ] = None,
    records: RecordsFile = None,
    settings: Settings = None,
    shape: Shape = None,
    json: Json = False,
) -> None:
    """Latency hiding per layer: table, plots, a timeline of one layer, a page to look around in."""
    from vdla.commands import compare

    compare.compare(
        model,
        config,
        vthreads,
        out,
        trace_layer,
        latency,
        same_schedule,
        report,
        records,
        settings or [],
        shape or [],
        json,
    )


@app.command(name="compile")
def compile_(
    model: Model,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="M.vdla")],
    config: BoardConfig = None,
    device: Annotated[str, typer.Option(help="sim, or cpu for the host alone.")] = "sim",
    board: Annotated[
        str | None, typer.Option(metavar="B", help="For this board: its config, its processor.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="The host's processor: native, cortex-a9 or cortex-a53. Default: the board's.",
        ),
    ] = None,
    vthreads: Annotated[int, typer.Option(min=1, max=8, help="Virtual threads.")] = 2,
    dump: Annotated[Path | None, typer.Option(help="Folder for the text after each pass.")] = None,
    records: RecordsFile = None,
    settings: Settings = None,
    shape: Shape = None,
    json: Json = False,
) -> None:
    """Compile a QDQ ONNX model into a module."""
    from vdla.commands import transform

    transform.compile_model(
        model,
        output,
        config,
        device,
        board,
        host,
        vthreads,
        dump,
        records,
        settings or [],
        shape or [],
        json,
    )


@app.command()
def run(
    model: Annotated[str, typer.Argument(metavar="MODEL|M.vdla")],
    device: Annotated[str, typer.Option(help="sim, rtl, board or cpu.")] = "sim",
    config: BoardConfig = None,
    board: Annotated[
        str | None, typer.Option(metavar="B", help="With --device board: which.")
    ] = None,
    port: Annotated[
        str | None, typer.Option(metavar="PORT", help="The board's serial port; default: found.")
    ] = None,
    virtual: Annotated[
        bool, typer.Option("--virtual", help="Run on the RTL of the whole board instead.")
    ] = False,
    input: Annotated[
        Path | None, typer.Option(metavar="X.npz", help="One array per input.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="Y.npz", help="Where the outputs go.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with onnxruntime, layer by layer.")
    ] = False,
    samples: Annotated[int, typer.Option(min=1, help="Random inputs that --check uses.")] = 8,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write a Perfetto timeline; or, from rtl to a .fst file, waves."),
    ] = None,
    records: RecordsFile = None,
    settings: Settings = None,
    shape: Shape = None,
    json: Json = False,
) -> None:
    """Run a model: cycles, placement, outputs. Without --input: the bundled or a random input."""
    from vdla.commands import measure

    target = measure.Target(device, board, port, virtual)
    measure.run(
        model,
        target,
        config,
        input,
        output,
        check,
        samples,
        trace,
        records,
        settings or [],
        shape or [],
        json,
    )


@app.command()
def synth(
    board: Annotated[str, typer.Option(metavar="B", help="The board.")],
    toolchain: Annotated[
        str | None, typer.Option(metavar="T", help="Default: the board's first.")
    ] = None,
    config: Annotated[
        str | None, typer.Option("-c", "--config", metavar="CONFIG", help="Default: the board's.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the project's folder.")] = Path("out"),
    settings: Settings = None,
    json: Json = False,
) -> None:
    """A bitstream for a board, or a project for its vendor's tool; area and timing."""
    from vdla.commands import boards

    boards.synth(board, toolchain, config, out, settings or [], json)


@app.command()
def tune(
    model: Model,
    log: Annotated[Path, typer.Option("--log", metavar="F", help="Records; resumed if there.")],
    config: ConfigName = "paper",
    trials: Annotated[int, typer.Option(min=1, help="Candidates per distinct layer.")] = 64,
    searcher: Annotated[str, typer.Option(help="xgboost, random, grid or genetic.")] = "xgboost",
    vthreads: Annotated[str, typer.Option(help="Numbers of virtual threads, with commas.")] = "2",
    layer: Annotated[str, typer.Option(metavar="NAME", help="This layer alone.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Of the search's random draws.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that measure.")] = 2,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Merge the best records into a file.")
    ] = None,
    settings: Settings = None,
    shape: Shape = None,
    json: Json = False,
) -> None:
    """Search schedules on the cycle simulator; resumes from the log."""
    from vdla.commands import tuning

    options = tuning.Request(trials, searcher, vthreads, layer, seed, workers)
    tuning.tune(model, config, log, options, export, settings or [], shape or [], json)


@app.command()
def quantize(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="Q.onnx")],
    calibration: Annotated[Path | None, typer.Option(metavar="X.npz")] = None,
    shape: Shape = None,
) -> None:
    """Quantize a float model to int8 QDQ with onnxruntime's static quantization."""
    from vdla.commands import transform

    transform.quantize(model, output, calibration, shape or [])


@app.command()
def configs(
    name: Annotated[str | None, typer.Argument(metavar="[CONFIG]")] = None,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """List the configs, or print one with what follows from it."""
    from vdla.commands import catalog

    catalog.configs(name, settings or [], json)


@app.command()
def models(json: Json = False) -> None:
    """List the bundled models."""
    from vdla.commands import catalog

    catalog.models(json)


@app.command()
def doctor(json: Json = False) -> None:
    """What is there, what is missing, and how to install it."""
    from vdla.commands import catalog

    catalog.doctor(json)


@app.command()
def lockstep(
    config: ConfigName = "paper",
    programs: Annotated[int, typer.Option(min=1, help="Random programs to run.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="The first program's number.")] = 0,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Run a model's program instead.")
    ] = None,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Say which goals the programs have reached.")
    ] = False,
    memories: Annotated[
        int, typer.Option(min=1, max=3, help="Memories that each program meets; 1 for long runs.")
    ] = 3,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that run programs.")] = 1,
    settings: Settings = None,
    shape: Shape = None,
    json: Json = False,
) -> None:
    """Simulator against RTL, cycle by cycle and byte by byte, on random programs."""
    from vdla.commands import hardware

    asked = hardware.Request(programs, seed, model, shape or [], coverage, memories, workers)
    hardware.lockstep(config, asked, settings or [], json)


@hw_app.command()
def verilog(
    config: ConfigName = "paper",
    output: Out = None,
    settings: Settings = None,
) -> None:
    """The core as plain Verilog."""
    from vdla.commands import hardware

    hardware.verilog(config, output, settings or [])


@isa_app.command()
def doc(config: ConfigName = "paper", output: Out = None, settings: Settings = None) -> None:
    """The ISA manual in Markdown."""
    from vdla.commands import catalog

    catalog.isa_doc(config, output, settings or [])


@isa_app.command()
def header(config: ConfigName = "paper", output: Out = None, settings: Settings = None) -> None:
    """A C header with the encodings."""
    from vdla.commands import catalog

    catalog.isa_header(config, output, settings or [])


@isa_app.command()
def rdl(config: ConfigName = "paper", output: Out = None, settings: Settings = None) -> None:
    """The register map in SystemRDL."""
    from vdla.commands import catalog

    catalog.isa_rdl(config, output, settings or [])


@isa_app.command()
def asm(
    source: Annotated[Path, typer.Argument(metavar="FILE.s")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.bin")],
    config: ConfigName = "paper",
    settings: Settings = None,
) -> None:
    """Assemble a program."""
    from vdla.commands import catalog

    catalog.isa_asm(source, output, config, settings or [])


@isa_app.command()
def disasm(
    source: Annotated[Path, typer.Argument(metavar="FILE.bin|M.vdla")],
    config: Annotated[
        str | None,
        typer.Option("-c", "--config", metavar="CONFIG", help="Default: the module's, or paper."),
    ] = None,
    output: Out = None,
    settings: Settings = None,
) -> None:
    """Disassemble a program, or every program of a module."""
    from vdla.commands import catalog

    catalog.isa_disasm(source, config, output, settings or [])


def main() -> None:
    """Runs the command; wrong input ends in one line and exit code 2."""
    try:
        code = app(prog_name="vdla", standalone_mode=False)
    except typer.Abort:
        code = 130
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own: a wrong option or argument
            sys.exit(_say_usage(error))
        if isinstance(error, CheckError):
            sys.exit(_say(error, 1))
        if isinstance(error, UserError | OSError):
            sys.exit(_say(error, 2))
        raise
    sys.exit(code or 0)


def _say_usage(error: Any) -> int:
    """Without a message the help was asked for, and is printed already."""
    message = " ".join(error.format_message().split()).rstrip(".")
    if message:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "vdla"
        print(f"vdla: {message}; see {command} --help", file=sys.stderr)
    return 2


def _say(error: Exception, code: int) -> int:
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: expected a file that can be used, found {error.strerror}"
    print(f"vdla: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
