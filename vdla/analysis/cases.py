"""Cases for lockstep: random programs, and programs made for a goal that chance reaches too seldom.

Every DIRECTED-th case follows a recipe, one after another: a queue of tokens driven full, or a
program that must end in a certain fault. Some of the others get a mistake at random. Each case says
how it was made to end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from vdla.analysis.case import Case, Ending
from vdla.analysis.directed import ONE, directed
from vdla.isa.config import PAGE_BYTES, Config
from vdla.isa.fields import Field
from vdla.isa.identity import Identity
from vdla.isa.instructions import (
    Alu,
    Finish,
    Gemm,
    Init,
    Instruction,
    Load,
    Mem,
    Store,
    Uop,
    instruction_bytes,
    instruction_set,
    memories,
)
from vdla.isa.program import Program
from vdla.isa.registers import Fault
from vdla.isa.ring import Engine, Ring, TokenQueue, ring_of
from vdla.sim.random_programs import DATA_AT, DRAM_BYTES, random_program
from vdla.support.seams import Seam

DIRECTED = 4
FAULTY_SHARE = 0.1  # share of the other programs that get a mistake
SIZES = (3, 12, 30, 60)  # instructions of a random program
NOTHING = dict.fromkeys(("x_size", "pad_x0", "pad_x1"), 0)
MOST_TOKENS = 128  # of a queue that a program can fill


def random_case(config: Config, seed: int) -> Case:
    """The ``seed``-th case."""
    rng = Random(seed)
    if seed % DIRECTED == 0:
        known = recipes(config)
        name = list(known)[seed // DIRECTED % len(known)]
        recipe = known[name]
        return replace(recipe.make(config, rng), goal=name, purpose=recipe.purpose)
    case = Case.of(random_program(config, seed, rng.choice(SIZES)))
    return _with_mistake(case, rng) if rng.random() < FAULTY_SHARE else case


# Recipes ---------------------------------------------------------------------------------------

Maker = Callable[[Config, Random], Case]


@dataclass(frozen=True)
class Recipe:
    """A way to make a program, and how that must end; ``fault`` is the fault of a FAULT."""

    make: Maker
    purpose: Ending = Ending.FINISH
    fault: Fault = Fault.NONE


def recipes(config: Config) -> Mapping[str, Recipe]:
    """Every recipe by its name."""
    result = {**faults(config), "deadlock": Recipe(_deadlock, Ending.DEADLOCK)}
    result |= {name: Recipe(partial(_sound, make)) for name, make in directed(config).items()}
    for queue in ring_of(config).token_queues:
        name = f"tokens {queue.giver.name} → {queue.taker.name}"
        result[name] = Recipe(partial(_tokens, queue))
    return result


# Instructions of options that go beyond a memory, by what is wrong with them.
OUTSIDE: Seam[Callable[[Config], Mapping[str, Instruction]]] = Seam()


def faults(config: Config) -> Mapping[str, Recipe]:
    """The programs that end in a fault: every row of docs/timing.md, section 9."""
    port = config.port_bytes
    far = DRAM_BYTES
    depth = config.depth
    result = {
        "another instruction set": _fault(Fault.PROGRAM_ISA, partial(_for_other, 0)),
        "another config": _fault(Fault.PROGRAM_CONFIG, partial(_for_other, 1)),
        "no instructions": _fault(Fault.ILLEGAL, _empty),
        "no FINISH": _fault(Fault.ILLEGAL, _endless),
        "an early FINISH": _fault(Fault.ILLEGAL, _with(Finish())),
        "an unknown opcode": _fault(Fault.ILLEGAL, _opcode),
        "a stream outside DRAM": _fault(Fault.ADDRESS, partial(_elsewhere, DRAM_BYTES)),
        "a stream between beats": _fault(Fault.ADDRESS, partial(_elsewhere, 1)),
        "a bus error of fetch": _fault(Fault.BUS, partial(_bus, None)),
        "a bus error of LOAD": _fault(Fault.BUS, partial(_bus, Load(memory=Mem.INP, **ONE))),
        "a bus error of STORE": _fault(Fault.BUS, partial(_bus, Store(memory=Mem.ACC, **ONE))),
    }
    illegal = {
        f"{cls.mnemonic}'s {f.name}": cls(**{f.name: value})
        for cls in instruction_set(config)
        for f in cls.fields
        if f.names and (value := _illegal(f, config)) is not None
    }
    nest = {"uop_count": 1}
    outside: dict[str, Instruction] = {
        "a LOAD between beats": Load(dram_base=DATA_AT + port - 1, **ONE),
        "a STORE between beats": Store(memory=Mem.ACC, dram_base=DATA_AT + 1, **ONE),
        "a LOAD from outside DRAM": Load(dram_base=far - port, **{**ONE, "y_size": 2}, y_stride=1),
        "a STORE to outside DRAM": Store(memory=Mem.ACC, dram_base=far, **ONE),
        "a src beyond INP": Gemm(**nest, extent_0=2, src_base=depth("inp") - 1, src_0=1),
        "a wgt beyond WGT": Gemm(**nest, extent_1=2, wgt_base=depth("wgt") - 1, wgt_1=1),
        "a dst beyond ACC": Gemm(**nest, extent_2=2, dst_base=depth("acc") - 1, dst_2=1),
        "a y beyond ACC": Alu(**nest, extent_0=2, src_base=depth("acc") - 1, src_0=1),
        "an x beyond ACC": Alu(**nest, extent_0=2, dst_base=depth("acc") - 1, dst_0=1, use_imm=1),
        "a micro-op beyond UOP": Gemm(uop_begin=config.uop_depth - 1, uop_count=2),
        "a STORE from beyond ACC": Store(memory=Mem.ACC, sram_base=depth("acc") - 1,
                                         **{**ONE, "x_size": 2}),
        "scales beyond ACC": Store(memory=Mem.ACC8, scale_base=depth("acc") - 1,
                                   **{**ONE, "z_size": 2}),
        **{
            f"a LOAD beyond {memory.name}": Load(
                memory=memory, sram_base=depth(memory.buffer) - 1, dram_base=DATA_AT,
                **{**ONE, "x_size": 2},
            )
            for memory in memories(config)
        },
    }  # fmt: skip
    more = (item for each in OUTSIDE for item in each(config).items())
    outside.update(sorted(more, key=lambda item: item[1].mnemonic))  # whatever files are called
    result |= {what: _fault(Fault.ILLEGAL, _with(each)) for what, each in illegal.items()}
    result |= {what: _fault(Fault.ADDRESS, _with(each)) for what, each in outside.items()}
    result["a bias beyond ACC"] = _fault(Fault.ADDRESS, _bias)
    return result


def _sound(make: Callable[[Config, Random], Program], config: Config, rng: Random) -> Case:
    return Case.of(make(config, rng))


def _fault(fault: Fault, make: Maker) -> Recipe:
    return Recipe(make, Ending.FAULT, fault)


def _illegal(f: Field, config: Config) -> int | None:
    """A value that an enumerated field can hold and mustn't, if there is one."""
    return next((v for v in range(1 << f.width(config)) if v not in f.legal(config)), None)


