"""The command that compares a model with onnxruntime."""

from __future__ import annotations

from dataclasses import replace

from vdla import api
from vdla.analysis import difference
from vdla.commands.inputs import test_images, with_files
from vdla.commands.output import log, print_json, progress, table
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.frontend.shapes import input_values
from vdla.names.models import model_file
from vdla.options import Run, RunFiles


def check(model: str, options: Run, files: RunFiles, json: bool) -> None:
    """Compares with onnxruntime; exit code 1 when a bound doesn't hold."""
    options = with_files(options, files)
    if files.images and (split := test_images(model, options, files)):
        (value,) = input_values(load_onnx(model_file(model)).graph)
        options = replace(options, batches=[{value.name: image[None]} for image in split.images])
    with progress() as update:
        result = api.check(model, replace(options, progress=update))
    layers, agreement = result.layers, result.whole
    if json:
        print_json(
            {
                "layers": [{**vars(d), "share": d.share} for d in layers],
                "whole": [vars(a) for a in agreement],
                "holds": result.holds,
            }
        )
    else:
        rows = [
            (
                d.name,
                d.op,
                f"{d.elements:,}",
                f"{d.different:,}",
                f"{d.ties:,}",
                f"{100 * d.share:.4f} %",
                str(d.largest),
            )
            for d in layers
        ]
        columns = ("layer", "operator", "elements", "differ", "ties", "share", "largest")
        if result.quantized:
            table("difference from onnxruntime, per layer", columns, rows)
        checks = [
            (
                str(i),
                f"{a.cosine:.6f}",
                f"{a.largest:.4g}",
                f"{a.relative:.2g}",
                f"{a.rounding:.4g}",
                _best_class(a),
            )
            for i, a in enumerate(agreement)
        ]
        titles = (
            "input", "cosine of outputs", "largest difference", "relative", "its rounding",
            "best class",
        )  # fmt: skip
        table("whole network; the reference's rounding is its difference unfused", titles, checks)
    if not result.holds:
        log.print(_bounds(result))
        raise SystemExit(1)


def _bounds(checked: difference.Check) -> str:
    """Bounds that didn't hold."""
    if not checked.quantized:
        largest = max(a.relative for a in checked.whole)
        return (
            f"expected every output within {checked.bound:.2g} of its largest value, "
            f"found {largest:.2g}"
        )
    if wrong := next((layer for layer in checked.layers if not layer.holds), None):
        return (
            f"layer {wrong.name}: expected ≤ 1 on ≤ {100 * wrong.most:g} % of elements, ties left "
            f"out, found {wrong.largest} on {100 * wrong.share:.2g} %"
        )
    least = max(a.least for a in checked.whole)
    return (
        f"expected a cosine ≥ {least:.4f} with the same best class or one within the reference's "
        f"rounding, found {min(a.cosine for a in checked.whole):.4f}"
    )


def _best_class(agreement: difference.Agreement) -> str:
    if agreement.same_top1:
        return "same"
    return f"{'tie' if agreement.tie else 'differs'}: {agreement.behind:.4g} behind"
