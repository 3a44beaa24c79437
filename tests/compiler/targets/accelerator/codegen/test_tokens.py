"""Token insertion against a plain pass that keeps sets of entries."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.codegen.tokens import insert_tokens
from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, Gemm, Load, Store
from vdla.isa.ring import ring_of

ADDRESSES, DRAM_BYTES = {"a": 0, "b": 256}, 512


def entries(access: Access, unit: int) -> set[tuple[str, int]]:
    """Every entry of an access by itself; of DRAM, every port word."""
    steps = product(*(range(n) for n, _ in access.dims))
    numbers = [
        access.start + sum(i * s for i, (_, s) in zip(at, access.dims, strict=True)) for at in steps
    ]
    if access.space in ADDRESSES:
        return {("dram", (ADDRESSES[access.space] + n) // unit) for n in numbers}
    return {(access.space, n) for n in numbers}


class Plain:
    """The pass as its description has it, one instruction after another."""

    def __init__(self, config, alone):
        self.config, self.ring, self.alone = config, ring_of(config), alone
        engines = self.ring.engines
        self.done = {e: [] for e in engines}  # per instruction: place, touched, known, flags
        self.known = {e: dict.fromkeys(engines, -1) for e in engines}
        self.queues = {queue: [] for queue in self.ring.token_queues}

    def flags(self, ops):
        result = [set() for _ in ops]
        for place, op in enumerate(ops):
            engine = self.ring.engine_of(op.instruction)
            self.take(result, place, engine, self.needs(op, engine))
            touched = [(t.write, entries(t, self.config.port_bytes)) for t in op.accesses]
            self.done[engine].append((place, touched, dict(self.known[engine])))
        return result

    def needs(self, op, engine):
        needs = {}
        for other in self.ring.neighbours(engine).values():
            needs[other] = -1
            for number, (_, touched, _) in enumerate(self.done[other]):
                clash = any(
                    (t.write or write) and entries(t, self.config.port_bytes) & own
                    for t in op.accesses
                    for write, own in touched
                )
                if clash or {engine, other} & self.alone:
                    needs[other] = number
        return needs

    def covers(self, other, needs):
        if needs[other] < 0:
            return 0
        knew = self.done[other][needs[other]][2]
        return sum(knew[each] >= needs[each] for each in needs if each != other)

    def take(self, flags, place, engine, needs):
        for other in sorted(needs, key=lambda o: self.covers(o, needs), reverse=True):
            number = needs[other]
            if number <= self.known[engine][other]:
                continue
            queue = self.ring.token_queue(other, engine)
            tokens, (giver, _, knew) = self.queues[queue], self.done[other][number]
            flags[giver].add(queue.push)
            limit = self.config.token_queue
            if len(tokens) < limit or tokens[-limit][1] < giver:
                flags[place].add(queue.pop)
                tokens.append((giver, place))
            else:
                flags[tokens[-1][0]].discard(queue.push)
                tokens[-1] = giver, tokens[-1][1]
            known = self.known[engine]
            self.known[engine] = {e: max(known[e], knew[e]) for e in known} | {
                other: max(known[other], knew[other], number)
            }


ON_CHIP = st.builds(
    Access,
    st.sampled_from(["inp", "acc"]),
    st.integers(0, 8),
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5)), max_size=3).map(tuple),
    st.booleans(),
)
IN_DRAM = st.builds(
    lambda tensor, start, rows, size, write: Access(
        tensor, 4 * start, ((rows, 16), (size, 1)), write
    ),
    st.sampled_from(sorted(ADDRESSES)),
    st.integers(0, 12),
    st.integers(1, 3),
    st.integers(1, 9),
    st.booleans(),
)
OPS = st.lists(
    st.builds(
        lambda kind, accesses: Op(kind(), tuple(accesses), "stage"),
        st.sampled_from([Load, Gemm, Alu, Store]),
        st.lists(ON_CHIP | IN_DRAM, max_size=3),
    ),
    max_size=14,
)


@given(OPS, st.sampled_from([1, 2, 64]), st.booleans(), st.sets(st.integers(0, 2), max_size=2))
def test_tokens_are_those_of_the_plain_pass(ops, limit, vector, alone):
    config = load_config("tiny", [f"token_queue={limit}", f"vector_engine={int(vector)}"])
    alone = {engine for engine in ring_of(config).engines if engine in alone}
    stream = insert_tokens(ops, ADDRESSES, DRAM_BYTES, config, alone)
    names = [f"{verb}_{side}" for verb in ("pop", "push") for side in ("prev", "next", "across")]
    flags = [{name for name in names if getattr(each, name)} for each in stream]
    assert flags == Plain(config, alone).flags(ops)
