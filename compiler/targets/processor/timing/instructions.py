"""LLVM's text of optimized functions, as blocks of instructions.

What is read is what ``codegen.llvm`` makes: no exceptions, no indirect branches. Each instruction
has a form, what its price depends on::

    %x = fadd <16 x float> %a, %b              fadd <16 x float>
    %x = sext <16 x i8> %a to <16 x i32>       sext <16 x i8> <16 x i32>
    %x = call float @llvm.fma.f32(float …)     llvm.fma.f32 (float, float, float) float
    br, phi, getelementptr …                   none: they take no time, or that of what uses them
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

NAME = r'%(?:[-\w.$]+|"[^"]+")'
TYPE = r"<\d+ x \w+>|\{[^}]*\}|\[[^\]]*\]|\w+"
FUNCTION = re.compile(r'^define .*@("[^"]+"|[-\w.$]+)\((.*)\)')
LABEL = re.compile(r'^("[^"]+"|[-\w.$]+):')
INSTRUCTION = re.compile(rf"^  (?:({NAME}) = )?(?:(?:tail|musttail|notail) )?(\w+) ?(.*)$")
CALL = re.compile(r'^(.*?)@("[^"]+"|[-\w.$]+)\((.*)\)')
VECTOR = re.compile(r"<(\d+) x (\w+)>")
FLAGS = re.compile(
    r"\b(nuw|nsw|exact|disjoint|nneg|samesign|fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|volatile"
    r"|inbounds|nusw|atomic) "
)
FREE = (
    "phi", "getelementptr", "freeze", "bitcast", "br", "switch", "ret", "unreachable", "alloca",
    "inttoptr", "ptrtoint", "fence", "extractvalue", "insertvalue",
)  # fmt: skip
NOTHING = re.compile(r"llvm\.(lifetime|experimental\.noalias|assume|prefetch|invariant)")
CASTS = (
    "sext", "zext", "trunc", "sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc",
)  # fmt: skip
LOADED, SPLAT = "loaded splat", "splat"  # of a scalar that lies in memory, or in a register


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    ``name`` is what it defines, "" for nothing; ``form`` is what its price depends on, "" where it
    is free. ``text`` is all behind the operation, without metadata; ``operands`` are the names in
    it.
    """

    name: str
    operation: str
    form: str
    text: str
    operands: tuple[str, ...]


@dataclass
class Block:
    """Instructions that run one after another; the last one says which block comes next."""

    label: str
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def targets(self) -> tuple[str, ...]:
        """The labels of the blocks that may come next; of two, the first where the condition
        holds."""
        last = self.instructions[-1]
        labels = re.findall(rf"label %({NAME[1:]})", last.text)
        return tuple(label.strip('"') for label in labels)


@dataclass
class Function:
    """A function: its blocks by their labels, the first one first."""

    name: str
    params: tuple[str, ...]
    blocks: dict[str, Block]


def functions_of(text: str) -> dict[str, Function]:
    """The functions that an LLVM text defines, by their names."""
    result: dict[str, Function] = {}
    lines = iter(text.splitlines())
    for line in lines:
        if head := FUNCTION.match(line):
            name = head[1].strip('"')
            params = tuple(re.findall(rf"{NAME}(?=,|$)", head[2]))
            result[name] = Function(name, params, _blocks(lines))
    return result


def _blocks(lines: Iterator[str]) -> dict[str, Block]:
    """The blocks of a function whose first line has been read."""
    blocks = {"entry": Block("entry")}
    block = blocks["entry"]
    for line in lines:
        if line == "}":
            break
        if label := LABEL.match(line):
            block = Block(label[1].strip('"'))
            blocks[block.label] = block
        elif head := INSTRUCTION.match(line):
            rest = head[3]
            if head[2] == "switch":
                while not line.startswith("  ]"):
                    line = next(lines)
                    rest += line
            block.instructions.append(_instruction(head[1] or "", head[2], rest))
    for each in blocks.values():
        each.instructions = _with_splats(each.instructions)
    return {label: block for label, block in blocks.items() if block.instructions}


