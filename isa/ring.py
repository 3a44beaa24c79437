"""The ring of engines: what each executes, what it reads and writes, whom it exchanges tokens with.

Engines run decoupled, each with a queue of instructions of its own. A token queue leads from each
engine to each other one. An instruction names the other by its *side*: the flag ``pop_prev`` takes
a token that the engine before gave with ``push_next``. In a ring of four the fourth stands opposite
an engine, at its side ``across``.

Everything that has a part per engine or per token queue derives from ``ring_of``: simulator, RTL,
checker, registers, traces and reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from vdla.isa.config import Config
from vdla.isa.engines import Engine
from vdla.isa.instructions import (
    Alu,
    Finish,
    Gemm,
    Instruction,
    Load,
    Store,
    Unknown,
    instruction_set,
)
from vdla.isa.options import options_of
from vdla.isa.options.option import AddedEngine
from vdla.isa.parameters import ConfigError

__all__ = [
    "BACK",
    "RINGS",
    "Engine",
    "Ring",
    "Role",
    "TokenQueue",
    "engines",
    "numbered",
    "ring_of",
]

# Per side of an engine, the side at which the neighbour there has the engine.
BACK = {"next": "prev", "prev": "next", "across": "across"}


RINGS = (3, 4)  # numbers of engines that a ring may have, so that each is a neighbour of all others


@dataclass(frozen=True)
class Role:
    """Instructions that an engine executes, and memories that it reads and writes;
    ``dram`` is one.
    """

    engine: Engine
    executes: tuple[type[Instruction], ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True)
class TokenQueue:
    """A queue of tokens from ``giver`` to ``taker``.

    The taker lies at the giver's ``side``, and the giver at the taker's side ``back``.
    """

    giver: Engine
    taker: Engine
    side: str
    back: str

    @property
    def push(self) -> str:
        """The giver's flag."""
        return f"push_{self.side}"

    @property
    def pop(self) -> str:
        """The taker's flag."""
        return f"pop_{self.back}"


@dataclass(frozen=True)
class Ring:
    """The engines of a config in ring order. Any two of them exchange tokens.

    Raises:
        ConfigError: there are engines that wouldn't be neighbours, or not one for an instruction.
    """

    roles: tuple[Role, ...]
    instructions: tuple[type[Instruction], ...]  # all that the config has

    def __post_init__(self) -> None:
        names = ", ".join(engine.name for engine in self.engines) or "none"
        if len(self.roles) not in RINGS or len(set(self.engines)) < len(self.roles):
            raise ConfigError(f"ring: expected 3 or 4 different engines, found {names}")
        executed = Counter(cls for role in self.roles for cls in role.executes)
        for cls in self.instructions:
            if executed[cls] != 1:
                raise ConfigError(
                    f"ring: expected one engine that executes {cls.mnemonic}, found {executed[cls]}"
                )

    @cached_property
    def engines(self) -> tuple[Engine, ...]:
        """The engines in ring order."""
        return tuple(role.engine for role in self.roles)

    @cached_property
    def executor(self) -> Mapping[type[Instruction], Engine]:
        """The engine of each class of instructions.

        FINISH and what the machine doesn't know count as COMPUTE's, though no engine executes them.
        """
        result = {cls: role.engine for role in self.roles for cls in role.executes}
        return result | {Unknown: result[Finish]}

    def engine_of(self, instruction: Instruction) -> Engine:
        """The engine that executes an instruction."""
        return self.executor[type(instruction)]

    def writers(self, memory: str) -> tuple[Engine, ...]:
        """The engines that write a memory, in ring order."""
        return tuple(role.engine for role in self.roles if memory in role.writes)

    def neighbours(self, engine: Engine) -> Mapping[str, Engine]:
        """The engines that an engine exchanges tokens with, by their sides."""
        at, count = self.engines.index(engine), len(self.engines)
        away = {"prev": -1, "next": 1} | ({"across": 2} if count == 4 else {})
        return {side: self.engines[(at + steps) % count] for side, steps in away.items()}

    @cached_property
    def sides(self) -> tuple[str, ...]:
        """The sides at which an engine has neighbours, in the order of the token flags."""
        return tuple(self.neighbours(self.engines[0]))

    @cached_property
    def token_queues(self) -> tuple[TokenQueue, ...]:
        """The token queues, by their numbers: those of one giver lie side by side."""
        return tuple(
            TokenQueue(giver, self.neighbours(giver)[side], side, back)
            for giver in self.engines
            for side, back in BACK.items()
            if side in self.sides
        )

    @cached_property
    def _between(self) -> Mapping[tuple[Engine, Engine], TokenQueue]:
        return {(queue.giver, queue.taker): queue for queue in self.token_queues}

    def token_queue(self, giver: Engine, taker: Engine) -> TokenQueue:
        """The token queue from one engine to another."""
        return self._between[giver, taker]


@cache
def ring_of(config: Config) -> Ring:
    """The ring of a config's machine: the three engines, and those that its options add."""
    known = instruction_set(config)
    places: dict[Engine, list[type[Instruction]]] = {
        Engine.LOAD: [Load], Engine.COMPUTE: [Gemm, Alu, Finish], Engine.STORE: [Store]
    }  # fmt: skip
    for added in (option.engine for option in options_of(config) if option.engine):
        own = [cls for cls in known if cls.mnemonic in added.executes]
        places = _with_engine(places, added, own)
    roles = (_role(config, engine, executes) for engine, executes in places.items())
    return Ring(tuple(roles), known)


def _with_engine(
    places: Mapping[Engine, list[type[Instruction]]],
    added: AddedEngine,
    own: list[type[Instruction]],
) -> dict[Engine, list[type[Instruction]]]:
    """The engines with one more, which takes its own instructions from them, in ring order."""
    result: dict[Engine, list[type[Instruction]]] = {}
    for engine, executes in places.items():
        result[engine] = [cls for cls in executes if cls not in own]
        if engine == added.behind:
            result[added.engine] = own
    return result


def _role(config: Config, engine: Engine, executes: Iterable[type[Instruction]]) -> Role:
    """An engine's role: it reads and writes what one of its instructions does."""
    known = tuple(executes)
    reads, writes = list[str](), list[str]()
    for cls in known:
        reads += cls.reads
        writes += cls.writes
        for option in options_of(config):
            reads += option.reads.get(cls.mnemonic, ())
            writes += option.writes.get(cls.mnemonic, ())
    return Role(engine, known, tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes)))


def engines(config: Config) -> tuple[Engine, ...]:
    """The engines of a config's machine in ring order."""
    return ring_of(config).engines


def numbered(config: Config) -> tuple[Engine, ...]:
    """The engines of a config's machine in the order of their numbers."""
    return tuple(sorted(engines(config)))
