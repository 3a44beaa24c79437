"""Writes what each instruction costs on the processors that host time is modelled for.

    python tools/host_tables.py --write            # all tables; needs llvm-mca
    python tools/host_tables.py cortex-a9          # compares one with the bundled table

A form of an instruction (``compiler/targets/processor/timing/instructions.py``) becomes a small
function of its own, LLVM makes machine code of it for the processor, and llvm-mca, which ships with
LLVM, says from LLVM's machine model what that takes: micro-operations, the longest latency, and how
many cycles each unit is busy. What loads the operands and stores the result is subtracted. The
forms are those of all bundled networks, and ``EVERYWHERE``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import llvmlite.binding as llvm

from vdla.compiler import models
from vdla.compiler.build import Options, import_graph
from vdla.compiler.host_time import processor_network
from vdla.compiler.targets.processor.codegen.llvm import compile_optimized
from vdla.compiler.targets.processor.codegen.optimize import Settings
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.timing.instructions import (
    CASTS,
    LOADED,
    SPLAT,
    TYPE,
    functions_of,
)
from vdla.compiler.targets.processor.timing.machine import (
    NAMES,
    Price,
    machine_of,
    table_path,
    table_text,
)
from vdla.names.configs import resolve
from vdla.support.files import write_bytes

INTEGERS, FLOATS = ("i8", "i16", "i32", "i64"), ("float", "double")
LANES = (1, 2, 4, 8, 16, 32, 64)
MOST_BYTES = 256
BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "ptr": 8, "float": 4, "double": 8}
BYTES |= {"half": 2, "bfloat": 2}
OF_INTEGERS = ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr")
OF_FLOATS = ("fadd", "fsub", "fmul", "fdiv")
ONE, TWO, THREE = ("sqrt", "rint", "fabs"), ("minnum", "maxnum"), ("fma", "fmuladd")
INTEGER_PAIRS = ("smin", "smax", "umin", "umax")
POOL = "vdla_"  # functions of the pool of threads, which every module has
COPY = re.compile(r"(?:v?mov\w*|vorr)(?:\.\w+)?\t%?([a-z])[\w.]*, %?\1[\w.]*(?:, \1[\w.]*)?$")
CONFIG = resolve("paper", ())  # of which the processor alone needs nothing
NETWORKS = [name for name in models.MODELS if name != "resnet18-convs"]


# --- forms ---------------------------------------------------------------------------------------


def everywhere() -> Iterator[str]:
    """Forms that any network may have, whether a bundled one has them or not."""
    for lanes in LANES:
        for kind in (*INTEGERS, *FLOATS):
            if lanes * BYTES[kind] > MOST_BYTES:
                continue
            own = _type(kind, lanes)
            yield from (f"load {own}", f"store {own}", f"select {_type('i1', lanes)} {own}")
            names = OF_INTEGERS if kind in INTEGERS else OF_FLOATS
            yield from (f"{name} {own}" for name in names)
            yield f"{'icmp' if kind in INTEGERS else 'fcmp'} {own}"
            short = f"v{lanes}" if lanes > 1 else ""
            letter = kind if kind in INTEGERS else {"float": "f32", "double": "f64"}[kind]
            groups = ((INTEGER_PAIRS, 2),) if kind in INTEGERS else ((ONE, 1), (TWO, 2), (THREE, 3))
            for group, count in groups:
                given = ", ".join([own] * count)
                yield from (f"llvm.{name}.{short}{letter} ({given}) {own}" for name in group)
            if lanes > 1:
                yield from (f"{LOADED} {own}", f"{SPLAT} {own}")
                yield from (f"extractelement {own}", f"insertelement {own}")
        yield from _casts(lanes)


def _casts(lanes: int) -> Iterator[str]:
    for small, large in product(INTEGERS, INTEGERS):
        if BYTES[small] < BYTES[large] and lanes * BYTES[large] <= MOST_BYTES:
            one, two = _type(small, lanes), _type(large, lanes)
            yield from (f"sext {one} {two}", f"zext {one} {two}", f"trunc {two} {one}")
    for whole, real in product(INTEGERS, FLOATS):
        if lanes * max(BYTES[whole], BYTES[real]) <= MOST_BYTES:
            one, two = _type(whole, lanes), _type(real, lanes)
            yield from (f"sitofp {one} {two}", f"uitofp {one} {two}")
            yield from (f"fptosi {two} {one}", f"fptoui {two} {one}")
    if lanes * BYTES["double"] <= MOST_BYTES:
        one, two = _type("float", lanes), _type("double", lanes)
        yield from (f"fpext {one} {two}", f"fptrunc {two} {one}")


def _type(kind: str, lanes: int) -> str:
    return f"<{lanes} x {kind}>" if lanes > 1 else kind


def of_networks(processor: Processor) -> Iterator[str]:
    """The forms of the bundled networks' functions on a processor."""
    for name in NETWORKS:
        path = models.model_path(name)
        options = Options(device="cpu", processor=processor)
        network = processor_network(import_graph(path, options), CONFIG, options)
        print(f"{processor.cpu or 'native'}: {name}", file=sys.stderr)
        own = {made.program.name: made.program for made in network.codes.values()}
        text = compile_optimized(own.values(), processor)
        for function in functions_of(text).values():
            if function.name.startswith(POOL):
                continue
            for block in function.blocks.values():
                yield from (each.form for each in block.instructions)


