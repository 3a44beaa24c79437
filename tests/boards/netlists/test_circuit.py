"""Circuits: what a simplified one computes, memories' ports, saved states, planted faults."""

from __future__ import annotations

import random

import pytest

from tests.support.netlists import copies_of, first_difference
from vdla.boards.board import BoardError
from vdla.boards.netlists.circuit import CORE, HIGH, LOW, Circuit, Mode, Port, Ram, simplified
from vdla.boards.netlists.copies import COPIES, Copies
from vdla.boards.netlists.faults import MULTIPLIER, NET, PLACE, SEEN, TABLE, plant
from vdla.boards.netlists.tables import tables_of

ALL = (1 << COPIES) - 1
BITS, DEPTH = 6, 4  # of a RAM's word, and of its address


def random_circuit(seed: int, gates: int = 120) -> Circuit:
    """Gates and registers between eight inputs and eight outputs; some inputs are constant."""
    rng = random.Random(seed)
    circuit = Circuit()
    nets = [LOW, HIGH]
    for n in range(8):
        circuit.inputs[f"in[{n}]"] = circuit.net()
        nets.append(circuit.nets - 1)
    for _ in range(gates):
        if rng.random() < 0.25:
            nets.append(circuit.registered(CORE, rng.choice(nets), enable=rng.choice(nets)))
            continue
        inputs = [rng.choice([*nets[-40:], LOW, HIGH]) for _ in range(rng.randint(1, 4))]
        nets.append(circuit.gate(rng.getrandbits(1 << len(inputs)), *inputs))
    circuit.outputs = {f"out[{n}]": net for n, net in enumerate(nets[-8:])}
    return circuit


@pytest.mark.parametrize("seed", range(12))
def test_a_simplified_circuit_computes_the_same(seed: int) -> None:
    twice = simplified(simplified(random_circuit(seed)))
    whole = random_circuit(seed)
    assert len(twice.gates) < len(whole.gates)
    circuit, copies = copies_of(random_circuit(seed))
    whole.inputs["unused"] = whole.net()
    plain = Copies(whole, whole.inputs["unused"], HIGH, 4, 1)
    rng = random.Random(seed)
    for _ in range(50):
        for name in whole.inputs:
            word = rng.getrandbits(COPIES)
            plain.set(whole.inputs[name], word)
            copies.set(circuit.inputs[name], word)
        plain.evaluate()
        copies.evaluate()
        for name, net in whole.outputs.items():
            assert plain.get(net) == copies.get(circuit.outputs[name]), name
        plain.run(1)
        copies.run(1)


def memory(modes: tuple[Mode, Mode]) -> Circuit:
    """A RAM of two ports that both read and write, every pin an input or an output."""
    circuit, ports = Circuit(), []
    for n, mode in enumerate(modes):
        pins = {"a": DEPTH, "w": 2, "d": BITS, "e": 1}
        nets = {pin: tuple(circuit.net() for _ in range(count)) for pin, count in pins.items()}
        out = tuple(circuit.net() for _ in range(BITS))
        for pin, some in nets.items():
            circuit.inputs |= {f"{pin}{n}[{i}]": net for i, net in enumerate(some)}
        circuit.outputs |= {f"q{n}[{i}]": net for i, net in enumerate(out)}
        ports.append(Port(CORE, nets["a"], nets["e"][0], nets["w"], nets["d"], out, mode))
    circuit.rams.append(Ram(BITS, tuple(ports), {3: 0b101010}))
    return circuit


@pytest.mark.parametrize("modes", [(Mode.BEFORE, Mode.KEEP), (Mode.THROUGH, Mode.BEFORE)])
def test_a_ram_does_what_its_ports_say(modes: tuple[Mode, Mode]) -> None:
    circuit, copies = copies_of(memory(modes))
    rng = random.Random(0)
    words = [[0b101010 if row == 3 else 0 for row in range(1 << DEPTH)] for _ in range(COPIES)]
    shown = [[0, 0] for _ in range(COPIES)]
    for _ in range(200):
        levels = {name: rng.getrandbits(COPIES) for name in circuit.inputs if name != "unused"}
        for name, word in levels.items():
            copies.set(circuit.inputs[name], word)
        copies.run(1)
        for copy in range(COPIES):
            step(modes, words[copy], shown[copy], levels, copy)
            for n in range(2):
                q = [copies.get(circuit.outputs[f"q{n}[{i}]"]) >> copy & 1 for i in range(BITS)]
                assert sum(bit << i for i, bit in enumerate(q)) == shown[copy][n]


