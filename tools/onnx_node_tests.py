"""ONNX's own node tests: what vdla compiles for the host, what it refuses, and what it gets wrong.

    python tools/onnx_node_tests.py [--operator NAME]... [--case TEXT] [--part K/N]
                                         [--device cpu|gpu] [--json | --table]

Each case of ``onnx.backend.test`` is a model of one operator, or of the operators that it stands
for ("expanded"), with inputs and outputs. The model is imported, compiled for the device ``cpu``
or ``gpu`` and run by vdla's runtime, and its outputs are compared at the case's own tolerances, in
shape and element type too. Every case is one of

    passed      the outputs are right. Of these ``onnxruntime`` counts the cases in which some node
                was handed to onnxruntime, ``folded`` those that were computed while importing, and
                ``gpu`` those in which some node ran there
    refused     the importer says in one line what it doesn't take
    wrong       an output is another
    error       anything else: an error in the compiler

What an operator needs when it is compiled (a shape, axes, pads: the parameters ``CONSTANT``) is an
input in these tests and a constant in models; here it is given as a constant, too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.backend.test.case import node as cases
from onnx.backend.test.case.utils import import_recursive

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.frontend.control import CONTROL
from vdla.compiler.frontend.converters import FOREIGN, TRAINING
from vdla.compiler.frontend.ops import CONVERTERS
from vdla.compiler.frontend.sequences import OPERATORS
from vdla.compiler.graph.ir import Graph
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module
from vdla.runtime.plan import Gpu, Onnx, Open

Array = NDArray[Any]
CATEGORIES = ("passed", "refused", "wrong", "error")
CONSTANT = {  # names of parameters in ONNX's operator definitions
    "shape", "axes", "axis", "starts", "ends", "steps", "pads", "split", "repeats", "K", "k",
    "scales", "sizes", "roi", "depth", "start", "limit", "delta", "image_shape", "block_shape",
    "output_shape", "ConstantOfShape.input", "position", "size", "num_mel_bins", "sample_rate",
    "lower_edge_hertz", "upper_edge_hertz",
    "dft_length", "frame_step", "frame_length", "ratio", "training_mode",
}  # fmt: skip
OPTIMIZERS = {name for domain, name in FOREIGN if domain == TRAINING}
OWN = {*CONVERTERS, *OPERATORS, *CONTROL, *OPTIMIZERS}  # operators that vdla has
FEW_BITS = 2**-6  # of bfloat16: two steps
NOISE = {  # cases whose zeros are numpy's rounding errors in float32, 1.9e-7: their tolerance
    "test_dft_inverse": 1e-6,
    "test_dft_inverse_opset19": 1e-6,
}


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case: its category, the machine that it ran on, and why not."""

    case: str
    operator: str
    category: str
    on: str = ""
    reason: str = ""


def load_cases(operators: Sequence[str] = ()) -> list[tuple[str, Any]]:
    """Every case, or those of some operators; before each the case of its operator alone.

    Cases are made when the files are imported that have them: of few operators, few files.
    """
    files = [module.name for module in pkgutil.iter_modules(cases.__path__)]
    wanted = {_plain(name) for name in operators}
    some = [name for name in files if _plain(name) in wanted]
    chosen = some if len(some) == len(wanted) > 0 else files
    with warnings.catch_warnings(action="ignore"):
        if chosen == files:
            import_recursive(cases)
        for name in chosen:
            importlib.import_module(f"{cases.__name__}.{name}")
    alone = {case.name: case for case in cases._NodeTestCases}
    pairs = [(alone[case.name.partition("_expanded")[0]], case) for case in cases._NodeTestCases]
    return [(base, case) for base, case in pairs if not operators or operator_of(base) in operators]


def operator_of(base: Any) -> str:
    """The operator of a case of one alone."""
    return str(base.model.graph.node[0].op_type)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def run_case(base: Any, case: Any, quick: bool = True, device: str = "cpu") -> Outcome:
    """Imports, compiles, runs and compares one case."""
    operator = operator_of(base)
    options = Options(device, processor=Processor(quick=quick))
    try:
        model, inputs = _with_constants(case, base)
        graph = import_model(model, "model", shapes_of(model.graph, inputs))
        module = compile_graph(graph, load_config("tiny"), options)
        result = list(Executor(module).run(inputs).outputs.values())
    except ModelError as error:
        return Outcome(case.name, operator, "refused", reason=str(error))
    except Exception as error:  # that there is one is what is counted
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return Outcome(case.name, operator, "error", reason=reason)
    on = _where(graph, module)
    wanted = [_array(value) for value in case.data_sets[0][1]]
    if reason := difference(result, wanted, case.rtol, NOISE.get(case.name, case.atol)):
        return Outcome(case.name, operator, "wrong", on, reason)
    return Outcome(case.name, operator, "passed", on)


