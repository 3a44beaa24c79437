"""Models as other programs take them: ``vdla.package``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vdla.api.host import timed_model
from vdla.api.models import compile_options
from vdla.api.modules import load
from vdla.boards import find_board
from vdla.compiler.targets.processor.description.processor import (
    KEEP,
    NATIVE,
    PROCESSORS,
    Processor,
    find_processor,
)
from vdla.compiler.targets.processor.part import DENORMALS, CodeForm, native_code
from vdla.compiler.targets.processor.source import from_source
from vdla.compiler.text import ParseError
from vdla.names.configs import resolve_on
from vdla.names.models import is_module, model_file
from vdla.names.where import Where
from vdla.options import Package
from vdla.options.spelling import UsageError, given, require, takes
from vdla.packaging.errors import PackageError
from vdla.packaging.forms import FORMS, Form
from vdla.packaging.objects import WASM, Packaged
from vdla.runtime.module import HostCode, Module
from vdla.runtime.native import host_machine, is_shared
from vdla.runtime.plan import Accelerate, Gpu, Onnx, Open, Outside, Step
from vdla.support.files import write_bytes

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?")  # PEP 440, canonical
MOST_AXES = 8  # of an input or output in C
RESERVED = ("boards", "inner", "link", "numbers", "runtime", "vdla")  # files of packages


@dataclass(frozen=True)
class PackageFiles:
    """Files of a package, as they were written, and the processor that they are for."""

    name: str
    form: str
    target: str
    files: tuple[Path, ...]


@takes(Package)
def package(model: Module | str | Path, options: Package) -> PackageFiles:
    """Packages a model for programs without vdla: a C library, its sources, a wheel, a page.

    Raises:
        PackageError: it has steps that need more than a processor and a board, or code for another
            processor, or there is no linker.
        As ``compile``, where the model isn't a module.
    """
    form = FORMS.get(options.form)
    if form is None:
        raise UsageError(f"--as: expected one of {', '.join(FORMS)}, found {options.form}")
    if not VERSION.fullmatch(options.version):
        raise UsageError(f"--version: expected one like 1.0 or 2.1rc1, found {options.version}")
    packaged = _of_module(model, options, form) if is_module(model) else _of_model(
        model, options, form  # type: ignore[arg-type]
    )  # fmt: skip
    _check(packaged.module, options.form, form)
    files = form.make(packaged, options.version)
    target = packaged.processor.name
    folder = options.out
    if form.folder:
        folder /= f"{packaged.name}-{options.form}-{target}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_bytes(folder / name, data)
    paths = tuple(folder / name for name in files)
    return PackageFiles(packaged.name, options.form, target, paths)


# What is packaged ---------------------------------------------------------------------------------


def _of_model(model: str | Path, options: Package, form: Form) -> Packaged:
    """An ONNX file or a bundled model, compiled for a target."""
    path = model_file(model)
    name = _name(options.name or Path(model).stem)
    board = find_board(options.board) if options.board else None
    device = options.device or ("sim" if options.board or options.config else "cpu")
    host = Where.of(replace(options, device=device)).machine
    default = host.processor if host else board.host if board else _default_target(form)
    target = options.target or default
    processor = target if isinstance(target, Processor) else find_processor(target)
    processor = replace(processor, shared=False)
    options = replace(options, device=device, target=processor)
    require(options)
    where = Where.of(options)
    config = resolve_on(options.board, options.config, options.settings)
    prefix = f"{name}_"
    how = replace(
        compile_options(options, where, where.code_to_ship(None)),
        vthreads=options.vthreads,
        dump=options.dump,
        form=CodeForm(prefix, form.assembly),
    )
    module = timed_model(path, config, how, options.shapes, where.described_host(processor))
    return Packaged(name, module, processor, prefix)


def _default_target(form: Form) -> str:
    """The target of a form: any processor of this architecture for one that others install."""
    if form.target != "this architecture":
        return form.target
    names = (n for n, p in PROCESSORS.items() if p.machine == NATIVE.machine and not p.is_native)
    generic = [name for name in names if name in (NATIVE.machine, f"{NATIVE.machine}-linux")]
    return generic[0] if generic else "native"


def _of_module(model: Module | str | Path, options: Package, form: Form) -> Packaged:
    """A module, for the processor that its code is for, or whose code is made of its functions'
    text."""
    where = "the module" if isinstance(model, Module) else f"the module {model}"
    for option in given(options):
        if option.compiles and option.name != "--target":
            raise UsageError(f"{option.name}: expected an ONNX model, found {where}")
    module = model if isinstance(model, Module) else load(model)
    stem = module.metadata.get("model", "model") if isinstance(model, Module) else Path(model).stem
    name, target = _name(options.name or stem), options.target
    target = target or (form.target if form.target == WASM else None)
    named = find_processor(target) if isinstance(target, str) else target
    if module.host is None or not module.host.functions:
        return Packaged(name, module, named or find_processor(_default_target(form)))
    own = _own_processor(module.host)
    denormals = module.metadata.get(DENORMALS, KEEP)
    processor = replace(named or own, shared=False, denormals=denormals)
    if module.host.source:
        prefix = f"{name}_"
        host = _compiled(module.host.source, processor, CodeForm(prefix, form.assembly), where)
        return Packaged(name, replace(module, host=host), processor, prefix)
    if form.assembly or is_shared(module.host.code) or not _same(processor, own):
        raise PackageError(
            f"{where}: expected the text of its functions, of which other code is made, found "
            f"code for {own.name} alone; package the model itself"
        )
    return Packaged(name, module, processor)


def _own_processor(host: HostCode) -> Processor:
    """The processor that a module's code is for: one of the list, or as it describes it."""
    own = Processor(host.triple, host.cpu, host.features)
    own = replace(own, threads="linux" in own.system)
    return next((p for p in PROCESSORS.values() if not p.is_native and _same(p, own)), own)


