"""Files for foreign_quantizers.py: networks of foreign_networks.py, quantized by others' tools.

    python benchmarks/foreign_networks.py FOLDER               # the files of floats, once
    ENVIRONMENT/bin/python benchmarks/foreign_files.py FOLDER TOOL [STYLES...]

writes FOLDER/NAME.TOOL-STYLE.onnx. Each tool is in an environment of its own:

    onnxruntime   pip install onnxruntime onnx sympy                              1.32.0, 1.23.2
    nncf          pip install nncf onnx onnxruntime                               3.4.0
    brevitas      pip install brevitas torch onnx onnxscript onnxoptimizer tqdm   0.13.4, 2.14.1
    quark         pip install amd-quark onnx onnxruntime torch                    0.13
    aimet         pip install aimet-onnx                                          2.42.0
    neural        pip install neural-compressor==2.6 'onnx<1.17' 'onnxruntime<1.20' 'numpy<2' six
    neural-ort    pip install onnx-neural-compressor onnxruntime prettytable scipy       1.0

A tool's style that fails is said in a line, and the others go on.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("residual", "encoder", "mixed")
Maker = Callable[[Path, Path], None]  # of the file of floats, and of the one to write


def samples(source: Path) -> list[np.ndarray]:
    """Inputs beside a file of floats."""
    archive = np.load(source.with_name(source.name.replace(".float.onnx", ".npz")))
    return [archive[name] for name in archive.files]


class Reader:
    """The samples as a data reader of onnxruntime, which several tools take."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.rewind()

    def rewind(self) -> None:
        """Goes back to the first sample."""
        self.left: Iterator[np.ndarray] = iter(samples(self.source))

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next sample by the name of the input."""
        array = next(self.left, None)
        return None if array is None else {"input": array}

    def __iter__(self) -> Iterator[tuple[dict[str, np.ndarray], None]]:
        return iter([({"input": array}, None) for array in samples(self.source)])

    batch_size = 1


# Makers ------------------------------------------------------------------------------------------


def by_onnxruntime(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """Static quantization of onnxruntime, its own preparation before it."""
    from onnxruntime import quantization as q
    from onnxruntime.quantization.shape_inference import quant_pre_process

    given = dict(options)
    for key in ("activation_type", "weight_type"):
        given[key] = getattr(q.QuantType, given.get(key, "QInt8"))
    form = getattr(q.QuantFormat, given.pop("format", "QDQ"))
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.onnx"
        quant_pre_process(source, ready)
        q.quantize_static(ready, target, Reader(source), quant_format=form, **given)


def by_onnxruntime_dynamically(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """Dynamic quantization of onnxruntime."""
    from onnxruntime import quantization as q

    kind = getattr(q.QuantType, options.get("weight_type", "QInt8"))
    q.quantize_dynamic(source, target, weight_type=kind, per_channel=options.get("per_channel"))


def by_blocks(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """Weights of 4 bits in blocks, by onnxruntime."""
    import onnx
    from onnxruntime import quantization as q
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    form = getattr(q.QuantFormat, options["format"])
    maker = MatMulNBitsQuantizer(
        onnx.version_converter.convert_version(onnx.load(source), 21),
        4,
        16,
        is_symmetric=options["symmetric"],
        quant_format=form,
    )
    maker.process()
    maker.model.save_model_to_file(str(target))


def by_nncf(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """NNCF after training, of an ONNX model."""
    import nncf
    import onnx

    given = dict(options)
    for key, kind in (
        ("preset", nncf.QuantizationPreset),
        ("target_device", nncf.TargetDevice),
        ("model_type", nncf.ModelType),
    ):
        if key in given:
            given[key] = getattr(kind, given[key])
    data = nncf.Dataset([{"input": array} for array in samples(source)])
    onnx.save(nncf.quantize(onnx.load(source), data, subset_size=4, **given), target)


def by_brevitas(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """Brevitas after training, of the module; exported as QCDQ, or in QONNX's operators."""
    import torch
    from brevitas.export import export_onnx_qcdq, export_qonnx
    from brevitas.graph.calibrate import calibration_mode
    from brevitas.graph.quantize import preprocess_for_quantize
    from brevitas_examples.imagenet_classification.ptq.ptq_common import quantize_model
    from foreign_networks import network

    given = {
        "backend": "fx",
        "weight_bit_width": 8,
        "act_bit_width": 8,
        "bias_bit_width": 32,
        "weight_quant_granularity": "per_tensor",
        "act_quant_percentile": 99.999,
        "act_quant_type": "sym",
        "scale_factor_type": "float_scale",
        "quant_format": "int",
        **options,
    }
    write = export_qonnx if given.pop("qonnx", False) else export_onnx_qcdq
    dynamo = given.pop("dynamo", False)
    arrays = [torch.from_numpy(array) for array in samples(source)]
    module = network(source.name.partition(".")[0])
    module = preprocess_for_quantize(module, equalize_iters=0, trace_model=True)
    module = quantize_model(module, **given)
    with torch.no_grad(), calibration_mode(module):
        for array in arrays:
            module(array)
    names = {"input_names": ["input"], "output_names": ["output"]}
    write(module.eval(), args=arrays[0], export_path=str(target), dynamo=dynamo, **names)


