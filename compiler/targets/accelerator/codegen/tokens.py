"""Dependency tokens, derived from what instructions read and write.

For every instruction the pass finds, per other engine, the last instruction it must come after:
one that wrote what it reads or overwrites, or read what it overwrites. A token is placed only
where that isn't already known: through an earlier token, directly or by way of another engine.
What is known is kept as a vector clock per engine, so the tokens are as few as the data allows,
and each instruction gives and takes at most one per queue.

Queues are finite. Running the stream one by one never finds one full: where a token more would be
too many, the newest one waiting is given later instead, and covers both. Engines that run ahead of
that order can't deadlock either: an instruction that can start is never kept from it by another.

An engine may have to work alone: then each of its instructions comes after all before it, and each
behind it comes after it, whatever they read and write. With all engines alone no two work at once,
and the stream takes the time that it takes without latency hiding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from vdla.compiler.targets.accelerator.codegen.op import Op
from vdla.compiler.targets.accelerator.codegen.touches import NEVER, Touches
from vdla.isa.config import Config
from vdla.isa.instructions import Instruction, Load, Store
from vdla.isa.ring import Engine, TokenQueue, ring_of

Clock = tuple[int, ...]  # per engine, the last of its instructions that has finished


def insert_tokens(
    ops: Sequence[Op],
    addresses: Mapping[str, int],
    dram_bytes: int,
    config: Config,
    alone: Collection[Engine] = (),
) -> list[Instruction]:
    """The stream with DRAM addresses and token flags in place.

    Args:
        ops: instructions in an order in which running them one by one is right.
        addresses: the byte address of every DRAM tensor.
        dram_bytes: the end of the highest tensor.
        config: the accelerator.
        alone: engines that work while no other one does.
    """
    touched = Touches(addresses, dram_bytes, config, max(ring_of(config).engines) + 1)
    return _Tokens(touched, config, alone).run(ops)


def _addressed(op: Op, addresses: Mapping[str, int]) -> Instruction:
    """A copy of the op's instruction, its DRAM address absolute."""
    instruction = op.instruction.copy()
    if isinstance(instruction, Load | Store) and op.tensor:
        instruction.dram_base += addresses[op.tensor]
    return instruction


class _Tokens:
    """The pass over one stream; it keeps what every engine knows to be finished."""

    def __init__(self, touched: Touches, config: Config, alone: Collection[Engine]) -> None:
        self.touched, self.alone = touched, frozenset(alone)
        self.limit, self.ring = config.token_queue, ring_of(config)
        engines = max(self.ring.engines) + 1  # numbers of engines; a config may lack some
        self.known: list[Clock] = [(NEVER,) * engines] * engines
        # Per engine: what each finished instruction knew, and where each stands in the program.
        self.history: list[list[Clock]] = [[] for _ in range(engines)]
        self.streams: list[list[Instruction]] = [[] for _ in range(engines)]
        self.places: list[list[int]] = [[] for _ in range(engines)]
        # Per token: the giver in its engine's order, the taker's place.
        self.queues: dict[TokenQueue, list[tuple[int, int]]] = {
            queue: [] for queue in self.ring.token_queues
        }

    def run(self, ops: Sequence[Op]) -> list[Instruction]:
        """The instructions with addresses and token flags, in the order of ``ops``."""
        result = []
        for place, op in enumerate(ops):
            instruction = _addressed(op, self.touched.addresses)
            self._order(instruction, op, place)
            result.append(instruction)
        return result

    def _order(self, instruction: Instruction, op: Op, place: int) -> None:
        engine = self.ring.engine_of(instruction)
        needs = self._needs(op, engine)
        for other in sorted(needs, key=lambda o: self._covers(o, needs), reverse=True):
            if needs[other] > self.known[engine][other]:
                self._token(instruction, (other, engine), needs[other], place)
        mine = len(self.streams[engine])
        self.touched.mark(op, mine, engine)
        self.streams[engine].append(instruction)
        self.places[engine].append(place)
        self.history[engine].append(self.known[engine])

    def _needs(self, op: Op, engine: Engine) -> dict[Engine, int]:
        """Per other engine, the last of its instructions that must have finished before."""
        lasts = self.touched.lasts(op)
        needs = {}
        for other in self.ring.neighbours(engine).values():
            if self.alone & {engine, other}:
                needs[other] = len(self.streams[other]) - 1
            else:
                needs[other] = max((last[other] for last in lasts), default=NEVER)
        return needs

    def _covers(self, other: Engine, needs: Mapping[Engine, int]) -> int:
        """How many engines are covered, in what they must have done, by waiting for ``other``.

        Who covers another covers all that this one covers, so it counts more.
        """
        need = needs[other]
        if need == NEVER:
            return 0
        knew = self.history[other][need]
        return sum(knew[each] >= needs[each] for each in needs if each != other)

    def _token(
        self, instruction: Instruction, ends: tuple[Engine, Engine], index: int, place: int
    ) -> None:
        """A token from the ``index``-th instruction of the first of two engines to the second's."""
        source, engine = ends
        flags = self.ring.token_queue(source, engine)
        queue, givers = self.queues[flags], self.streams[source]
        setattr(givers[index], flags.push, 1)
        if len(queue) < self.limit or queue[-self.limit][1] < self.places[source][index]:
            setattr(instruction, flags.pop, 1)
            queue.append((index, place))
        else:
            newest, taker = queue[-1]
            setattr(givers[newest], flags.push, 0)
            queue[-1] = (index, taker)
        learned = list(map(max, self.known[engine], self.history[source][index]))
        learned[source] = max(learned[source], index)
        self.known[engine] = tuple(learned)
