"""The ``vdla`` command. Results go to stdout, progress and remarks to stderr.

Exit codes are those of ``endings.py``. Wrong input gets one line that says what was expected,
what was found, and where. What a command needs is imported when it runs, so that help and listings
come at once.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from vdla.commands import endings
from vdla.options import (
    Compare,
    CompareOutput,
    Compile,
    Evaluate,
    Explore,
    ExploreOutput,
    Lockstep,
    Offload,
    Quantize,
    Run,
    RunFiles,
    Synth,
    Tune,
)
from vdla.options.arguments import (
    FARM_ADDRESS,
    ConfigName,
    FarmAddress,
    FarmFolder,
    Json,
    Model,
    Out,
    Settings,
    WithoutEncryption,
    spelled,
)
from vdla.options.spelling import UsageError, require
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
farm_app = typer.Typer(help="Machines that share work.", no_args_is_help=True)
app.add_typer(farm_app, name="farm")


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
@spelled
def compare(model: Model, options: Compare, output: CompareOutput, json: Json = False) -> None:
    """Latency hiding per layer: table, plots, a timeline of one layer, a page to look around in."""
    from vdla.commands import compare

    compare.compare(model, options, output, json)


@app.command()
@spelled
def offload(
    model: Model,
    options: Offload,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out"),
    json: Json = False,
) -> None:
    """A board's processor alone, and with the accelerator: milliseconds per layer, a picture."""
    from vdla.commands import offload

    offload.offload(model, options, out, json)


@app.command(name="compile")
@spelled
def compile_(
    model: Model,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="M.vdla")],
    options: Compile,
    json: Json = False,
) -> None:
    """Compile an ONNX model into a module: QDQ, or of floats with --device cpu."""
    from vdla.commands import transform

    transform.compile_model(model, output, options, json)


@app.command()
@spelled
def run(
    model: Annotated[str, typer.Argument(metavar="MODEL|M.vdla")],
    options: Run,
    files: RunFiles,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with onnxruntime, layer by layer.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Time each step, beside the processor's peak.")
    ] = False,
    json: Json = False,
) -> None:
    """Run a model: cycles, placement, outputs. Without --input: the bundled or a random input.

    A module, M.vdla, brings code that runs on this processor with your rights: run modules of
    people you trust, or give --no-native.
    """
    from vdla.commands import measure

    if check and profile:
        raise UsageError("--profile: expected no --check, found both")
    require(options, files, check=check, profile=profile)
    if check:
        measure.check(model, options, files, json)
    elif profile:
        measure.profile(model, options, files, json)
    else:
        measure.run(model, options, files, json)


@app.command()
@spelled
def synth(
    board: Annotated[str, typer.Option(metavar="B", help="The board.")],
    options: Synth,
    json: Json = False,
) -> None:
    """A bitstream for a board, or a project for its vendor's tool; area and timing."""
    from vdla.commands import boards

    boards.synth(board, options, json)


@app.command()
@spelled
def tune(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|FILE.py:FUNCTION",
            help="An ONNX file or a bundled name; or a function that returns a kernel of te.",
        ),
    ],
    options: Tune,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Merge the best records into a file.")
    ] = None,
    json: Json = False,
) -> None:
    """Search schedules, on the cycle simulator or this machine; resumes from the log."""
    from vdla.api.tuning import TASKS, check_target
    from vdla.commands import functions, tiles

    check_target(model, options)
    command = functions if options.target in TASKS else tiles
    command.tune(model, options, export, json)


@app.command()
@spelled
def evaluate(
    given: Annotated[
        list[str],
        typer.Argument(metavar="MODEL… [KEY=VALUE…]", help="Models, and the config's parameters."),
    ],
    options: Evaluate,
    stdin: Annotated[
        bool,
        typer.Option("--stdin", help="Read designs, KEY=VALUE… or a JSON object in each line."),
    ] = False,
    json: Json = False,
) -> None:
    """What a design is worth: cycles per model, area, and why it can't be built."""
    from vdla.commands import evaluate

    evaluate.evaluate(given, options, stdin, json)


@app.command()
@spelled
def explore(
    models: Annotated[list[str], typer.Argument(metavar="MODEL…")],
    options: Explore,
    output: ExploreOutput,
    json: Json = False,
) -> None:
    """Search a space for the designs that no other one beats: cycles, area, and more."""
    from vdla.commands import explore

    explore.explore(models, options, output, json)


