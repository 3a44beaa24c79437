"""The processor's part of a module: functions, what onnxruntime runs, and tensors of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler.dump import Dumper
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.flow import Flow
from vdla.compiler.graph.types import Array
from vdla.compiler.placement import Placements
from vdla.compiler.targets.functions import FunctionCodes
from vdla.compiler.targets.processor.codegen.link import link_shared
from vdla.compiler.targets.processor.codegen.llvm import (
    compile_assembly,
    compile_ir,
    compile_object,
    compile_objects,
)
from vdla.compiler.targets.processor.description.processor import FLUSH, NATIVE, Processor
from vdla.compiler.targets.processor.in_place import in_place
from vdla.compiler.targets.processor.source import to_source
from vdla.compiler.targets.target import Needs, Part
from vdla.compiler.tir.ir import Buffer, PrimFunc
from vdla.compiler.tir.printer import show
from vdla.runtime.archive import archive_of
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.module import HostCode, Module
from vdla.runtime.native import host_machine
from vdla.runtime.plan import Host, Onnx, Open, Step

DENORMALS = "denormals"  # the key of a module's metadata under which the processor's are


@dataclass(frozen=True)
class CodeForm:
    """Form in which a module has its functions: what their symbols begin with, and whether they are
    assembly text and no object file."""

    prefix: str = ""
    assembly: bool = False


PLAIN = CodeForm()


class HostPart(Part):
    """Functions of a processor, and models of onnxruntime.

    ``given`` are the functions as ``finish`` gave them; ``codes`` write over operands where that is
    possible, which ``views`` has. ``form`` is that of their code.
    """

    codes: FunctionCodes

    def __init__(
        self,
        graph: Graph,
        placements: Placements,
        codes: FunctionCodes,
        processor: Processor,
        form: CodeForm,
    ) -> None:
        self.graph, self.given, self.processor, self.form = graph, codes, processor, form
        self.codes, self.views = in_place(graph, placements, codes)

    @property
    def functions(self) -> Mapping[str, PrimFunc]:
        """The functions by their own names; several nodes may have one."""
        return {code.program.name: code.program for code in self.codes.values()}

    def steps(self, row: Sequence[Node]) -> list[Step]:
        """A step for each node, unless its result is some of another tensor's bytes."""
        return [step for node in row if (step := self._step(node))]

    def _step(self, node: Node) -> Step | None:
        args = (*node.inputs, node.output)
        if isinstance(node, ops.Open):
            return Open(node.name, node.name, args, node.results, node.order)
        if isinstance(node, ops.External):
            return Onnx(node.name, node.name, args)
        if node.name not in self.codes and node.output in self.views:
            return None
        code = self.codes[node.name]
        return Host(node.name, code.program.name, code.args)

    def needs(self) -> Needs:
        """Constants that onnxruntime reads, that are results, and that functions read: of those
        denormal numbers are zeros, if they are to be."""
        read = (name for node in self._external() for name in node.inputs)
        known = self.graph.constants
        moved = (name for node in self.graph.of(Flow) for name in node.inputs)
        used = (*read, *moved, *self.graph.outputs)
        constants = {name: known[name] for name in used if name in known}
        own = super().needs().constants
        if self.processor.denormals == FLUSH:
            own = {name: without_denormals(array) for name, array in own.items()}
        return Needs({**own, **constants}, views=self.views)

    def complete(self, module: Module, dump: Dumper) -> None:
        """Gives a module machine code, and the models of onnxruntime.

        Raises:
            TargetError: there is no linker for the processor.
        """
        self._write(dump)
        jumps = bool(self.graph.of(Flow))  # which are the runtime's, in every piece of code
        functions = self.functions.values()
        module.host = native_code(functions, self.processor, self.form, empty=jumps)
        if module.host:
            module.metadata[DENORMALS] = self.processor.denormals
        module.external = {node.name: node.model for node in self._external()}

    def _external(self) -> list[ops.External]:
        return [node for node in self.graph.nodes if isinstance(node, ops.External)]

    def _write(self, dump: Dumper) -> None:
        """Writes each function, LLVM's text of it and its assembly, if anybody wants them."""
        for name, code in self.codes.items():
            if report := dump.layer(name):
                before, after = self.given[name].program, code.program
                report("loops", show(before))
                if after is not before:
                    report("in_place", show(after))
                report("llvm", compile_ir([after], self.processor))
                report("assembly", compile_assembly([after], self.processor))


def native_code(
    functions: Iterable[PrimFunc],
    processor: Processor = NATIVE,
    form: CodeForm = PLAIN,
    *,
    empty: bool = False,
) -> HostCode | None:
    """The functions, ready for a target; None if there are none, unless code may be ``empty``.

    For this machine they are object files, which the runtime links with LLVM: an archive, or one
    alone. For a machine that loads no shared objects, and in a form of their own, they are one
    object file; for another machine, which may have no LLVM, a shared object.

    Raises:
        TargetError: there is no linker for the target.
    """
    funcs = list(functions)
    if not funcs and not empty:
        return None
    code = _code(funcs, processor, form)
    sizes = {func.name: tuple(map(_bytes, func.params)) for func in funcs}
    source = to_source(funcs)
    if processor.is_native:
        return HostCode(code, *host_machine(), sizes, source)
    if processor.shared and not form.assembly:
        code = link_shared(code, processor)
    machine = processor.triple, processor.cpu, processor.features
    return HostCode(code, *machine, sizes, source)


def _code(funcs: Sequence[PrimFunc], processor: Processor, form: CodeForm) -> bytes:
    """The functions as LLVM emits them in a form."""
    if form.assembly:
        return compile_assembly(funcs, processor, form.prefix).encode()
    if not processor.is_native or form.prefix:
        return compile_object(funcs, processor, form.prefix)
    objects = compile_objects(funcs, processor)
    return archive_of(objects) if len(objects) > 1 else objects[0]


def without_denormals(array: Array) -> Array:
    """An array with zeros of the same sign for numbers below the least normal one, 1.2e-38 in
    float32; float16, whose numbers are computed with in float32, is left as it is."""
    if array.dtype not in (np.float32, np.float64):
        return array
    tiny = (np.abs(array) < np.finfo(array.dtype).tiny) & (array != 0)
    return np.where(tiny, np.copysign(array.dtype.type(0), array), array) if tiny.any() else array


def _bytes(param: Buffer) -> int:
    """The bytes of a parameter's elements."""
    return param.size * dtype_of(param.dtype).itemsize
