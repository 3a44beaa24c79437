"""Functions of Python, compiled: what ``vdla.compile`` makes of a PyTorch module or of JAX.

    net = vdla.compile(module.eval(), (x,), device="cpu")            # or config="paper", on cycles
    y = net(x)                                                       # of tensors, as module(x)
    print(net.check(x))                                              # against module(x) itself
    net = vdla.compile(module, (x,), config="paper-full", calibration=loader)
    net = vdla.compile(module, (x,), sizes={"x": {0: "batch"}}, device="cpu")

A function with open sizes is compiled when sizes are first met, and keeps the last few of them.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from vdla.api.ready import prepare
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.files import write_model
from vdla.compiler.frontend.functions import (
    Captured,
    Function,
    as_array,
    capture_function,
    name_of,
)
from vdla.compiler.frontend.onnx import is_quantized
from vdla.compiler.frontend.sources import forget_source
from vdla.compiler.models.quantizer import quantize
from vdla.options import Run
from vdla.options.spelling import UsageError, options_of
from vdla.runtime.errors import InputError
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module
from vdla.runtime.results import RunResult
from vdla.support.files import write_bytes
from vdla.support.tables import text_table

Array = NDArray[Any]
ACCELERATED = ("sim", "rtl", "board")  # devices that take quantized networks
REMEMBERED = 8  # sizes for which a function stays compiled


@dataclass(frozen=True)
class Difference:
    """An output beside the function's own: the largest difference, as a share of the largest value,
    and the signal-to-noise ratio in dB."""

    name: str
    shape: tuple[int, ...]
    relative: float
    decibels: float

    def __str__(self) -> str:
        return (
            f"{self.name} {list(self.shape)}: largest difference {self.relative:.1e} of the "
            f"largest value, signal to noise {self.decibels:.1f} dB"
        )


@dataclass(frozen=True)
class Agreement:
    """All outputs beside the function's own."""

    outputs: Sequence[Difference]

    @property
    def relative(self) -> float:
        """The largest difference of all outputs, as a share of its output's largest value."""
        return max((each.relative for each in self.outputs), default=0.0)

    @property
    def decibels(self) -> float:
        """The least signal-to-noise ratio of all outputs, in dB."""
        return min((each.decibels for each in self.outputs), default=float("inf"))

    def __str__(self) -> str:
        return "\n".join(map(str, self.outputs))


