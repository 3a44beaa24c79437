"""Instructions in an order in which they may run, with tokens where two of them collide.

Two instructions of different engines collide where one writes an entry that the other reads or
writes. The later one then waits for the earlier one by a token: the earlier engine's instruction,
or one a little behind it, pushes it, and the later instruction pops it. None is added where tokens
order the two already. Now and then one is added that nobody needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from vdla.isa.config import Config
from vdla.isa.instructions import Instruction
from vdla.isa.ring import Engine, engines, ring_of
from vdla.sim.places import Places


@dataclass
class Step:
    """An instruction with what it touches and how many of each engine finish before its start."""

    instruction: Instruction
    engine: Engine
    number: int  # within its engine, from 1
    reads: Places
    writes: Places
    clock: dict[Engine, int]


class Ordering:
    """Instructions of a config's engines, appended one by one."""

    def __init__(self, config: Config, rng: Random) -> None:
        self.config, self.rng, self.ring = config, rng, ring_of(config)
        self.steps: list[Step] = []
        self.of_engine: dict[Engine, list[Step]] = {engine: [] for engine in engines(config)}

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions so far, with their tokens."""
        return [step.instruction for step in self.steps]

    def append(self, instruction: Instruction, reads: Places, writes: Places) -> None:
        """Puts an instruction behind the others, and the tokens that it must wait for."""
        engine = self.ring.engine_of(instruction)
        mine = self.of_engine[engine]
        clock = dict(mine[-1].clock) if mine else dict.fromkeys(self.of_engine, 0)
        step = Step(instruction, engine, len(mine) + 1, reads, writes, clock)
        for other in self.ring.neighbours(engine).values():
            needed = self._last_collision(step, other)
            if needed > step.clock[other]:
                self._order(step, other, needed)
            elif self.of_engine[other] and self.rng.random() < 0.1:
                self._order(step, other, self.of_engine[other][-1].number)
        mine.append(step)
        self.steps.append(step)

    def _last_collision(self, step: Step, other: Engine) -> int:
        for earlier in reversed(self.of_engine[other]):
            if step.writes & (earlier.reads | earlier.writes) or step.reads & earlier.writes:
                return earlier.number
        return 0

    def _order(self, step: Step, other: Engine, needed: int) -> None:
        """Adds a token from ``other``'s instruction ``needed``, or a later one, to ``step``."""
        queue = self.ring.token_queue(other, step.engine)
        givers = self.of_engine[other]
        last = len(givers)
        roomy = self.config.token_queue > len(self.steps)
        giver = givers[self.rng.randint(needed, last) - 1 if roomy else last - 1]
        if any(getattr(s.instruction, queue.push) for s in givers[giver.number - 1 :]):
            return  # that token, or a later one, is popped already
        giver.instruction = giver.instruction.replace(**{queue.push: 1})
        step.instruction = step.instruction.replace(**{queue.pop: 1})
        step.clock = {each: max(n, giver.clock[each]) for each, n in step.clock.items()}
        step.clock[other] = max(step.clock[other], giver.number)
