"""Jobs and values as bytes that any machine of a farm can read.

What is defined in vdla or in an installed package travels by name, since all machines have it. What
is defined in a script, or in a file beside it, travels as a whole.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

PACKAGE = "vdla"


class Boxed:
    """A function whose values are bytes: whoever hands them on needs none of their modules."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any) -> bytes:
        """The function's value as bytes."""
        return dumps(self.function(*args))


def dumps(value: object) -> bytes:
    """Bytes of a value; ``pickle.loads`` reads them."""
    _let_local_modules_travel()
    data: bytes = cloudpickle.dumps(value)
    return data


_looked_at: set[str] = set()


def _let_local_modules_travel() -> None:
    """Has cloudpickle take whole what the modules define that other machines don't have."""
    if len(sys.modules) == len(_looked_at):
        return
    for name, module in list(sys.modules.items()):
        if name not in _looked_at and _is_local(name, module):
            cloudpickle.register_pickle_by_value(module)
    _looked_at.update(sys.modules)


def _is_local(name: str, module: ModuleType | None) -> bool:
    """Whether a module is neither vdla's nor installed."""
    file = getattr(module, "__file__", None)
    if name.partition(".")[0] == PACKAGE or not file or name != getattr(module, "__name__", None):
        return False
    return not str(Path(file).resolve()).startswith(_installed())


@cache
def _installed() -> tuple[str, ...]:
    """The folders of installed packages: Python's own, and each of the path that a wheel was
    installed into, such as the user's, those of a ``.pth`` file, or of ``pip install --target``."""
    own = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    others = [folder for folder in sys.path if any(Path(folder).glob("*.dist-info"))]
    return tuple(f"{Path(folder).resolve()}/" for folder in dict.fromkeys([*own, *others]))