def _small(config: Config, rng: Random) -> Case:
    return Case.of(random_program(config, rng.randrange(1 << 30), rng.choice(SIZES[:2])))


def _for_other(word: int, config: Config, rng: Random) -> Case:
    """One bit of the identity differs."""
    case = _small(config, rng)
    words = list(case.identity.words)
    words[word] ^= 1 << rng.randrange(32)
    return replace(case, identity=Identity.of_words(*words), mistake="identity")


def _empty(config: Config, rng: Random) -> Case:
    return replace(_small(config, rng), raw=b"", mistake="empty")


def _endless(config: Config, rng: Random) -> Case:
    case = _small(config, rng)
    return replace(case.with_instructions(case.stream.instructions[:-1]), mistake="end")


def _opcode(config: Config, rng: Random) -> Case:
    case, size = _small(config, rng), instruction_bytes(config)
    raw = bytearray(case.raw)
    raw[rng.randrange(len(raw) // size) * size] |= 7
    return replace(case.with_raw(bytes(raw)), mistake="opcode")


def _elsewhere(by: int, config: Config, rng: Random) -> Case:
    case = _small(config, rng)
    return replace(case, base=case.base + by, mistake="base")


def _with(each: Instruction) -> Maker:
    """A program with an instruction more.

    What a machine does that reads a micro-op while it is loaded isn't defined. So one that loads
    micro-ops comes first, and beside one that reads them no LOAD writes any.
    """

    def make(config: Config, rng: Random) -> Case:
        case = _small(config, rng)
        stream = list(case.stream.instructions)
        at = 0 if _loads_uops(each) else rng.randrange(len(stream))
        if getattr(each, "uop_count", 0):
            stream = [s.replace(**NOTHING) if _loads_uops(s) else s for s in stream]
        stream.insert(at, each)
        return replace(case.with_instructions(stream), mistake="instruction")

    return make


def _loads_uops(each: Instruction) -> bool:
    return getattr(each, "memory", None) == Mem.UOP


def _bus(each: Instruction | None, config: Config, rng: Random) -> Case:
    """Errors where only the instruction goes, or in the stream."""
    case = _small(config, rng)
    if each is None:
        size = instruction_bytes(config)
        at = case.base + size * rng.randrange(len(case.raw) // size)
        return replace(case, errors=(at, at + size), mistake="bus")
    far = len(case.dram) // 2 // PAGE_BYTES * PAGE_BYTES
    stream = list(case.stream.instructions)
    stream.insert(rng.randrange(len(stream)), each.replace(dram_base=far))
    return replace(case.with_instructions(stream), errors=(far, far + PAGE_BYTES), mistake="bus")


def _bias(config: Config, rng: Random) -> Case:
    """GEMM starts from a bias beyond ACC: its micro-op is marked ``first``."""
    case = Case.of(Program(config, [
        Load(memory=Mem.UOP, push_next=1, **ONE),
        Gemm(pop_prev=1, uop_count=1, extent_0=2, init=Init.BIAS,
             bias_base=config.depth("acc") - 1, bias_0=1),
        Finish(),
    ], DRAM_BYTES // 2, {0: Uop(first=1).encode(config)}))  # fmt: skip
    return replace(case, mistake="instruction")


def _deadlock(config: Config, rng: Random) -> Case:
    """An instruction waits for a token more: its queue is popped more often than pushed to."""
    case = _small(config, rng)
    stream = list(case.stream.instructions)
    flags = [f"pop_{side}" for side in ring_of(config).sides]
    free = [(i, f) for i, each in enumerate(stream[:-1]) for f in flags if not getattr(each, f)]
    at, flag = rng.choice(free)
    stream[at] = stream[at].replace(**{flag: 1})
    return replace(case.with_instructions(stream), mistake="token")


def _tokens(queue: TokenQueue, config: Config, rng: Random) -> Case:
    """Fills the queue from one engine to another, while a third holds the taker up.

    The taker's first instruction waits for the third engine, and that for the giver's last token
    but a few; so the queue is full before any is popped, and then givers and takers alternate.
    """
    ring, giver, taker = ring_of(config), queue.giver, queue.taker
    third = next(each for each in ring.engines if each not in (giver, taker))
    on, off = ring.token_queue(giver, third), ring.token_queue(third, taker)
    count = min(config.token_queue, MOST_TOKENS)
    more = rng.randint(1, 5)
    give, take = _idle(ring, giver, queue.push), _idle(ring, taker, queue.pop)
    stream = [
        *[give] * (count - 1),
        _idle(ring, giver, queue.push, on.push),
        _idle(ring, third, on.pop, off.push),
        _idle(ring, taker, off.pop),
        *[give] * min(more, config.command_queue),
        *[take] * (count + min(more, config.command_queue)),
        Finish(),
    ]
    at = rng.randrange(8) * config.port_bytes
    base = DRAM_BYTES - (len(stream) + 1) * instruction_bytes(config) - at
    return Case.of(Program(config, stream, base - base % config.port_bytes))


def _idle(ring: Ring, engine: Engine, *flags: str) -> Instruction:
    """An instruction of an engine that does nothing but pass tokens."""
    kind = next(role.executes[0] for role in ring.roles if role.engine == engine)
    idle = Store(memory=Mem.ACC) if kind is Store else kind()
    return idle.replace(**dict.fromkeys(flags, 1))


# Mistakes at random ------------------------------------------------------------------------------


def _with_mistake(case: Case, rng: Random) -> Case:
    """Makes a program that must end in a fault or a deadlock, or might."""
    how = rng.choice(("bus", "field", "token"))
    case = replace(case, mistake=how, purpose=None)
    stream = list(case.stream.instructions)
    at = rng.randrange(len(stream))
    if how == "bus":
        first = rng.randrange(0, len(case.dram), 64)
        return replace(case, errors=(first, first + rng.choice((64, 4096, 16384))))
    stream[at] = _wrong_instruction(stream[at], case.config, rng, how)
    return case.with_instructions(stream)


def _wrong_instruction(each: Instruction, config: Config, rng: Random, how: str) -> Instruction:
    """One flag or field changed, so that no micro-op is read while it is loaded: what the machine
    does then isn't defined. A token more to wait for or one fewer given only makes it wait."""
    if how == "token":
        name = rng.choice([f"{v}_{s}" for v in ("pop", "push") for s in ring_of(config).sides])
        return each.replace(**{name: int(name.startswith("pop"))})
    spared = ("op", "memory", "uop_begin", "uop_count", "pop", "push", "extent", "pad")
    if _loads_uops(each):
        return each.replace(memory=(1 << Load.memory.width(config)) - 1)
    fields = (f for f, _, _ in each.layout(config))
    names = [f for f in fields if not f.name.startswith(spared) and "size" not in f.name]
    if not names:
        return each
    chosen: Field = rng.choice(names)
    low, high = chosen.bounds(config)
    return each.replace(**{chosen.name: rng.choice((high, rng.randint(low, high)))})
