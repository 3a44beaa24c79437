"""Faults planted in a board's netlist, and the share of them that lockstep finds.

    python tools/netlist_faults.py --board ulx3s --netlist synth

Plants 64 faults of each kind (``boards/netlists/faults.py``), a fault in each lane, and runs random
programs until each is found or the programs are over. A fault is found when an outcome differs from
the simulator's as ``vdla lockstep --netlist`` compares them. One that is never reached, like a bit
of a table that nothing reads, changes nothing: the share is of those that are reached.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from vdla.analysis.case import Case, Ending, Outcome
from vdla.analysis.cases import random_case
from vdla.analysis.coverage import Coverage
from vdla.analysis.machines import simulate
from vdla.analysis.netlists import Netlists, difference
from vdla.boards import find_board, memory_of
from vdla.boards.flows import find_netlist, folder_of
from vdla.boards.flows.nextpnr import MAPPED, PLACED
from vdla.boards.netlists.bench import read_circuit
from vdla.boards.netlists.faults import KINDS, PLACE, SEEN, Fault, plant
from vdla.boards.netlists.lanes import LANES
from vdla.isa.config import Config, load_config
from vdla.isa.memory import Memory

POOL = 16  # programs that one is chosen from
MOST_CYCLES = 12_000  # of a program that is chosen


def main() -> None:
    """Prints the table, and the faults that were not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--board", default="ulx3s")
    parser.add_argument("--config")
    parser.add_argument("--netlist", choices=("synth", "routed"), default="synth")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--each", type=int, default=LANES, help="faults of each kind")
    parser.add_argument("--programs", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    board = find_board(options.board)
    config = load_config(options.config or board.config)
    name = {"synth": MAPPED, "routed": PLACED}[options.netlist]
    path = find_netlist(board, config, name, folder_of(board, config, options.out), _say)
    memory = memory_of(board, config)
    cases = rich_cases(config, memory, options.programs, options.seed)
    print("kind | planted | reached | found | of those reached")
    for kind in options.kinds.split(","):
        circuit = read_circuit(path, board, config)
        faults = plant(circuit, [kind] * options.each, options.seed)
        machines = Netlists(circuit, board.name, config)
        found, reached = _run(machines, faults, cases)
        share = len(found) / max(len(reached | found), 1)
        print(f"{kind} | {len(faults)} | {len(reached | found)} | {len(found)} | {share:.0%}")
        for lane in sorted(reached - found):
            print(f"reached and not found: {kind}: {faults[lane].where}", flush=True)


def rich_cases(
    config: Config, memory: Memory, programs: int, seed: int
) -> list[tuple[int, Case, Outcome]]:
    """Sound programs that reach most goals of coverage together, of POOL times as many; with their
    numbers and the simulator's outcomes. Each adds the most goals to those before it."""
    pool, coverage = [], Coverage(config)
    for number in range(seed, seed + POOL * programs):
        case = random_case(config, number)
        if case.mistake or case.purpose != Ending.FINISH:
            continue
        simulated = simulate(case, memory)
        coverage.reached = set()
        coverage.add(case, simulated)
        if simulated.cycles <= MOST_CYCLES:
            pool.append((coverage.reached, number, case, simulated))
    reached: set[str] = set()
    chosen = []
    while pool and len(chosen) < programs:
        best = max(pool, key=lambda each: (len(each[0] - reached), len(each[0])))
        pool.remove(best)
        reached |= best[0]
        chosen.append(best[1:])
    return chosen


def _run(
    machines: Netlists, faults: list[Fault], cases: list[tuple[int, Case, Outcome]]
) -> tuple[set[int], set[int]]:
    """Lanes whose fault was found, and those whose fault was reached."""
    found: set[int] = set()
    reached: set[int] = set()
    for lane in range(len(faults)):
        machines.bench.fix(PLACE.format(lane), 1 << lane)
    outputs = machines.bench.circuit.outputs
    for number, case, simulated in cases:
        some = [case] * len(faults)
        outcomes = machines.run_netlist(some, [simulated] * len(faults))
        for lane, outcome in enumerate(outcomes):
            if machines.bench.lanes.get(outputs[SEEN.format(lane)]) >> lane & 1:
                reached.add(lane)
            if difference(case, simulated, outcome):
                found.add(lane)
        print(f"program {number}: {len(found)} found, {len(reached)} reached of {len(faults)}",
              file=sys.stderr, flush=True)  # fmt: skip
        if len(found) == len(faults):
            break
    return found, reached


def _say(what: str, done: int, total: int) -> None:
    print(f"{done}/{total} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
