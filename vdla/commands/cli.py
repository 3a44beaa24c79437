"""The ``vdla`` command. Results go to stdout, progress and remarks to stderr.

Exit codes are those of ``endings.py``. Wrong input gets one line that says what was expected,
what was found, and where. What a command needs is imported when it runs, so that help and listings
come at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import click

from vdla.commands import endings
from vdla.commands.groups import app
from vdla.options import (
    Compare,
    CompareOutput,
    Compile,
    Evaluate,
    Explore,
    ExploreOutput,
    Lockstep,
    Offload,
    OffloadOutput,
    Package,
    Prune,
    Quantize,
    Run,
    RunFiles,
    Synth,
    Tune,
)
from vdla.options.arguments import (
    Argument,
    Json,
    Model,
    Option,
    Settings,
    command,
)
from vdla.options.completion import SHELLS, VARIABLE, answer, completion_script
from vdla.options.spelling import UsageError, require
from vdla.support.errors import CheckError, UserError


@command(app)
def compare(model: Model, options: Compare, output: CompareOutput, json: Json = False) -> None:
    """Latency hiding per layer: table, plots, a timeline of one layer, a page to look around in.

    With several configs: these designs side by side.

    Examples:
        vdla compare resnet18-convs -c paper --report report.html
        vdla compare resnet18 -c paper -c mine.toml --report both.html
        vdla compare resnet18 --vthreads 1,2,4 --latency 0,64,256 --csv sweep.csv
    """
    if options.several:
        from vdla.commands import side_by_side

        side_by_side.side_by_side(model, options, output, json)
        return
    from vdla.commands import compare

    compare.compare(model, options, output, json)


@command(app)
def offload(model: Model, options: Offload, output: OffloadOutput, json: Json = False) -> None:
    """A board's processor alone, and with the accelerator: milliseconds per layer, a picture.

    Examples:
        vdla offload resnet18 --board pynq-z2 --out out
        vdla offload digits --board ultra96-v2 --format svg,pdf
    """
    from vdla.commands import offload

    offload.offload(model, options, output, json)


@command(app, "compile")
def compile_(
    model: Model,
    output: Annotated[Path, Option("-o", "--output", metavar="M.vdla")],
    options: Compile,
    json: Json = False,
) -> None:
    """Compile an ONNX model into a module: QDQ, or of floats with --device cpu.

    Examples:
        vdla compile resnet18 -c paper -o resnet18.vdla --dump passes
        vdla compile model.onnx --device cpu -o model.vdla
    """
    from vdla.commands import transform

    transform.compile_model(model, output, options, json)


@command(app)
def package(
    model: Annotated[str, Argument("MODEL|M.vdla")], options: Package, json: Json = False
) -> None:
    """Package a model for programs without vdla: a C library, its sources, a wheel, a web page.

    Examples:
        vdla package digits --as static --target thumbv7em
        vdla package model.onnx --as wheel --version 1.0
        vdla package digits --as page
    """
    from vdla.commands import packages

    packages.package(model, options, json)


@command(app)
def run(
    model: Annotated[str, Argument("MODEL|M.vdla")],
    options: Run,
    files: RunFiles,
    check: Annotated[
        bool, Option("--check", help="Compare with onnxruntime, layer by layer.")
    ] = False,
    profile: Annotated[
        bool, Option("--profile", help="Time each step, beside the processor's peak.")
    ] = False,
    explain: Annotated[
        bool, Option("--explain", help="Say why operators stay on the host.")
    ] = False,
    json: Json = False,
) -> None:
    """Run a model: cycles, placement, outputs. Without --input: the bundled or a random input.

    A module, M.vdla, brings code that runs on this processor with your rights: run modules of
    people you trust, or give --no-native.

    Examples:
        vdla run resnet18 -c paper --trace trace.json
        vdla run model.int8.onnx -c paper --input x.npz --output y.npz
        vdla run model.onnx --device cpu --check
        vdla run model.int8.onnx -c paper-full --explain
        vdla run digits --device board --board ulx3s --virtual
        vdla run model.onnx --farm tls://127.0.0.1:8786 --resource board:ulx3s
    """
    chosen = [
        name
        for name, given in (("check", check), ("profile", profile), ("explain", explain))
        if given
    ]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[1]}: expected no --{chosen[0]}, found both")
    require(options, files, check=check, profile=profile, explain=explain)
    if check:
        from vdla.commands.check import check as command
    elif explain:
        from vdla.commands.explain import explain as command
    elif profile:
        from vdla.commands.profile import profile as command
    else:
        from vdla.commands.run import run as command
    command(model, options, files, json)


@command(app)
def synth(
    board: Annotated[str, Option(metavar="B", help="The board.")],
    options: Synth,
    json: Json = False,
) -> None:
    """A bitstream for a board, or a project for its vendor's tool; area and timing.

    Examples:
        vdla synth --board ulx3s
        vdla synth --board pynq-z2 --toolchain vivado
    """
    from vdla.commands import boards

    boards.synth(board, options, json)


@command(app)
def tune(
    model: Annotated[
        str,
        Argument(
            "MODEL|FILE.py:FUNCTION",
            "An ONNX file or a bundled name; or a function that returns a kernel of te.",
        ),
    ],
    options: Tune,
    export: Annotated[
        Path | None, Option(metavar="FILE", help="Merge the best records into a file.")
    ] = None,
    json: Json = False,
) -> None:
    """Search schedules, on the cycle simulator or this machine; resumes from the log.

    Examples:
        vdla tune resnet18 -c mine.toml --log mine.jsonl
        vdla tune model.onnx --target cpu --log cpu.jsonl
        vdla tune own.py:matmul --target cpu --strategy sketch --log own.jsonl
    """
    from vdla.api.tuning import TASKS, check_target
    from vdla.commands import functions, tiles

    check_target(model, options)
    command = functions if options.target in TASKS else tiles
    command.tune(model, options, export, json)


@command(app)
def evaluate(
    given: Annotated[
        list[str],
        Argument("MODEL… [KEY=VALUE…]", "Models, and the config's parameters."),
    ],
    options: Evaluate,
    stdin: Annotated[
        bool,
        Option("--stdin", help="Read designs, KEY=VALUE… or a JSON object in each line."),
    ] = False,
    json: Json = False,
) -> None:
    """Evaluate a design: cycles per model, area, and why it can't be built.

    Examples:
        vdla evaluate resnet18 mobilenet block_out=32 wgt_bytes=65536 --part xc7z020
    """
    from vdla.commands import evaluate

    evaluate.evaluate(given, options, stdin, json)


@command(app)
def explore(
    models: Annotated[list[str], Argument("MODEL…")],
    options: Explore,
    output: ExploreOutput,
    json: Json = False,
) -> None:
    """Search a space for the designs that no other one beats: cycles, area, and more.

    Examples:
        vdla explore resnet18 --space xc7z020 --part xc7z020 --report designs.html
        vdla explore resnet18 mobilenet --resume search.log --export 3
    """
    from vdla.commands import explore

    explore.explore(models, options, output, json)


@command(app)
def prune(
    model: Annotated[Path, Argument("MODEL", "A file of a model of floats, or FILE.py:NAME.")],
    output: Annotated[Path, Option("-o", "--output", metavar="P.onnx")],
    options: Prune,
    json: Json = False,
) -> None:
    """Set blocks of a float model's weights to zero, those of the least magnitude in each layer.

    Examples:
        vdla prune model.onnx -o pruned.onnx --share 0.8 --layer fc1 --layer fc2
    """
    from vdla.commands import transform

    transform.prune(model, output, options, json)


@command(app)
def quantize(
    model: Annotated[Path, Argument("MODEL", "A file of a model of floats, or FILE.py:NAME.")],
    output: Annotated[Path, Option("-o", "--output", metavar="Q.onnx")],
    options: Quantize,
    report: Annotated[
        Path | None,
        Option("--report", metavar="F.html", help="A page of the noise, layer by layer."),
    ] = None,
    json: Json = False,
) -> None:
    """Quantize a float model to int8 QDQ with onnxruntime's static quantization.

    Examples:
        vdla quantize model.onnx -o model.int8.onnx --calibration samples.npz
        vdla quantize model.onnx -o model.int8.onnx --calibration images/ --calibrate entropy
    """
    from vdla.commands import transform

    transform.quantize(model, output, options, report, json)


@command(app)
def configs(
    name: Annotated[str | None, Argument("[CONFIG]")] = None,
    settings: Settings = None,
    board: Annotated[
        str | None, Option(metavar="B", help="In front of this board's memory.")
    ] = None,
    copy: Annotated[
        str | None, Option("--as", metavar="NAME", help="Print a copy of that name, to edit.")
    ] = None,
    json: Json = False,
) -> None:
    """List the configs, or print one with what follows from it.

    Examples:
        vdla configs paper --as mine > mine.toml
    """
    from vdla.commands import catalog

    catalog.configs(name, settings or [], board, copy, json)


@command(app)
def models(json: Json = False) -> None:
    """List the bundled models."""
    from vdla.commands import catalog

    catalog.models(json)


@command(app)
def doctor(json: Json = False) -> None:
    """Check what is there, what is missing, and how to install it."""
    from vdla.commands import catalog

    catalog.doctor(json)


@command(app)
def completion(
    shell: Annotated[str, Argument("SHELL", "bash, zsh or fish.")],
) -> None:
    """Print the script by which a shell completes commands, options and names.

    Examples:
        eval "$(vdla completion bash)"
        vdla completion fish > ~/.config/fish/completions/vdla.fish
    """
    if shell not in SHELLS:
        raise UsageError(f"completion: expected bash, zsh or fish, found {shell}")
    print(completion_script(app, shell))


@command(app)
def schema(name: Annotated[str | None, Argument("[NAME]")] = None) -> None:
    """Print the JSON Schema of what a command prints with --json, or list the schemas."""
    from vdla.commands import schema

    schema.show(name)


@command(app)
def lockstep(options: Lockstep, json: Json = False) -> None:
    """Simulator against RTL, cycle by cycle and byte by byte, on random programs.

    Examples:
        vdla lockstep -c tiny --programs 5000
        vdla lockstep -c paper --model resnet18
    """
    from vdla.commands import hardware

    hardware.lockstep(options, json)


def main() -> None:
    """Runs the command and ends the process, in one line where something is wrong."""
    sys.exit(_run())


def _run() -> int:
    """Runs the command; its exit code, as ``endings.py`` says."""
    if sys.stdout is None:
        return endings.say("stdout: expected to be open, found it closed", endings.WRONG)
    try:
        code = _invoke(sys.argv[1:])
        endings.flush_output()
    except click.ClickException as error:  # a wrong option or argument
        return endings.of_usage(error)
    except (KeyboardInterrupt, click.Abort):
        return endings.interrupted()
    except SystemExit as end:  # rich's, where nobody reads its output on
        if isinstance(end.__context__, BrokenPipeError):
            return endings.of_file(end.__context__)
        raise
    except CheckError as error:
        return endings.say(str(error), endings.FAILED)
    except UserError as error:
        return endings.say(str(error), endings.WRONG)
    except OSError as error:
        return endings.of_file(error)
    except Exception as error:
        if endings.is_interrupt(error):
            return endings.interrupted()
        if endings.is_out_of_memory(error):
            return endings.out_of_memory(error)
        raise
    return code


def _invoke(arguments: list[str]) -> int:
    """Runs the command of some arguments, or prints the help that they ask for; or what a shell
    asks for at the press of Tab."""
    if question := os.environ.get(VARIABLE):
        return answer(app, question)
    try:
        with app.make_context("vdla", arguments) as context:
            app.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:
        print(asked.format_message())
        return endings.WRONG
    return 0


if __name__ == "__main__":
    main()
