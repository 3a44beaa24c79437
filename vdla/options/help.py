"""Help of the commands: options in groups, examples behind them, commands by what they are for.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from vdla.options import devices

WIDTH = 100  # columns of help, where the terminal has them

SECTIONS = {  # options of all commands, in the order in which help shows them
    "The accelerator": (
        "--config", "--set", "--board", "--part", "--space", "--objectives", "--baseline", "--map",
    ),
    "The model and its schedules": (
        "--shape", "--records", "--vthreads", "--strict", "--turns", "--weight", "--layer",
        "--model",
    ),
    "The pruning": ("--blocks", "--share"),
    "The quantization": (
        "--calibration", "--labels", "--mean", "--std", "--calibrate", "--percentile",
        "--per-tensor", "--symmetric", "--range", "--exclude", "--weights", "--bits16",
        "--equalize", "--smooth", "--gptq", "--correct-bias", "--finetune", "--steps", "--score",
        "--auto", "--drop", "--snr",
    ),
    "The device and the host": devices.SECTION,
    "Measurement": (
        "--latency", "--same-schedule", "--energy", "--check", "--samples", "--images", "--profile",
        "--explain",
        "--level", "--coverage", "--programs", "--memories", "--netlist",
    ),
    "The search": (
        "--trials", "--budget", "--time", "--searcher", "--cost-model", "--strategy", "--seed",
        "--log", "--resume", "--workers",
    ),
    "Many machines": ("--farm", "--resource", "--folder", "--without-encryption"),
    "Files": (
        "--input", "--output", "--output-file", "--out", "--report", "--csv", "--format", "--trace",
        "--trace-layer", "--dump", "--export", "--as", "--name", "--version", "--stdin", "--json",
    ),
}  # fmt: skip
COMMANDS = {  # the commands by what they are for
    "Compile and run": ("compile", "run", "prune", "quantize", "package"),
    "Measure": ("compare", "offload", "lockstep"),
    "Search": ("tune", "evaluate", "explore"),
    "Boards and hardware": ("synth", "board", "hw", "isa"),
    "Many machines": ("farm", "worker"),
    "Look up": ("models", "configs", "doctor", "schema", "completion"),
}


class Command(click.Command):
    """A command whose help has its options in sections, and examples at its end."""

    examples: str = ""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a list for each section that the command has options of, then the others."""
        options = {
            max(each.opts, key=len): record
            for each in self.get_params(ctx)
            if isinstance(each, click.Option) and (record := each.get_help_record(ctx))
        }
        for title, names in _sections(options):
            with formatter.section(title):
                formatter.write_dl([options[name] for name in names])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples, a line each, as they are."""
        _write_examples(formatter, self.examples)


def _write_examples(formatter: click.HelpFormatter, examples: str) -> None:
    """Writes lines to type, unwrapped."""
    if examples:
        with formatter.section("Examples"):
            for line in examples.splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _sections(options: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """(title, names) of each section with some of the options, those of no section at the end."""
    left = list(options)
    for title, names in SECTIONS.items():
        if own := [name for name in names if name in left]:
            left = [name for name in left if name not in own]
            yield title, own
    yield "Others", left


class Group(click.Group):
    """Commands by what they are for; help where none is given."""

    def __init__(self, name: str, help: str, *params: click.Parameter, examples: str = "") -> None:
        self.examples = examples
        super().__init__(
            name, help=help, short_help=help, no_args_is_help=True, params=list(params)
        )
        self.context_settings = {"max_content_width": WIDTH}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order in which they were added."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a list of commands for each purpose; one list where there are few."""
        left = {name: each.get_short_help_str(WIDTH) for name, each in self.commands.items()}
        for title, names in COMMANDS.items():
            if own := [(name, left.pop(name)) for name in names if name in left]:
                with formatter.section(title):
                    formatter.write_dl(own)
        if left:
            with formatter.section("Commands"):
                formatter.write_dl(list(left.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples, a line each, as they are."""
        _write_examples(formatter, self.examples)