@app.command()
@spelled
def quantize(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="Q.onnx")],
    options: Quantize,
) -> None:
    """Quantize a float model to int8 QDQ with onnxruntime's static quantization."""
    from vdla.commands import transform

    transform.quantize(model, output, options)


@app.command()
def configs(
    name: Annotated[str | None, typer.Argument(metavar="[CONFIG]")] = None,
    settings: Settings = None,
    board: Annotated[
        str | None, typer.Option(metavar="B", help="In front of this board's memory.")
    ] = None,
    json: Json = False,
) -> None:
    """List the configs, or print one with what follows from it."""
    from vdla.commands import catalog

    catalog.configs(name, settings or [], board, json)


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
@spelled
def lockstep(options: Lockstep, json: Json = False) -> None:
    """Simulator against RTL, cycle by cycle and byte by byte, on random programs."""
    from vdla.commands import hardware

    hardware.lockstep(options, json)


@hw_app.command()
def verilog(
    config: ConfigName = "paper",
    output: Out = None,
    settings: Settings = None,
) -> None:
    """The core as plain Verilog."""
    from vdla.commands import hardware

    hardware.verilog(config, output, settings or [])


@farm_app.command()
def up(
    host: Annotated[
        str, typer.Option(metavar="H", help="The address to listen at: others reach this one.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8786,
    folder: FarmFolder = None,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Have Dask's at http://127.0.0.1:8787.")
    ] = False,
    without_encryption: WithoutEncryption = False,
    json: Json = False,
) -> None:
    """Start a farm's scheduler, with certificates of its own, and print how to join it.

    It runs until Ctrl-C, or until vdla farm down. Whoever has a key of the farm's folder may run
    code on all of its machines.
    """
    from vdla.commands import farm

    farm.up((host, port), folder, without_encryption, dashboard, json)


@farm_app.command()
def status(
    address: FarmAddress = FARM_ADDRESS,
    folder: FarmFolder = None,
    without_encryption: WithoutEncryption = False,
    json: Json = False,
) -> None:
    """A farm's workers, their resources, its queue and rate."""
    from vdla.commands import farm

    farm.status(address, folder, without_encryption, json)


@farm_app.command()
def down(
    address: FarmAddress = FARM_ADDRESS,
    folder: FarmFolder = None,
    without_encryption: WithoutEncryption = False,
) -> None:
    """End a farm's workers and its scheduler."""
    from vdla.commands import farm

    farm.down(address, folder, without_encryption)


@app.command()
def worker(
    address: FarmAddress,
    folder: FarmFolder = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Jobs at a time; default: one per processor."),
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]",
            help="What one job at a time may have, as board:ulx3s=/dev/ttyUSB0, rtl or gpu.",
        ),
    ] = None,
    without_encryption: WithoutEncryption = False,
) -> None:
    """Do a farm's jobs on this machine, until Ctrl-C or vdla farm down."""
    from vdla.commands import farm

    farm.worker(address, folder, without_encryption, processes, resource or [])


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
    """Runs the command and ends the process, in one line where something is wrong."""
    sys.exit(_run())


def _run() -> int:
    """Runs the command; its exit code, as ``endings.py`` says."""
    if sys.stdout is None:
        return endings.say("stdout: expected to be open, found it closed", endings.WRONG)
    try:
        code = int(app(prog_name="vdla", standalone_mode=False) or 0)
        endings.flush_output()
    except KeyboardInterrupt:
        return endings.interrupted()
    except typer.Abort as stop:  # typer makes one of an EOFError, too, which is a bug of ours
        if isinstance(stop.__cause__, EOFError):
            raise stop.__cause__ from None
        return endings.interrupted()
    except SystemExit as end:  # rich's, where nobody reads its output on
        if isinstance(end.__context__, BrokenPipeError):
            return endings.of_file(end.__context__)
        raise
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own: a wrong option or argument
            return endings.of_usage(error)
        if isinstance(error, CheckError | UserError):
            return endings.say(
                str(error), endings.FAILED if isinstance(error, CheckError) else endings.WRONG
            )
        if isinstance(error, OSError):
            return endings.of_file(error)
        if endings.is_out_of_memory(error):
            return endings.out_of_memory(error)
        raise
    return endings.interrupted() if code == endings.INTERRUPTED else code


if __name__ == "__main__":
    main()