def _where(graph: Graph, module: Module) -> str:
    """On what a module's steps run."""
    if graph.constants.keys() >= set(graph.outputs):
        return "folded"
    if any(isinstance(step, Gpu) for step in module.steps):
        return "gpu"
    return "onnxruntime" if any(isinstance(step, Onnx | Open) for step in module.steps) else "vdla"


def _with_constants(case: Any, base: Any) -> tuple[Any, dict[str, Array]]:
    """A case's model with constants for the inputs that are some, and the arrays of the others.

    ``base`` is the case of the operator alone, whose parameters' names say which they are.
    """
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    arrays = [_array(value) for value in case.data_sets[0][0]]
    given = dict(zip((value.name for value in graph.input), arrays, strict=True))
    first = base.model.graph.node[0]
    fixed = set(_constants_of(base.model, first)) & given.keys()
    graph.initializer.extend(numpy_helper.from_array(given[name], name) for name in fixed)
    left = [value for value in graph.input if value.name not in fixed]
    del graph.input[:]
    graph.input.extend(left)
    return model, {value.name: given[value.name] for value in left}


def shapes_of(graph: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Shapes that a model leaves open: those of what sequences hold; None for an optional input
    that isn't there."""

    def shape(value: Any) -> Any:
        if isinstance(value, list):
            return [shape(each) for each in value]
        return None if value is None else list(np.shape(value))

    def is_open(kind: Any) -> bool:
        dims = kind.tensor_type.shape.dim
        return not (kind.HasField("tensor_type") and all(d.HasField("dim_value") for d in dims))

    return {v.name: shape(inputs[v.name]) for v in graph.input if is_open(v.type)}


def _array(value: Any) -> Any:
    """Array of a value that some cases have as ONNX's tensor."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _constants_of(model: Any, node: Any) -> Iterator[str]:
    """The operands of a node that are known in models when they are compiled."""
    versions = {opset.domain: opset.version for opset in model.opset_import}
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return
    for name, parameter in zip(node.input, schema.inputs, strict=False):
        if name and ({parameter.name, f"{node.op_type}.{parameter.name}"} & CONSTANT):
            yield name


def difference(actual: Sequence[Any], wanted: Sequence[Any], rtol: float, atol: float) -> str:
    """Description of the first output that isn't right; "" if all are."""
    if len(actual) != len(wanted):
        return f"expected {len(wanted)} outputs, found {len(actual)}"
    for number, (got, want) in enumerate(zip(actual, wanted, strict=True)):
        if isinstance(want, list) and isinstance(got, list):
            if reason := difference(got, want, rtol, atol):
                return f"output {number}: {reason}"
            continue
        if (got.dtype, got.shape) != (want.dtype, want.shape):
            kinds = [f"{a.dtype}{list(a.shape)}" for a in (want, got)]
            return f"output {number}: expected {kinds[0]}, found {kinds[1]}"
        few = want.dtype.name == "bfloat16"
        ours, theirs = (
            a.astype(np.float64 if a.dtype.kind in "fV" else a.dtype) for a in (got, want)
        )
        if not np.allclose(
            ours, theirs, max(rtol, FEW_BITS) if few else rtol, atol, equal_nan=True
        ):
            apart = int((~np.isclose(ours, theirs, rtol, atol, equal_nan=True)).sum())
            return f"output {number}: {apart} of {want.size} elements differ"
    return ""


def run_cases(
    chosen: Sequence[tuple[str, Any]], quick: bool = True, device: str = "cpu"
) -> list[Outcome]:
    """Runs every case, saying on stderr how far it is."""
    result = []
    for number, (base, case) in enumerate(chosen):
        if sys.stderr.isatty() or number % 100 == 0:
            print(
                f"\r{number}/{len(chosen)} {case.name:60.60}", end="", file=sys.stderr, flush=True
            )
        with warnings.catch_warnings(action="ignore"):
            result.append(run_case(base, case, quick, device))
    print(file=sys.stderr)
    return result


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Number of cases in each category; of the passed, number that ran on each machine."""
    kinds = Counter(each.category for each in outcomes)
    on = Counter(each.on for each in outcomes if each.category == "passed")
    return {
        "passed": kinds["passed"],
        "passed_onnxruntime": on["onnxruntime"],
        "passed_folded": on["folded"],
        **({"passed_gpu": on["gpu"]} if on["gpu"] else {}),
        **{kind: kinds[kind] for kind in CATEGORIES[1:]},
        "total": len(outcomes),
    }


def by_operator(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The cases of every operator, in the order of the alphabet."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        groups[each.operator].append(each)
    return dict(sorted(groups.items()))


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything: the counts, those of each operator, and why what didn't pass didn't."""
    operators = {
        name: {
            **counts(group),
            "reasons": dict(Counter(each.reason for each in group if each.reason)),
        }
        for name, group in by_operator(outcomes).items()
    }
    failed = {each.case: each.reason for each in outcomes if each.category in ("wrong", "error")}
    return {**counts(outcomes), "operators": operators, "failed": failed}


SECTIONS = {
    "vdla": "Operators that vdla compiles",
    "definition": "Operators that ONNX defines by others, which vdla compiles",
    "folded": "Operators that are computed while importing",
    "onnxruntime": "Operators that onnxruntime runs, on the machine that compiles",
    "refused": "Operators that are refused",
}


def section_of(operator: str, group: Sequence[Outcome]) -> str:
    """Under which of ``SECTIONS`` an operator is."""
    on = {each.on for each in group if each.category == "passed"}
    if operator in OWN:
        return "vdla"
    if on == {"folded"}:
        return "folded"
    if "vdla" in on:
        return "definition"
    return "onnxruntime" if "onnxruntime" in on else "refused"


def table(outcomes: Sequence[Outcome]) -> str:
    """The operators of each section with their counts, as Markdown."""
    groups = {**{name: [] for name in OWN}, **by_operator(outcomes)}
    sections: dict[str, dict[str, list[Outcome]]] = {name: {} for name in SECTIONS}
    for name, group in sorted(groups.items()):
        sections[section_of(name, group)][name] = group
    lines = []
    for section, title in SECTIONS.items():
        rows = [_row(f"`{name}`", group) for name, group in sections[section].items()]
        total = _row("all", [each for group in sections[section].values() for each in group])
        heads = "| operator | cases | passed | onnxruntime | folded | refused |"
        lines += [f"## {title}", "", heads, "|---" + "|---:" * 5 + "|", *rows, total, ""]
    return "\n".join(lines).rstrip()


def _row(name: str, group: Sequence[Outcome]) -> str:
    result = counts(group)
    keys = ("total", "passed", "passed_onnxruntime", "passed_folded", "refused")
    return f"| {name} | " + " | ".join(str(result[key]) for key in keys) + " |"


def main() -> None:
    """Runs the cases and prints what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--operator", action="append", default=[], help="only this operator's")
    parser.add_argument("--case", default="", help="only those with this text in their names")
    parser.add_argument("--part", default="1/1", help="K/N: every N-th, beginning with the K-th")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="what runs them")
    parser.add_argument(
        "--optimized", action="store_true", help="by LLVM, too: some 5 times slower"
    )
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument("--table", action="store_true", help="a row per operator, as Markdown")
    options = parser.parse_args()
    chosen = [each for each in load_cases(options.operator) if options.case in each[1].name]
    part, parts = map(int, options.part.split("/"))
    chosen = chosen[part - 1 :: parts]
    start = time.perf_counter()
    outcomes = run_cases(chosen, not options.optimized, options.device)
    seconds = time.perf_counter() - start
    if options.json:
        print(json.dumps({**report(outcomes), "seconds": round(seconds, 1)}, indent=1))
        return
    if options.table:
        print(table(outcomes))
        return
    for name, count in counts(outcomes).items():
        print(f"{name:20}{count:>6}")
    for each in outcomes:
        if each.category != "passed" and (options.operator or options.case):
            print(f"{each.case}: {each.category}: {each.reason}")


if __name__ == "__main__":
    main()
