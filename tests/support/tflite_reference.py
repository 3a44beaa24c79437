"""LiteRT's interpreter, and what a translated model gives beside it."""

from __future__ import annotations

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend.tflite import initial_values, translate


def interpreter(data: bytes, shapes=None) -> Interpreter:
    """LiteRT with its plain kernels; every tensor is kept, inputs have ``shapes`` by name."""
    result = Interpreter(
        model_content=data,
        experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    for each in result.get_input_details():
        if each["name"] in (shapes or {}):
            result.resize_tensor_input(each["index"], shapes[each["name"]])
    result.allocate_tensors()
    return result


def drawn(details, seed: int = 0) -> dict[str, np.ndarray]:
    """Random inputs, by name."""
    rng = np.random.default_rng(seed)
    return {each["name"]: _drawn(each["dtype"], each["shape"], rng) for each in details}


def _drawn(dtype, shape, rng):
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu" and kind.itemsize < 4:
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max + 1, shape).astype(kind)
    if kind.kind in "iu":
        return rng.integers(0, 3, shape).astype(kind)
    return rng.uniform(0.1, 2, shape).astype(kind)


def litert(data: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """LiteRT's results, by name; its inputs have the given ones' shapes."""
    it = interpreter(data, {name: value.shape for name, value in inputs.items()})
    for each in it.get_input_details():
        it.set_tensor(each["index"], inputs[each["name"]])
    it.invoke()
    return {each["name"]: it.get_tensor(each["index"]) for each in it.get_output_details()}


def compare(data: bytes, steps: int = 1, seed: int = 0, inputs=None, shapes=None) -> None:
    """Asserts that a translated file gives LiteRT's results: integers within ``steps``, floats
    within 1e-4 of the largest."""
    given = inputs or drawn(interpreter(data, shapes).get_input_details(), seed)
    expected = litert(data, given)
    model = translate(data, "m.tflite", shapes)
    actual = ort_run(model, {**given, **initial_values(model)})
    assert list(actual)[: len(expected)] == list(expected)
    for name, value in expected.items():
        assert actual[name].dtype == value.dtype, name
        assert actual[name].shape == value.shape, name
        if value.size == 0:
            continue
        distance = np.abs(actual[name].astype(np.float64) - value.astype(np.float64)).max()
        limit = 1e-4 * max(np.abs(value).max(), 1e-6) if value.dtype.kind == "f" else steps
        assert distance <= limit, f"{name}: {distance}"