def _compiled(source: bytes, processor: Processor, form: CodeForm, where: str) -> HostCode | None:
    """Code of functions for a processor, of their text.

    Raises:
        PackageError: a function calls what no other processor has.
    """
    try:
        functions = from_source(source, processor)
    except ParseError as error:
        raise PackageError(
            f"{where}: expected functions that any processor runs, found {error}; package the "
            "model itself"
        ) from None
    return native_code(functions, processor, form)


def _same(named: Processor, own: Processor) -> bool:
    """Whether code for one processor is code for another, as far as their descriptions say."""
    if named.is_native:
        return (own.triple, own.cpu, own.features) == host_machine()
    return (named.triple, named.cpu, named.features) == (own.triple, own.cpu, own.features)


def _name(text: str) -> str:
    """A name as C has it; what it can't be becomes an underscore.

    Raises:
        UsageError: it begins with no letter.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    if not NAME.fullmatch(name) or name in RESERVED:
        raise UsageError(
            f"--name: expected a name that begins with a letter, and none of "
            f"{', '.join(RESERVED)}, found {text}"
        )
    return name


# What can be packaged -----------------------------------------------------------------------------


def _check(module: Module, name: str, form: Form) -> None:
    """Raises PackageError where a module's steps need more than the form has."""
    for step in module.steps:
        if actual := _foreign(step, module):
            raise PackageError(
                f"step {step}: expected steps of a processor or the accelerator, found {actual}"
            )
        if isinstance(step, Accelerate) and not form.accelerates:
            takers = ", ".join(each for each, other in FORMS.items() if other.accelerates)
            raise PackageError(
                f"--as {name}: expected a module for a processor alone, found a program for the "
                f"accelerator; --device cpu leaves it out, and {takers} take it"
            )
    for tensor in (*module.inputs, *module.results):
        info = module.tensors.get(tensor)
        if info and len(info.shape) > MOST_AXES:
            raise PackageError(
                f"tensor {tensor}: expected at most {MOST_AXES} axes of an input or output, "
                f"found {info}"
            )


def _foreign(step: Step, module: Module) -> str | None:
    """The need of a step for more than a processor and a board, in words; None if it has none."""
    if isinstance(step, Gpu):
        return "one for a GPU; compile it for a processor, --device cpu"
    if isinstance(step, Outside):
        return f"one for {step.target}, another package's target; leave out --target {step.target}"
    if isinstance(step, Onnx | Open):
        reason = ", ".join(dict.fromkeys(_reasons(step.name, module)))
        return (
            f"one for onnxruntime{f' ({reason})' if reason else ''}; no package has that: change "
            "the operator in the model, or run the module by `vdla run`"
        )
    return None


def _reasons(name: str, module: Module) -> Iterator[str]:
    """Reasons for which a node is onnxruntime's."""
    for row in module.metadata.get("placement", []):
        if row["name"] == name:
            yield row["reason"]
