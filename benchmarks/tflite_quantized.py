"""Quantized files for tflite_files.py, made of others' float ones by Google's own quantizer.

    pip install ai-edge-quantizer                        # in an environment of its own
    python benchmarks/tflite_quantized.py FOLDER FILES...
    python benchmarks/tflite_files.py FOLDER/*.tflite

Writes FOLDER/NAME.RECIPE.tflite for each file and recipe: int8 weights with data of int8, with data
of int16, and with data of floats. Calibrated with random images. Weights of float16 become float32
first, and a signature is added, since the quantizer takes no others.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_quantizer import quantizer, recipe

RECIPES = ("static_wi8_ai8", "static_wi8_ai16", "dynamic_wi8_afp32")
KEY = "serving_default"
SAMPLES = 2


def prepared(path: Path) -> bytes:
    """A file with float32 weights and a signature."""
    data = path.read_bytes()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(data, 0))
    for code in model.operatorCodes:
        code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
    graph = model.subgraphs[0]
    graph.operators = [each for each in graph.operators if not widened(model, graph, each)]
    model.signatureDefs = [signature(graph)]
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def widened(model, graph, operator) -> bool:
    """Whether an operator widens a constant of float16, which it does here instead."""
    code = model.operatorCodes[operator.opcodeIndex].builtinCode
    if code != schema.BuiltinOperator.DEQUANTIZE:
        return False
    source, result = graph.tensors[operator.inputs[0]], graph.tensors[operator.outputs[0]]
    buffer = model.buffers[source.buffer]
    if source.type != schema.TensorType.FLOAT16 or buffer.data is None:
        return False
    halves = np.frombuffer(bytes(bytearray(buffer.data)), np.float16)
    buffer.data = halves.astype(np.float32).view(np.uint8)
    result.buffer = source.buffer
    unused = schema.BufferT()
    unused.data = np.zeros(4, np.uint8)
    model.buffers.append(unused)
    source.buffer, source.type = len(model.buffers) - 1, schema.TensorType.FLOAT32
    source.shape = np.array([1], np.int32)
    return True


def signature(graph):
    """A signature whose names are those of the tensors."""
    result = schema.SignatureDefT()
    result.signatureKey, result.subgraphIndex = KEY, 0
    result.inputs, result.outputs = mapped(graph, graph.inputs), mapped(graph, graph.outputs)
    return result


def mapped(graph, indices):
    result = []
    for index in indices:
        each = schema.TensorMapT()
        each.name, each.tensorIndex = graph.tensors[index].name, int(index)
        result.append(each)
    return result


def quantized(path: Path, name: str) -> bytes:
    """A prepared file, quantized by a recipe."""
    work = quantizer.Quantizer(str(path))
    work.load_quantization_recipe(getattr(recipe, name)())
    if name.startswith("dynamic"):
        return bytes(work.quantize().quantized_model)
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(path.read_bytes(), 0))
    graph, rng = model.subgraphs[0], np.random.default_rng(0)
    shapes = {graph.tensors[i].name.decode(): graph.tensors[i].shape for i in graph.inputs}
    samples = [
        {name: rng.uniform(0, 1, shape).astype(np.float32) for name, shape in shapes.items()}
        for _ in range(SAMPLES)
    ]
    return bytes(work.quantize(work.calibrate({KEY: samples})).quantized_model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for path in options.files:
            ready = Path(folder) / path.name
            ready.write_bytes(prepared(path))
            for name in RECIPES:
                target = options.folder / f"{path.stem}.{name}.tflite"
                target.write_bytes(quantized(ready, name))
                print(target)


if __name__ == "__main__":
    main()
