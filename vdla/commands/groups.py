"""The command ``vdla`` and its groups: ``isa``, ``hw``, ``board`` and ``farm``; and workers.

What a command needs is imported when it runs, so that help and listings come at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from vdla.options import BoardCheck
from vdla.options.arguments import (
    FARM_ADDRESS,
    Argument,
    ConfigName,
    FarmAddress,
    FarmFolder,
    Json,
    Option,
    Out,
    Settings,
    WithoutEncryption,
    command,
)
from vdla.options.devices import RESOURCE
from vdla.options.help import Group


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        print(f"vdla {version('vdla')}")
        context.exit()


app = Group(
    "vdla",
    "Compile ONNX models for the VDLA accelerator, simulate every cycle, and see why.",
    click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version,
        help="Print the version.",
    ),
    examples="vdla compare resnet18-convs -c paper --report report.html\n"
    "vdla run digits -c tiny --check\nvdla run --help",
)  # fmt: skip
isa_app = Group("isa", "The ISA's generated forms.")
hw_app = Group("hw", "The accelerator's hardware.")
board_app = Group("board", "Boards on your desk.")
farm_app = Group("farm", "Machines that share work.")


@command(isa_app)
def doc(config: ConfigName = "paper", output: Out = None, settings: Settings = None) -> None:
    """The ISA manual in Markdown."""
    from vdla.commands import catalog

    catalog.isa_doc(config, output, settings or [])


@command(isa_app)
def header(config: ConfigName = "paper", output: Out = None, settings: Settings = None) -> None:
    """A C header with the encodings."""
    from vdla.commands import catalog

    catalog.isa_header(config, output, settings or [])


@command(isa_app)
def rdl(config: ConfigName = "paper", output: Out = None, settings: Settings = None) -> None:
    """The register map in SystemRDL."""
    from vdla.commands import catalog

    catalog.isa_rdl(config, output, settings or [])


@command(isa_app)
def asm(
    source: Annotated[Path, Argument("FILE.s")],
    output: Annotated[Path, Option("-o", "--output", metavar="FILE.bin")],
    config: ConfigName = "paper",
    settings: Settings = None,
) -> None:
    """Assemble a program."""
    from vdla.commands import catalog

    catalog.isa_asm(source, output, config, settings or [])


@command(isa_app)
def disasm(
    source: Annotated[Path, Argument("FILE.bin|M.vdla")],
    config: Annotated[
        str | None,
        Option("-c", "--config", metavar="CONFIG", help="Default: the module's, or paper."),
    ] = None,
    output: Out = None,
    settings: Settings = None,
) -> None:
    """Disassemble a program, or every program of a module."""
    from vdla.commands import catalog

    catalog.isa_disasm(source, config, output, settings or [])


@command(hw_app)
def verilog(
    config: ConfigName = "paper",
    output: Out = None,
    settings: Settings = None,
) -> None:
    """The core as plain Verilog."""
    from vdla.commands import hardware

    hardware.verilog(config, output, settings or [])


@command(board_app)
def check(options: BoardCheck, json: Json = False) -> None:
    """Check a board: identity, memory, programs, a network; writes a report for an issue.

    Exit code 1 where a step fails. Those after it aren't run.

    Examples:
        vdla board check --board ulx3s --port /dev/ttyUSB0
        vdla board check --board ulx3s --virtual --programs 1
    """
    from vdla.boards.board import packages

    with packages("vdla board check"):  # the simulator's, which a Zynq's processor may not have
        from vdla.commands import board_check

    board_check.check(options, json)


@command(farm_app)
def up(
    host: Annotated[
        str, Option(metavar="H", help="The address to listen at: others reach this one.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="0 for any that is free.")] = 8786,
    folder: FarmFolder = None,
    dashboard: Annotated[
        bool, Option("--dashboard", help="Have Dask's at http://127.0.0.1:8787.")
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


@command(farm_app)
def status(
    address: FarmAddress = FARM_ADDRESS,
    folder: FarmFolder = None,
    without_encryption: WithoutEncryption = False,
    json: Json = False,
) -> None:
    """A farm's workers, their resources, its queue and rate."""
    from vdla.commands import farm

    farm.status(address, folder, without_encryption, json)


@command(farm_app)
def down(
    address: FarmAddress = FARM_ADDRESS,
    folder: FarmFolder = None,
    without_encryption: WithoutEncryption = False,
) -> None:
    """End a farm's workers and its scheduler."""
    from vdla.commands import farm

    farm.down(address, folder, without_encryption)


@command(app)
def worker(
    address: FarmAddress,
    folder: FarmFolder = None,
    processes: Annotated[
        int | None,
        Option(min=1, max=1024, help="Jobs at a time; default: one per processor."),
    ] = None,
    resource: Annotated[
        list[str] | None,
        Option(
            metavar="NAME[=VALUE]",
            help=RESOURCE,
        ),
    ] = None,
    without_encryption: WithoutEncryption = False,
) -> None:
    """Do a farm's jobs on this machine, until Ctrl-C or vdla farm down."""
    from vdla.commands import farm

    farm.worker(address, folder, without_encryption, processes, resource or [])


for _group in (isa_app, hw_app, board_app, farm_app):
    app.add_command(_group)
