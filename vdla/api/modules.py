"""Compiled modules: ``vdla.load``, what one brings, and random inputs for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import Config
from vdla.isa.identity import isa_hash, other_isa
from vdla.names.configs import resolve
from vdla.options import Run
from vdla.options.spelling import UsageError, given
from vdla.runtime.devices.named import module_config
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.plan import KERNELS, Outside
from vdla.runtime.values import assembled, tensors_of

Array = NDArray[Any]
UNSIGNED = ("uint4", "uint2")  # dtypes that are stored as others, without a sign


def load(path: str | Path) -> Module:
    """Reads a ``.vdla`` file.

    Raises:
        ModuleError: it is not one, is damaged, or is for another machine.
    """
    return Module.load(path)


def own_config(
    model: Module | str | Path, named: str | Path | Config | None, options: Run
) -> tuple[Module, Config]:
    """A module and its config, which the one named must be; memories may differ.

    Raises:
        UsageError: an option that says how a model is compiled, or a module of another config or
            instruction set, or with code where none is wanted.
        ModuleError: the file is no module, or is damaged.
    """
    what = "a module" if isinstance(model, Module) else f"the module {model}"
    for option in given(options):
        if option.compiles:
            raise UsageError(f"{option.name}: expected an ONNX model, found {what}")
    module = model if isinstance(model, Module) else load(model)
    if options.no_native:
        refuse_native(module, "module" if isinstance(model, Module) else str(model))
    own = module_config(module)
    config = resolve(named, options.settings) if named else own.override(options.settings)
    name = "module" if isinstance(model, Module) else model
    if module.identity.isa != isa_hash(own):
        raise UsageError(f"{name}: {other_isa(isa_hash(own), module.identity.isa)}")
    if config.hash != module.identity.config:
        raise UsageError(
            f"{name}: expected config {config.name} ({config.hash}), "
            f"found a module for {own.name} ({module.identity.config})"
        )
    return module, config


def refuse_native(module: Module, name: str) -> None:
    """Raises UsageError where a module brings more than programs for the accelerator."""
    result = [f"onnxruntime's {step}" for step in module.external]
    if module.host:
        result.append(f"code for {module.host.triple}")
    if module.kernels:
        result.append(KERNELS)
    result += dict.fromkeys(f"code for {s.target}" for s in module.steps if isinstance(s, Outside))
    if result:
        raise UsageError(
            f"--no-native: expected {name} to hold programs for the accelerator alone, "
            f"found {', '.join(result)}"
        )


def random_inputs(module: Module, seed: int = 0) -> dict[str, Any]:
    """Standard normal inputs of a module's shapes, the same for a seed on every machine; lists of
    arrays where the model has sequences.

    Where the elements are wider integers, which count or point at something, none is negative;
    indices lie within their axis.
    """
    rng = np.random.default_rng(seed)
    result = {name: _random(module.tensors[name], rng) for name in module.inputs}
    sizes = module.metadata.get("indices", {})
    arrays = {name: x % sizes[name] if name in sizes else x for name, x in result.items()}
    lists = {name: assembled(v, arrays.__getitem__) for name, v in module.arguments.items()}
    parts = {tensor for value in module.arguments.values() for tensor in tensors_of(value)}
    return {**{name: x for name, x in arrays.items() if name not in parts}, **lists}


def _random(kind: TensorInfo, rng: np.random.Generator) -> Array:
    """Elements for one tensor."""
    values = np.asarray(rng.standard_normal(kind.shape))  # of no dimensions, a number
    dtype = dtype_of(kind.dtype)
    if dtype == np.bool_:
        return np.asarray(values > 0)
    wide = dtype.kind in "iu" and dtype.itemsize > 1
    positive = wide or kind.dtype in UNSIGNED
    return np.asarray(np.abs(values) if positive else values, dtype)