# --- functions of one instruction ---------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """A function that has an instruction of one form: its lines, the types that it loads its
    operands as, the types that it stores, and forms that it has beside the one it is for."""

    lines: tuple[str, ...]
    loads: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def sample_of(form: str) -> Sample | None:
    """A function for a form; None where the machine model has none: a call of a library."""
    operation = form.split()[0]
    kinds = re.findall(TYPE, form[len(operation) :])
    if operation == "load":
        return Sample((f"%r = load volatile {kinds[0]}, ptr %p",))
    if operation == "store":
        return Sample((f"store volatile {kinds[0]} undef, ptr %p",))
    if form.startswith(LOADED):
        vector = form[len(LOADED) + 1 :]
        return _splat(vector, loaded=True)
    if operation == SPLAT:
        return _splat(kinds[0], loaded=False)
    if "(" in form and not operation.startswith("llvm."):
        return None
    if operation.startswith("llvm."):
        return _intrinsic(form) if "mem" not in operation else None
    if operation in CASTS:
        return _function(f"{operation} {kinds[0]} %a to {kinds[1]}", kinds[:1], kinds[1])
    if operation in ("icmp", "fcmp"):
        if operation == "icmp" and kinds[0] in INTEGERS:  # a subtraction that keeps no result
            return _function(f"sub {kinds[0]} %a, %b", (kinds[0], kinds[0]), kinds[0])
        return _comparison(operation, kinds[0])
    if operation == "select":
        return _selection(kinds[1])
    if operation in ("extractelement", "insertelement"):
        kinds = [_at_least_16_bytes(kinds[0])]
    if operation == "extractelement":
        return _function(f"extractelement {kinds[0]} %a, i32 1", kinds[:1], _element(kinds[0]))
    if operation == "insertelement":
        inner = f"{kinds[0]} %a, {_element(kinds[0])} %b, i32 1"
        return _function(f"insertelement {inner}", (kinds[0], _element(kinds[0])), kinds[0])
    if operation == "shufflevector":
        lanes = re.findall(r"<(\d+) x", form)[-1]
        mask = form[len(f"shufflevector {kinds[0]} ") :]
        result = f"<{lanes} x {_element(kinds[0])}>"
        inner = f"{kinds[0]} %a, {kinds[0]} %b, {mask}"
        return _function(f"shufflevector {inner}", (kinds[0], kinds[0]), result)
    if operation == "fneg":
        return _function(f"fneg {kinds[0]} %a", kinds[:1], kinds[0])
    if "constant" in form:
        value = "7" if kinds[0][0] != "<" else f"splat ({_element(kinds[0])} 7)"
        return _function(f"{operation} {kinds[0]} %a, {value}", kinds[:1], kinds[0])
    if operation in (*OF_INTEGERS, *OF_FLOATS, "udiv", "sdiv", "urem", "srem", "frem"):
        return _function(f"{operation} {kinds[0]} %a, %b", (kinds[0], kinds[0]), kinds[0])
    return None


def _element(kind: str) -> str:
    return kind.split()[-1].rstrip(">")


def _at_least_16_bytes(kind: str) -> str:
    """A vector that fills a register: LLVM keeps elements of shorter ones in one, too, but loads
    and stores them apart."""
    head = re.match(r"<(\d+) x (\w+)>", kind)
    lanes = max(int(head[1]), 16 // BYTES[head[2]]) if head else 1
    return f"<{lanes} x {head[2]}>" if head else kind


def _function(text: str, operands: Iterable[str], result: str) -> Sample:
    """Loads operands, computes, and stores the result."""
    kinds = tuple(operands)
    loads = [f"%{'abc'[n]} = load volatile {k}, ptr %p" for n, k in enumerate(kinds)]
    return _stored((*loads, f"%r = {text}", f"store volatile {result} %r, ptr %p"), result)


def _stored(lines: tuple[str, ...], result: str = "", beside: tuple[str, ...] = ()) -> Sample:
    """A sample that stores its operands, too: x86 would else read one from memory in the
    instruction that uses it, and have no price for the instruction alone."""
    loads = [re.match(rf"(%\S+) = load volatile ({TYPE}),", line) for line in lines]
    pairs = [(head[1], head[2]) for head in loads if head]
    stores = tuple(f"store volatile {kind} {name}, ptr %p" for name, kind in pairs)
    kinds = tuple(kind for _, kind in pairs)
    return Sample((*lines, *stores), kinds, (*((result,) if result else ()), *kinds), beside)


def _splat(vector: str, loaded: bool) -> Sample:
    """An element of memory or of a register in all lanes."""
    element, lanes = _element(vector), vector.split()[0][1:]
    lines = (
        f"%a = load {'' if loaded else 'volatile '}{element}, ptr %p",
        f"%b = insertelement {vector} poison, {element} %a, i32 0",
        f"%r = shufflevector {vector} %b, {vector} poison, <{lanes} x i32> zeroinitializer",
        f"store volatile {vector} %r, ptr %p",
    )
    return _stored(lines, vector)


def _intrinsic(form: str) -> Sample | None:
    """A call of one of LLVM's own functions; masks that lead a gather are of all lanes."""
    head = re.match(r"(\S+) \((.*)\) (.*)$", form)
    if head is None:
        return None
    name, kinds = head[1], re.findall(TYPE, head[2])
    declared = f"declare {head[3]} @{name}({', '.join(kinds)})"
    arguments, lines = [], []
    for n, kind in enumerate(kinds):
        if kind == "i1":
            arguments.append("i1 false")
        elif kind.endswith("x i1>"):
            arguments.append(f"{kind} splat (i1 true)")
        elif kind == "ptr":
            arguments.append("ptr %p")
        else:
            lines.append(f"%a{n} = load volatile {kind}, ptr %p")
            arguments.append(f"{kind} %a{n}")
    called = f"call {head[3]} @{name}({', '.join(arguments)})"
    if head[3] == "void":
        return _stored((declared, *lines, called))
    stored = f"store volatile {head[3]} %r, ptr %p"
    return _stored((declared, *lines, f"%r = {called}", stored), head[3])