@dataclass
class Compiled:
    """A function that is compiled for a device: call it with the arguments of the function.

    Attributes:
        function: the PyTorch module, or the function of JAX.
        path: the ONNX file that it became; other commands of vdla take it.
        options: how it is compiled and run.
        remembered: for how many sizes it stays compiled.
    """

    function: Function
    captured: Captured
    path: Path
    options: Run
    remembered: int = REMEMBERED
    _ready: OrderedDict[tuple[tuple[int, ...], ...], Executor] = field(default_factory=OrderedDict)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Results of the function, computed by the device; tensors on the CPU aren't copied on
        the way in.

        Raises:
            ModelError: the arguments aren't those of the function that was captured.
            InputError: a shape or dtype isn't one that it was captured for.
        """
        return self.captured.results(self.run(*args, **kwargs).outputs)

    def run(self, *args: object, **kwargs: object) -> RunResult:
        """The run of a call: its outputs by name, its cycles, its steps."""
        arrays = self.captured.arrays(args, kwargs)
        self._check_shapes(arrays)
        return self.executor(arrays).run(arrays)

    def executor(self, arrays: Mapping[str, Array]) -> Executor:
        """The function, ready for inputs of these shapes."""
        sizes = tuple(array.shape for array in arrays.values()) if self._is_open else ()
        if sizes not in self._ready:
            options = replace(self.options, inputs=dict(arrays)) if sizes else self.options
            self._ready[sizes], _ = prepare(self.path, options)
            if len(self._ready) > self.remembered:
                self._ready.popitem(last=False)
        self._ready.move_to_end(sizes)
        return self._ready[sizes]

    def _check_shapes(self, arrays: Mapping[str, Array]) -> None:
        """Raises InputError unless the inputs have the shapes that the function was captured for,
        but for sizes that stay open."""
        for value in self.captured.model.graph.input:
            dims = value.type.tensor_type.shape.dim
            wanted = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in dims]
            shape = arrays[value.name].shape
            fits = len(shape) == len(wanted) and all(
                size == want or isinstance(want, str)
                for size, want in zip(shape, wanted, strict=True)
            )
            if not fits:
                shown = ", ".join(map(str, wanted))
                raise InputError(
                    f"input {value.name}: expected shape [{shown}], found {list(shape)}"
                )

    @property
    def _is_open(self) -> bool:
        """Whether some sizes are known only when it runs."""
        inputs = self.captured.model.graph.input
        dims = (dim for value in inputs for dim in value.type.tensor_type.shape.dim)
        return any(not dim.HasField("dim_value") for dim in dims)

    @property
    def module(self) -> Module:
        """The module for the sizes that were met last."""
        return next(reversed(self._ready.values())).module

    def check(self, *args: object, **kwargs: object) -> Agreement:
        """The outputs of a call beside what the function itself returns."""
        result = self.run(*args, **kwargs).outputs
        expected = self.captured.leaves(self.function(*args, **kwargs))
        names = [value.name for value in self.captured.model.graph.output]
        pairs = zip(names, expected, strict=True)
        return Agreement([_difference(name, result[name], array) for name, array in pairs])

    def report(self) -> str:
        """Table of where each operator runs, and why."""
        rows = self.module.metadata["placement"]
        columns = ("name", "op", "device", "reason")
        return text_table(columns, [[str(row[column]) for column in columns] for row in rows])

    def save(self, path: str | Path) -> None:
        """Writes the module for the sizes that were met last, a ``.vdla`` file."""
        self.module.save(path)

    def export(self, path: str | Path) -> None:
        """Writes the ONNX file that the function became."""
        model = onnx.load(str(self.path))
        forget_source(model)
        write_bytes(Path(path), model.SerializeToString())

    def __repr__(self) -> str:
        return f"Compiled({name_of(self.function)}, {self.module!r})"


def _difference(name: str, result: Array, expected: Array) -> Difference:
    """An output beside what it should be."""
    exact = np.asarray(expected, np.float64)
    noise = np.asarray(result, np.float64) - exact
    largest = max(float(np.max(np.abs(exact), initial=0)), float(np.finfo(np.float32).tiny))
    power = float(np.sum(noise**2))
    decibels = 10 * np.log10(float(np.sum(exact**2)) / power) if power else float("inf")
    return Difference(
        name, result.shape, float(np.max(np.abs(noise), initial=0)) / largest, decibels
    )


def compile_function(
    function: Function,
    args: Sequence[object],
    kwargs: Mapping[str, object] | None = None,
    *,
    calibration: Iterable[object] | None = None,
    sizes: object = None,
    remembered: int = REMEMBERED,
    **options: object,
) -> Compiled:
    """Compiles a PyTorch module, or a function of JAX.

    Args:
        function: a ``torch.nn.Module`` in evaluation mode; or a function of JAX's arrays, whose
            weights are constants that it doesn't take as arguments.
        args: positional arguments of a call, of the shapes to compile for.
        kwargs: the call's others.
        calibration: batches to quantize with, as a ``DataLoader`` has them: an argument, a tuple
            of arguments (what follows them, such as labels, is left alone), or a dictionary.
        sizes: those that stay open, by the argument's name and axis: ``{"x": {0: "batch"}}``; in
            PyTorch's form of ``dynamic_shapes``, too.
        remembered: for how many sizes it stays compiled.
        options: those of ``vdla.run``: device, config, board, threads and so on.

    Raises:
        ModelError: it can't be taken; names the module's path and the line of Python.
        UsageError: no such option.
    """
    where = name_of(function)
    run_options = options_of("compile", Run, (), options)
    captured = capture_function(function, tuple(args), kwargs or {}, sizes, where)
    path = write_model(captured.model, where, where)
    example = captured.arrays(tuple(args), kwargs or {})
    if (
        calibration is None
        and run_options.device in ACCELERATED
        and not is_quantized(captured.model)
    ):
        expected = 'a quantized network; calibration=… quantizes it, device="cpu" takes floats'
        raise ModelError(where, expected, "one of floats")
    if calibration is not None:
        path = _quantized(captured, path, _samples(captured, calibration, list(example)), where)
    result = Compiled(function, captured, path, run_options, remembered)
    result.executor(example)
    return result


def _samples(captured: Captured, batches: Iterable[object], names: list[str]) -> dict[str, Array]:
    """All batches of a loader, by the names of the inputs."""
    columns: dict[str, list[Array]] = {name: [] for name in names}
    for batch in batches:
        values = _values_of(batch, names)
        if len(values) < len(names):
            expected = f"calibration: expected batches of {', '.join(names)}"
            raise UsageError(f"{expected}, found one of {len(values)} arguments")
        for name, value in zip(names, values, strict=True):
            columns[name].append(as_array(value))
    if not next(iter(columns.values()), []):
        raise UsageError("calibration: expected batches of arguments, found none")
    return {name: np.concatenate(arrays) for name, arrays in columns.items()}


def _values_of(batch: object, names: list[str]) -> list[object]:
    """A batch's values for some inputs; fewer where it has no more."""
    if isinstance(batch, Mapping):
        return [batch[name] for name in names if name in batch]
    return list(batch)[: len(names)] if isinstance(batch, list | tuple) else [batch]


def _quantized(captured: Captured, path: Path, samples: Mapping[str, Array], where: str) -> Path:
    """The quantized form of a captured function's ONNX file."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "quantized.onnx"
        quantize(path, target, samples)
        return write_model(onnx.load(str(target)), where, f"{where}.int8")