def step(
    modes: tuple[Mode, Mode], words: list[int], shown: list[int], levels: dict[str, int], copy: int
) -> None:
    """A clock of one copy's RAM, by its rules."""

    def number(name: str, count: int) -> int:
        return sum((levels[f"{name}[{i}]"] >> copy & 1) << i for i in range(count))

    at = [number(f"a{n}", DEPTH) for n in range(2)]
    on = [number(f"e{n}", 1) for n in range(2)]
    masks = [
        sum(0b111 << 3 * i for i in range(2) if number(f"w{n}", 2) >> i & 1) * on[n]
        for n in range(2)
    ]
    data = [number(f"d{n}", BITS) for n in range(2)]
    before = list(words)
    for n, mode in enumerate(modes):
        if not on[n] or (mode == Mode.KEEP and masks[n]):
            continue
        shown[n] = before[at[n]]
        if mode == Mode.THROUGH:
            shown[n] = shown[n] & ~masks[n] | data[n] & masks[n]
        if at[0] == at[1]:
            shown[n] ^= masks[1 - n]
    for n in range(2):
        words[at[n]] = words[at[n]] & ~masks[n] | data[n] & masks[n]


def test_a_saved_state_comes_back() -> None:
    circuit, copies = copies_of(memory((Mode.BEFORE, Mode.BEFORE)))
    for name in ("a0[0]", "w0[0]", "d0[1]", "e0[0]", "e1[0]"):
        copies.set(circuit.inputs[name], ALL)
    copies.save()
    copies.run(3)
    assert copies.words(0, 5, 2)[1] == 0b010
    copies.restore()
    assert copies.words(0, 5, 2)[1] == 0
    assert copies.get(circuit.outputs["q0[1]"]) == 0


def test_gates_in_a_circle_are_refused() -> None:
    circuit = Circuit()
    a = circuit.net()
    b = circuit.gate(0b01, a)
    circuit.gate(0b10, b, output=a)
    with pytest.raises(BoardError, match="expected gates without circles, found one of 2 gates"):
        tables_of(circuit)


@pytest.mark.parametrize("seed", range(3))
def test_a_fault_shows_in_its_copy_alone(seed: int) -> None:
    sound = simplified(random_circuit(seed))
    for a in range(2):
        factor = tuple(sound.registered(CORE, net) for net in sound.inputs.values())
        factor += (factor[-1],) * 10
        product = tuple(sound.net() for _ in range(36))
        sound.multipliers.append(_multiplier(factor, product))
        sound.outputs |= {f"product {a}[{n}]": net for n, net in enumerate(product)}
    faulty = simplified(sound)
    kinds = [TABLE, NET, MULTIPLIER] * 20
    faults = plant(faulty, kinds, seed)
    places = {PLACE.format(n): 1 << n for n in range(len(faults))}
    left, right = copies_of(sound), copies_of(faulty)
    for name, word in places.items():
        right[1].set(right[0].inputs[name], word)
    differs, reached = outcomes(left, right, len(faults), seed)
    assert differs >> len(faults) == 0
    assert bin(differs).count("1") >= len(faults) // 3
    assert differs & ~reached == 0


def _multiplier(factor: tuple[int, ...], product: tuple[int, ...]):
    from vdla.boards.netlists.circuit import Multiplier

    return Multiplier(factor, factor[::-1], (HIGH, LOW), product)


def outcomes(left, right, faults: int, seed: int) -> tuple[int, int]:
    """Copies in which an output differs, and those in which a fault was reached."""
    rng = random.Random(seed)
    (a, copies_a), (b, copies_b) = left, right
    differs = reached = 0
    for _ in range(200):
        for n in range(8):
            word = ALL * rng.getrandbits(1)
            copies_a.set(a.inputs[f"in[{n}]"], word)
            copies_b.set(b.inputs[f"in[{n}]"], word)
        copies_a.evaluate()
        copies_b.evaluate()
        for name, net in a.outputs.items():
            differs |= copies_a.get(net) ^ copies_b.get(b.outputs[name])
        copies_a.run(1)
        copies_b.run(1)
        for n in range(faults):
            reached |= copies_b.get(b.outputs[SEEN.format(n)]) & 1 << n
    return differs, reached


def test_random_circuits_differ() -> None:
    assert first_difference(random_circuit(1), random_circuit(2), 20)