def by_quark(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """AMD Quark after training, by one of its configurations."""
    from quark.onnx import ModelQuantizer
    from quark.onnx.quantization.config import Config, get_default_config

    config = Config(global_quant_config=get_default_config(options["config"]))
    for name, value in options.get("set", {}).items():
        setattr(config.global_quant_config, name, value)
    ModelQuantizer(config).quantize_model(str(source), str(target), Reader(source))


def by_aimet(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """AIMET after training, exported with nodes of ONNX."""
    import onnx
    from aimet_onnx.quantsim import QuantizationSimModel

    sim = QuantizationSimModel(onnx.load(source), **options)
    sim.compute_encodings([{"input": array} for array in samples(source)])
    onnx.save(sim.to_onnx_qdq(), target)


def by_neural(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """Intel's neural compressor of the series 2, after training."""
    from neural_compressor import PostTrainingQuantConfig, quantization

    conf = PostTrainingQuantConfig(calibration_sampling_size=[4], **options)
    quantization.fit(str(source), conf, calib_dataloader=Reader(source)).save(str(target))


def by_neural_ort(source: Path, target: Path, options: Mapping[str, Any]) -> None:
    """Intel's neural compressor for ONNX, after training."""
    from onnx_neural_compressor import data_reader
    from onnx_neural_compressor.quantization import QuantFormat, QuantType, config, quantize

    class Own(Reader, data_reader.CalibrationDataReader):
        pass

    given = dict(options)
    for key in ("activation_type", "weight_type"):
        if key in given:
            given[key] = getattr(QuantType, given[key])
    form = getattr(QuantFormat, given.pop("format", "QDQ"))
    conf = config.StaticQuantConfig(Own(source), quant_format=form, **given)
    quantize(str(source), str(target), conf)


# Styles ------------------------------------------------------------------------------------------

WIDE = {"ActivationSymmetric": True}
EIGHT = {"activation_type": "QUInt8", "weight_type": "QUInt8"}

TOOLS: Mapping[str, tuple[Maker, Mapping[str, Mapping[str, Any]]]] = {
    "onnxruntime": (
        by_onnxruntime,
        {
            "s8": {},
            "s8c": {"per_channel": True},
            "u8s8": {"activation_type": "QUInt8", "per_channel": True},
            "u8u8": EIGHT,
            "u8u8c": {**EIGHT, "per_channel": True},
            "reduced": {**EIGHT, "reduce_range": True},
            "symmetric": {"extra_options": {"ActivationSymmetric": True, "WeightSymmetric": True}},
            "skewed": {"extra_options": {"WeightSymmetric": False}, "per_channel": True},
            "qop-u8": {**EIGHT, "format": "QOperator"},
            "qop-u8s8c": {
                "activation_type": "QUInt8",
                "format": "QOperator",
                "per_channel": True,
            },
            "qop-s8": {"format": "QOperator"},
            "w4": {"weight_type": "QInt4", "per_channel": True},
            "wu4": {"weight_type": "QUInt4"},
            "a16": {"activation_type": "QUInt16"},
            "s16": {"activation_type": "QInt16", "per_channel": True},
            "w16": {"activation_type": "QUInt16", "weight_type": "QInt16"},
            "microsoft": {"extra_options": {"UseQDQContribOps": True}},
            "pairs": {"extra_options": {"DedicatedQDQPair": True, "QuantizeBias": False}},
            "late": {"extra_options": {"AddQDQPairToWeight": True}},
        },
    ),
    "onnxruntime-dynamic": (
        by_onnxruntime_dynamically,
        {"s8": {}, "s8c": {"per_channel": True}, "u8": {"weight_type": "QUInt8"}},
    ),
    "onnxruntime-blocks": (
        by_blocks,
        {
            "qdq": {"format": "QDQ", "symmetric": True},
            "qop": {"format": "QOperator", "symmetric": True},
            "qop-skewed": {"format": "QOperator", "symmetric": False},
        },
    ),
    "nncf": (
        by_nncf,
        {
            "performance": {"preset": "PERFORMANCE"},
            "mixed": {"preset": "MIXED"},
            "transformer": {"model_type": "TRANSFORMER"},
            "signed": {"target_device": "CPU"},
        },
    ),
    "brevitas": (
        by_brevitas,
        {
            "float": {},
            "channel": {"weight_quant_granularity": "per_channel"},
            "power": {"scale_factor_type": "po2_scale"},
            "skewed": {"act_quant_type": "asym", "weight_quant_type": "asym"},
            "narrow": {"weight_narrow_range": True, "weight_bit_width": 4, "act_bit_width": 6},
            "flexml": {"backend": "flexml", "scale_factor_type": "po2_scale"},
            "layers": {"backend": "layerwise", "weight_quant_granularity": "per_channel"},
            "bias16": {"bias_bit_width": 16},
            "qonnx": {"qonnx": True},
            "dynamo": {"dynamo": True, "bias_bit_width": None},
        },
    ),
    "quark": (
        by_quark,
        {
            name.lower().replace("_", "-"): {"config": name}
            for name in ("XINT8", "A8W8", "A16W8", "S8S8_AAWS", "U8S8_AAWS", "U8U8_AAWA",
                         "S16S8_ASWS", "U16S8_AAWS", "INT8_CNN_DEFAULT", "VINT8",
                         "INT16_CNN_DEFAULT", "INT8_TRANSFORMER_DEFAULT")
        },
    ),
    "aimet": (
        by_aimet,
        {
            "s8": {},
            "w4": {"param_type": "int4"},
            "a16": {"activation_type": "int16"},
        },
    ),
    "neural": (
        by_neural,
        {
            "qdq": {"quant_format": "QDQ"},
            "operator": {"quant_format": "default"},
            "dynamic": {"approach": "dynamic"},
        },
    ),
    "neural-ort": (
        by_neural_ort,
        {
            "qdq": {},
            "s8": {"activation_type": "QInt8", "per_channel": True},
            "operator": {"format": "QOperator"},
        },
    ),
}  # fmt: skip


def main() -> None:
    """Writes the files of a tool."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("styles", nargs="*")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    sys.path.append(sys.path.pop(0))  # tools have modules of the names of other benchmarks
    make, styles = TOOLS[options.tool]
    for style in options.styles or styles:
        for name in NAMES:
            source = options.folder / f"{name}.float.onnx"
            target = options.folder / f"{name}.{options.tool}-{style}.onnx"
            try:
                partial(make, options=styles[style])(source, target)  # type: ignore[call-arg]
            except Exception as error:  # a tool's own, of any class
                line = " ".join(str(error).split())[:300]
                print(f"{target.name}: {type(error).__name__}: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
