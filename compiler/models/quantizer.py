"""Post-training quantization: onnxruntime's static quantizer, QDQ format."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph.ir import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

RANDOM_SAMPLES = 8


def quantize(source: str | Path, target: str | Path, calibration: str | Path | None = None) -> None:
    """Writes the QDQ form of the float model ``source`` to ``target``.

    Weights become int8 with one scale per output channel, activations int8 with a zero point;
    batch normalizations are folded into their convolutions first.

    Args:
        source: a float ONNX model.
        target: the file to write; written beside, then renamed.
        calibration: an .npz with one array per input, samples along the first axis. Without it,
            standard normal samples are used: good for speed studies, poor for accuracy.

    Raises:
        ModelError: the model or the samples don't fit.
    """
    model = _load(Path(source))
    inputs = _float_inputs(model, str(source))
    if calibration is None:
        rng = np.random.default_rng(0)
        samples = [
            {name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}
            for _ in range(RANDOM_SAMPLES)
        ]
    else:
        samples = _read_samples(Path(calibration), inputs)
    quantize_model(model, target, samples)


def quantize_model(model: Any, target: str | Path, samples: Sequence[Mapping[str, Array]]) -> None:
    """As :func:`quantize`, for a model and samples in memory."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> Mapping[str, Array] | None:
            return next(self.rest, None)

    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, _quiet():
        source, folded, written = (Path(folder) / f"{n}.onnx" for n in ("float", "folded", "q"))
        onnx.save(model, str(source))
        try:
            quant_pre_process(str(source), str(folded), skip_symbolic_shape=True)
            quantize_static(
                str(folded),
                str(written),
                Reader(),
                quant_format=QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QInt8,
                weight_type=QuantType.QInt8,
            )
        except Exception as error:  # onnxruntime has no common base class for its errors
            first = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            raise ModelError(model.graph.name, "a model onnxruntime can quantize", first) from None
        os.replace(written, target)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the quantizer's advice on the root logger."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)


def _load(path: Path) -> Any:
    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except FileNotFoundError:
        raise ModelError(str(path), "an ONNX file", "no file") from None
    except Exception as error:  # protobuf and the checker each raise their own
        raise ModelError(str(path), "an ONNX model", str(error).strip().splitlines()[0]) from None
    if any(n.op_type == "QuantizeLinear" for n in model.graph.node):
        raise ModelError(str(path), "a float model", "one that is quantized already")
    return model


def _float_inputs(model: Any, where: str) -> dict[str, tuple[int, ...]]:
    constants = {t.name for t in model.graph.initializer}
    shapes: dict[str, tuple[int, ...]] = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        if value.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
            code = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
            raise ModelError(f"{where}: input {value.name}", "float32 elements", code)
        dims = value.type.tensor_type.shape.dim
        shapes[value.name] = tuple(int(d.dim_value) or 1 for d in dims)
    return shapes


def _read_samples(path: Path, inputs: Mapping[str, tuple[int, ...]]) -> list[dict[str, Array]]:
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ModelError(str(path), "an .npz of calibration samples", "no file") from None
    except Exception as error:  # zipfile, numpy and pickle each raise their own
        raise ModelError(str(path), "an .npz of calibration samples", error) from None
    samples: list[dict[str, Array]] = []
    for name, shape in inputs.items():
        if name not in arrays:
            found = ", ".join(arrays) or "nothing"
            raise ModelError(str(path), f"an array called {name}", found)
        array = np.asarray(arrays[name], np.float32)
        if array.shape[1:] != shape[1:] or not len(array):
            expected = f"{name} of shape [samples, {', '.join(map(str, shape[1:]))}]"
            raise ModelError(str(path), expected, list(array.shape))
        samples = samples or [{} for _ in range(len(array))]
        if len(array) != len(samples):
            raise ModelError(str(path), f"{len(samples)} samples of {name}", len(array))
        for i, sample in enumerate(samples):
            sample[name] = array[i : i + 1]
    return samples
