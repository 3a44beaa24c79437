"""Models, run, checked and profiled: ``vdla.run``, ``vdla.check``, ``vdla.profile``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vdla.analysis.difference import Check, per_cluster, per_layer, relative_bound, whole
from vdla.analysis.explanation import Explanation, explanation
from vdla.analysis.profile import Profile
from vdla.analysis.profile import profile as profiled
from vdla.api.models import compile_options, given_shapes
from vdla.api.modules import random_inputs
from vdla.api.ready import prepare
from vdla.api.remote import remote
from vdla.boards import find_board
from vdla.compiler.build import import_graph
from vdla.compiler.frontend.onnx import is_quantized
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.graph.passes import optimize
from vdla.names.models import is_module, model_file
from vdla.names.where import Where
from vdla.options import Run
from vdla.options.spelling import UsageError, require, takes
from vdla.runtime.checks import check_inputs
from vdla.runtime.dtypes import STORED
from vdla.runtime.module import Module
from vdla.runtime.results import RunResult
from vdla.runtime.values import taken_apart


@takes(Run)
def run(model: Module | str | Path, options: Run) -> RunResult:
    """Runs a module, a ``.vdla`` or ONNX file, or a bundled model once; on random inputs unless
    some are given.

    Raises:
        InputError: an input is missing, unknown, or has another shape or dtype.
        UsageError: options that don't go together, or a module for another config.
        DeviceError, BoardError, LinkError: the device can't be used.
        FarmError: the farm can't be reached, or nobody there has the resource.
    """
    require(options)
    if options.farm is not None:
        with remote(model, options) as served:
            return served.run([_inputs(served.module, options)])[0]
    ready, _ = prepare(model, options)
    return ready.run(_inputs(ready.module, options))


def _inputs(module: Module, options: Run) -> Mapping[str, object]:
    """The inputs that are given, or else random ones."""
    return random_inputs(module) if options.inputs is None else options.inputs


@takes(Run)
def check(model: Module | str | Path, options: Run) -> Check:
    """Compares an ONNX model with onnxruntime, layer by layer and as a whole; on random inputs
    unless some are given.

    A model of floats has no layers with steps to count: it is compared as a whole alone.

    Raises:
        UsageError: a module, which has no ONNX file to compare with.
    """
    if isinstance(model, Module) or is_module(model):
        result = "a module" if isinstance(model, Module) else str(model)
        raise UsageError(f"--check: expected an ONNX model to compare with, found {result}")
    require(options, check=True, input=options.inputs is not None)
    ready, config = prepare(model, options)
    module = ready.module
    for name in (*module.inputs, *module.outputs):
        if (dtype := module.tensors[name].dtype) in STORED:
            expected = "inputs and outputs of types that onnxruntime exchanges with numpy"
            raise UsageError(f"--check: expected {expected}, found {name} of {dtype}")
    options.report("comparing every layer with onnxruntime, each fed onnxruntime's tensors")
    path = model_file(model)
    shapes = given_shapes(path, options)
    if given := [*options.batches, *([options.inputs] if options.inputs is not None else [])]:
        inputs = [dict(each) for each in given]
        for each in inputs:
            check_inputs(module, taken_apart(module.arguments, each))
    else:
        inputs = [random_inputs(module, seed) for seed in range(options.samples)]
    where = Where.of(options)
    how = compile_options(options, where, where.code_to_run())
    imported = import_graph(path, how, shapes)
    graph = optimize(imported)
    layers = per_layer(graph, path, inputs[0], config, how, options.device)
    if how.accelerated:
        layers += per_cluster(imported, inputs[0], config, how, options.device)
    quantized = is_quantized(load_onnx(path))
    return Check(layers, whole(graph, path, ready, inputs), quantized, relative_bound(graph))


@takes(Run)
def profile(model: Module | str | Path, options: Run) -> Profile:
    """Profile of the time of running a model, step by step, on random inputs unless some are given.

    Raises:
        As ``run``.
    """
    require(options, profile=True)
    if options.farm is not None:
        with remote(model, options) as served:
            return served.profile(_inputs(served.module, options))
    ready, _ = prepare(model, options)
    return profiled(ready, _inputs(ready.module, options), progress=options.progress)


@takes(Run)
def explain(model: Module | str | Path, options: Run) -> Explanation:
    """Causes for which operators of a model stay on the host, what they cost, and what would remove
    them; on random inputs unless some are given.

    Raises:
        As ``run``.
    """
    require(options, explain=True)
    ready, config = prepare(model, options)
    if not ready.module.accelerated:
        raise UsageError("--explain: expected a module for an accelerator, found one without")
    board = find_board(options.board) if options.board else None
    own = profiled(ready, _inputs(ready.module, options), progress=options.progress)
    return explanation(ready.module, own, config, board)
