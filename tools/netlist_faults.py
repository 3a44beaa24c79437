"""Faults planted in a board's netlist, and the share of them that lockstep finds.

    python tools/netlist_faults.py --board ulx3s --netlist synth

Plants faults (``boards/netlists/faults.py``) and runs random programs, each copy with a fault and a
program of its own, until every fault is found or the rounds are over. A fault is found when an
outcome differs from the simulator's as ``vdla lockstep --netlist`` compares them. One that no
program reaches, like a bit of a table that nothing reads, changes nothing: shares are of the first
faults of each kind that are reached.
"""

from __future__ import annotations

import argparse
import sys
from itertools import cycle, islice
from pathlib import Path
from random import Random

from vdla.analysis.case import Case, Ending, Outcome
from vdla.analysis.cases import random_case
from vdla.analysis.directed import directed
from vdla.analysis.machines import simulate
from vdla.analysis.netlists import Netlists, difference
from vdla.boards import find_board, memory_of
from vdla.boards.flows import find_netlist, folder_of
from vdla.boards.flows.nextpnr import MAPPED, PLACED
from vdla.boards.netlists.bench import read_circuit
from vdla.boards.netlists.circuit import simplified
from vdla.boards.netlists.copies import COPIES
from vdla.boards.netlists.faults import KINDS, PLACE, SEEN, TABLE, plant
from vdla.isa.config import Config, load_config
from vdla.isa.memory import Memory

POOL = 16  # programs that one is chosen from
MOST_CYCLES = 8_000  # of a program that is chosen
SPARE = {TABLE: 3}  # times as many are planted of a kind of which few are reached

Run = tuple[Case, Outcome]


def main() -> None:
    """Prints the table, and the faults that were not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="ulx3s")
    parser.add_argument("--config")
    parser.add_argument("--netlist", choices=("synth", "routed"), default="synth")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--each", type=int, default=20, help="faults of each kind")
    parser.add_argument("--rounds", type=int, default=40, help="of 64 programs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    board = find_board(options.board)
    config = load_config(options.config or board.config)
    name = {"synth": MAPPED, "routed": PLACED}[options.netlist]
    path = find_netlist(board, config, name, folder_of(board, config, options.out), _say)
    circuit = simplified(read_circuit(path, board, config))
    kinds = [kind for kind in KINDS for _ in range(options.each * SPARE.get(kind, 1))]
    faults = plant(circuit, kinds, options.seed)
    runs = chosen_runs(config, memory_of(board, config), options.seed)
    machines = Netlists(circuit, board.name, config)
    detected, reached = search(machines, len(faults), runs, options.rounds)
    print("kind | planted | reached | of the first reached | found | share")
    for kind in KINDS:
        copies = [number for number, fault in enumerate(faults) if fault.kind == kind]
        seen = [number for number in copies if number in reached]
        first = seen[: options.each]
        here = [number for number in first if number in detected]
        share = len(here) / max(len(first), 1)
        print(f"{kind} | {len(copies)} | {len(seen)} | {len(first)} | {len(here)} | {share:.0%}")
        for number in sorted(set(first) - detected):
            print(f"  not found: {faults[number].where}")


def chosen_runs(config: Config, memory: Memory, seed: int) -> list[Run]:
    """Programs with their outcomes, in turn: a sound random one, those of most instructions first;
    one of the directed ``numbers``, whose results depend on every bit of a product; and one that
    ends in a fault, or whatever its number gives."""
    sound, others = [], []
    for number in range(seed, seed + POOL * COPIES):
        run = _simulated(random_case(config, number).without_errors(), memory)
        if run[1].cycles <= MOST_CYCLES:
            whole = run[1].ending == Ending.FINISH and not run[0].mistake
            (sound if whole else others).append(run)
    sound.sort(key=lambda run: len(run[0].stream.instructions), reverse=True)
    make = directed(config)["numbers"]
    cases = (Case.of(make(config, Random(seed + number))) for number in range(len(others)))
    numbers = [_simulated(case, memory) for case in cases]
    return [run for three in zip(sound, numbers, others, strict=False) for run in three]


def _simulated(case: Case, memory: Memory) -> Run:
    return case, simulate(case, memory)


def search(
    machines: Netlists, faults: int, runs: list[Run], rounds: int
) -> tuple[set[int], set[int]]:
    """Faults that are found, and those that are reached.

    In a round the copies go to faults that aren't found yet, first to those that are reached, and a
    fault has other programs in every round.
    """
    detected: set[int] = set()
    reached: set[int] = set()
    outputs = machines.bench.circuit.outputs
    programs = cycle(runs)
    for number in range(rounds):
        left = [fault for fault in range(faults) if fault not in detected]
        if number:
            left = [fault for fault in left if fault in reached]
        if not left:
            break
        copies = list(islice(cycle(left), number * 7, number * 7 + COPIES))
        some = list(islice(programs, COPIES))
        for fault in range(faults):
            here = sum(1 << copy for copy, each in enumerate(copies) if each == fault)
            machines.bench.fix(PLACE.format(fault), here)
        outcomes = machines.run_netlist(*map(list, zip(*some, strict=True)))
        reached |= {f for f in range(faults) if machines.bench.copies.get(outputs[SEEN.format(f)])}
        for fault, (case, simulated), outcome in zip(copies, some, outcomes, strict=True):
            if difference(case, simulated, outcome):
                detected.add(fault)
        what = f"round: {len(detected)} found, {len(reached)} reached of {faults}"
        _say(what, number + 1, rounds)
    return detected, reached | detected


def _say(what: str, done: int, total: int) -> None:
    print(f"{done}/{total} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