def _instruction(name: str, operation: str, rest: str) -> Instruction:
    text = FLAGS.sub("", re.sub(r",? !.*$", "", rest))
    operands = tuple(re.findall(NAME, re.sub(rf"label {NAME}", "", text)))
    return Instruction(name, operation, _form(operation, text), text, operands)


def _form(operation: str, text: str) -> str:
    """Form of an instruction, which its price depends on; "" where it is free."""
    if operation in FREE:
        return ""
    if operation == "call":
        return _call_form(text)
    types = re.findall(rf"(?:^|, |to )({TYPE})", text)
    if operation in CASTS:
        return f"{operation} {types[0]} {types[-1]}"
    if operation in ("icmp", "fcmp"):
        return f"{operation} {re.findall(TYPE, text)[1]}"
    if operation == "select":
        return f"select {types[0]} {types[1]}"
    if operation == "shufflevector":
        mask = re.search(r"<\d+ x i32> (zeroinitializer|<[^>]*>|\S+)$", text)
        return f"shufflevector {types[0]} {mask[0] if mask else ''}"
    if operation in ("udiv", "sdiv", "urem", "srem") and re.search(r", (-?\d+|splat.*)$", text):
        return f"{operation} {types[0]} constant"
    return f"{operation} {types[0]}"


def _call_form(text: str) -> str:
    """Callee, the types of its arguments and its result's."""
    head = CALL.match(text)
    if head is None or NOTHING.match(head[2]):
        return ""
    plain = re.sub(r"\([^()]*\)|<(?!\d+ x )[^<>]*>", "", head[3])  # without constants of many parts
    kinds = re.findall(rf"(?:^|, )({TYPE})", plain)
    result = re.findall(TYPE, head[1].strip() or "void")[-1]
    return f"{head[2]} ({', '.join(kinds)}) {result}"


def _with_splats(instructions: list[Instruction]) -> list[Instruction]:
    """Instructions in which an element in all lanes is one instruction, as processors have it: of
    memory, if it was loaded."""
    made = {each.name: each for each in instructions if each.name}
    uses: dict[str, int] = {}
    for each in instructions:
        for name in each.operands:
            uses[name] = uses.get(name, 0) + 1
    result = {id(each): each for each in instructions}
    for each in instructions:
        inner = _moved_by(each, made)
        if not inner:
            continue
        source = made.get(inner[-1].operands[-1]) if inner[-1].operands else None
        loaded = source is not None and source.operation == "load" and uses[source.name] == 1
        vector = VECTOR.search(inner[-1].text)
        form = f"{LOADED if loaded else SPLAT} {vector[0] if vector else ''}"
        result[id(each)] = replace(each, form=form)
        for one in (*inner, source) if source is not None and loaded else inner:
            result[id(one)] = replace(result[id(one)], form="")
    return list(result.values())


def _moved_by(each: Instruction, made: dict[str, Instruction]) -> list[Instruction]:
    """The instructions between a scalar and the shuffle that puts it into all lanes, backwards; the
    last inserts it into a vector. None where it is no such shuffle."""
    if each.operation != "shufflevector" or not _repeats(each.text):
        return []
    chain: list[Instruction] = []
    now = made.get(each.operands[0]) if each.operands else None
    while now is not None and now.operation in ("bitcast", "insertelement"):
        chain.append(now)
        if now.operation == "insertelement":
            return chain
        now = made.get(now.operands[0]) if now.operands else None
    return []


def _repeats(text: str) -> bool:
    """Whether a shuffle puts the first element, or the first bytes of a word, into all lanes."""
    mask = re.search(r"<(\d+) x i32> (zeroinitializer|<[^>]*>)$", text)
    if mask is None:
        return False
    if mask[2] == "zeroinitializer":
        return True
    lanes = re.findall(r"i32 (\w+)", mask[2])
    return all(lane in (str(n % 4), "poison") for n, lane in enumerate(lanes))
