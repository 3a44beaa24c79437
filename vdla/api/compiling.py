"""``vdla.compile``: of a file, a module; of a function of Python, what is called like it.

vdla.compile("resnet18", config="paper")              # ``models.py``
vdla.compile(torch_module, (x,), device="cpu")        # ``functions.py``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, overload

from vdla.api.models import compile as compile_file
from vdla.options import Compile
from vdla.options.spelling import Taking
from vdla.runtime.module import Module

if TYPE_CHECKING:
    from vdla.api.functions import Compiled
    from vdla.compiler.frontend.functions import Function

P = ParamSpec("P")


class Compiling(Protocol[P]):
    """The function ``compile``: of a file, with options; or of a function of Python."""

    @overload
    def __call__(self, model: str | Path, options: Compile, /) -> Module: ...
    @overload
    def __call__(self, model: str | Path, /, *args: P.args, **kwargs: P.kwargs) -> Module: ...
    @overload
    def __call__(
        self,
        model: Function,
        args: Sequence[object],
        kwargs: Mapping[str, object] | None = None,
        *,
        calibration: Iterable[object] | None = None,
        sizes: object = None,
        remembered: int = ...,
        **options: object,
    ) -> Compiled: ...


def _with_functions(of_files: Taking[str | Path, P, Compile, Module]) -> Compiling[P]:
    """The function ``compile``, of the one that compiles files."""

    @wraps(of_files)
    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        if not callable(model) or isinstance(model, type):
            return of_files(model, *args, **kwargs)
        from vdla.api.functions import compile_function

        return compile_function(model, *args, **kwargs)

    return call  # type: ignore[return-value]


compile = _with_functions(compile_file)