def _lanes_of(kind: str) -> str:
    """The type of as many bits, in integers."""
    element = _element(kind)
    same = {"float": "i32", "double": "i64", "half": "i16", "bfloat": "i16", "ptr": "i64"}
    return kind.replace(element, same.get(element, element))


def _comparison(operation: str, kind: str) -> Sample:
    """A comparison, whose result is stored as all ones or zeros where there are several."""
    relation = "sgt" if operation == "icmp" else "ogt"
    if kind == "ptr":
        relation = "ugt"
    wide = _lanes_of(kind) if kind.startswith("<") else "i32"
    lines = (
        f"%a = load volatile {kind}, ptr %p",
        f"%b = load volatile {kind}, ptr %p",
        f"%c = {operation} {relation} {kind} %a, %b",
        f"%r = {'sext' if kind.startswith('<') else 'zext'} "
        f"{kind.replace(_element(kind), 'i1')} %c to {wide}",
        f"store volatile {wide} %r, ptr %p",
    )
    return _stored(lines, wide)


def _selection(kind: str) -> Sample:
    """One of two values by a comparison, which is subtracted."""
    lines = (
        f"%a = load volatile {kind}, ptr %p",
        f"%b = load volatile {kind}, ptr %p",
        f"%d = load volatile {(wide := _lanes_of(kind))}, ptr %p",
        f"%e = load volatile {wide}, ptr %p",
        f"%c = icmp sgt {wide} %d, %e",
        f"%r = select {kind.replace(_element(kind), 'i1')} %c, {kind} %a, {kind} %b",
        f"store volatile {kind} %r, ptr %p",
    )
    return _stored(lines, kind, (f"icmp {wide}",))


# --- what LLVM's machine model says --------------------------------------------------------------


def assembly_of(samples: dict[str, Sample], processor: Processor) -> str:
    """Machine code of samples, a region for llvm-mca around each, named by its number."""
    settings = Settings(processor.triple, processor.cpu, processor.features, False)
    machine = settings.machine()
    declared = {line for s in samples.values() for line in s.lines if line.startswith("declare")}
    bodies = [
        f"define void @f{n}(ptr %p) nounwind {{\n"
        + "\n".join(line for line in sample.lines if not line.startswith("declare"))
        + "\nret void\n}"
        for n, sample in enumerate(samples.values())
    ]
    module = llvm.parse_assembly("\n".join([*sorted(declared), *bodies]))
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    text = machine.emit_assembly(module)
    mark = {"arm": "@ {}", "aarch64": "/* {}*/"}.get(processor.machine, "# {}")
    begins, ends = mark.format(r"LLVM-MCA-BEGIN \1"), mark.format(r"LLVM-MCA-END f\1")
    text = re.sub(r"(?m)^(f\d+):.*$", rf"\1:\n{begins}", text)
    return re.sub(r"(?m)^\.Lfunc_end(\d+)", rf"{ends}\n.Lfunc_end\1", text)


