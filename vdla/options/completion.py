"""Completion of values at the press of Tab: models, configs, boards, devices, files.

Imported by every command, help and listings too; what knows the names is imported when a shell
asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Completion = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_VDLA_COMPLETE"  # the environment variable by which a shell asks


def _models() -> Iterable[str]:
    from vdla.compiler.models import MODELS

    return MODELS


def _configs() -> Iterable[str]:
    from vdla.isa.config import config_names

    return config_names()


def _boards() -> Iterable[str]:
    from vdla.boards import MODULES

    return MODULES


NAMES: dict[
    str, tuple[Callable[[], Iterable[str]], bool]
] = {  # by metavar; whether a file is one, too
    "MODEL": (_models, True),
    "MODEL|M.vdla": (_models, True),
    "MODEL…": (_models, True),
    "CONFIG": (_configs, True),
    "[CONFIG]": (_configs, False),
    "B": (_boards, False),
    "SHELL": (lambda: SHELLS, False),
}


def completion_of(metavar: str | None) -> Completion | None:
    """The completion of an argument's or an option's value; None where a shell's own will do."""
    if metavar not in NAMES:
        return None
    names, files = NAMES[metavar]

    def complete(
        context: click.Context, parameter: click.Parameter, typed: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        items = [CompletionItem(name) for name in names() if name.startswith(typed)]
        return items + ([CompletionItem(typed, type="file")] if files and not items else [])

    return complete


def completion_script(app: click.Command, shell: str) -> str:
    """The script that a shell has to evaluate, click's for ``vdla``."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    return kind(app, {}, "vdla", VARIABLE).source()


def answer(app: click.Command, question: str) -> int:
    """Prints what completes the words that a shell has in its variables; gives the exit code."""
    from click.shell_completion import shell_complete

    return shell_complete(app, {}, "vdla", VARIABLE, question)