def measured(assembly: str, processor: Processor) -> dict[str, Price]:
    """Price of each region of an assembly text by LLVM's machine model, by the region's name."""
    cpu = processor.cpu or llvm.get_host_cpu_name()
    command = [
        mca(), f"-mtriple={processor.triple or llvm.get_process_triple()}", f"-mcpu={cpu}",
        f"-mattr={processor.features}" if processor.features else "-mattr=",
        "-instruction-tables", "-json", "--skip-unsupported-instructions=any", "-",
    ]  # fmt: skip
    done = subprocess.run(command, input=assembly, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"llvm-mca: expected costs, found {done.stderr.strip().splitlines()[-1]}")
    data = json.loads(done.stdout)
    names = data["TargetInfo"]["Resources"]
    result = {}
    for region in data["CodeRegions"]:
        rows = region["InstructionInfoView"]["InstructionList"]
        texts = region["Instructions"]
        own = {n for n, text in enumerate(texts) if not _is_free(text)}
        ports: dict[str, float] = {}
        for use in region["ResourcePressureView"]["ResourcePressureInfo"]:
            if use["InstructionIndex"] in own:
                name = re.sub(r"[\x00-\x1f]", lambda n: str(ord(n[0])), names[use["ResourceIndex"]])
                ports[name] = ports.get(name, 0.0) + use["ResourceUsage"]
        uops = sum(row["NumMicroOpcodes"] for row in rows if row["Instruction"] in own)
        inner = [row for row in rows if row["Instruction"] in own]
        alone = [row for row in inner if not row["mayLoad"] and not row["mayStore"]]
        latency = max((row["Latency"] for row in alone or inner), default=0)
        result[region["Name"]] = Price(uops, latency, ports)
    return result


def _is_free(text: str) -> bool:
    """Whether an instruction ends a function or clears registers before it ends, or copies a
    register that was to be stored again."""
    return bool(re.match(COPY, text) or re.match(r"(ret\w*|bx|vzeroupper)\b", text))


def mca() -> str:
    """The newest llvm-mca at hand."""
    names = [*(f"llvm-mca-{n}" for n in range(29, 15, -1)), "llvm-mca"]
    path = next((p for name in names if (p := shutil.which(name))), None)
    if path is None:
        sys.exit("expected llvm-mca, found none; on Debian it is in the package llvm")
    return path


def table(forms: Iterable[str], processor: Processor) -> dict[str, Price]:
    """The price of each form that has one."""
    samples = {form: s for form in sorted(set(forms)) if form and (s := sample_of(form))}
    for each in list(samples.values()):
        for form in (*(f"load {k}" for k in each.loads), *(f"store {k}" for k in each.stores)):
            samples.setdefault(form, sample_of(form))
        for form in each.beside:
            samples.setdefault(form, sample_of(form))
    whole = measured(assembly_of(samples, processor), processor)
    named = {form: whole[f"f{n}"] for n, form in enumerate(samples) if f"f{n}" in whole}
    result: dict[str, Price] = {}
    plain = [form for form, s in samples.items() if not s.beside]
    for form in (*plain, *(form for form in samples if form not in plain)):
        if form not in named:
            continue
        sample, price = samples[form], named[form]
        for kind in sample.loads:
            price = price.without(named[f"load {kind}"], memory=True)
        for kind in sample.stores:
            price = price.without(named[f"store {kind}"], memory=True)
        for other in sample.beside:
            price = price.without(result[other])
        result[form] = price
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("processors", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--write", action="store_true", help="write the bundled tables")
    arguments = parser.parse_args()
    for name in arguments.processors:
        machine = machine_of(name)
        prices = table({*everywhere(), *of_networks(machine.processor)}, machine.processor)
        if arguments.write:
            write_bytes(table_path(name), table_text(prices).encode())
            print(f"wrote {table_path(name).name}: {len(prices)} forms")
            continue
        other = [form for form, price in prices.items() if price != machine.prices.get(form)]
        print(f"{name}: {len(prices)} forms, {len(other)} with another price than the bundled ones")


if __name__ == "__main__":
    main()
