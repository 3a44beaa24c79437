"""Commands about the hardware: its Verilog, and whether it equals the simulator."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vdla import api
from vdla.analysis.case import Ending, Outcome
from vdla.analysis.coverage import Coverage
from vdla.analysis.lockstep import (
    RTL,
    LockstepDevice,
    Tally,
    UnexpectedEnding,
    lockstep_in_parallel,
)
from vdla.analysis.lockstep import lockstep as run_lockstep
from vdla.analysis.machines import Difference, Machines
from vdla.analysis.netlists import Netlists, lockstep_netlist
from vdla.api.modules import random_inputs
from vdla.boards import find_board
from vdla.boards.flows import find_netlist, folder_of
from vdla.boards.flows.nextpnr import MAPPED, PLACED
from vdla.boards.netlists.bench import read_circuit
from vdla.commands.output import console, log, print_json, progress, table, write_text
from vdla.compiler.frontend.shapes import Shapes
from vdla.farm.processes import ProcessPool
from vdla.farm.work import JobPool
from vdla.isa.asm import format_instruction
from vdla.isa.config import Config, load_config
from vdla.names.configs import resolve_on
from vdla.names.farms import farm_pool
from vdla.options import Lockstep
from vdla.options.spelling import require
from vdla.runtime.executor import Executor
from vdla.runtime.rtl import build

AROUND = 6  # instructions shown on either side of a difference


def verilog(config: str, output: Path | None, settings: Sequence[str]) -> None:
    """Prints or writes the core's Verilog."""
    write_text(output, build.verilog(load_config(config, settings)), config)


def lockstep(options: Lockstep, json: bool) -> None:
    """Prints the tally; exit code 1 when the machines differ anywhere, or when a program ends
    otherwise than it was made to."""
    require(options)
    chosen = resolve_on(options.board, options.config, options.settings)
    machines = _netlists(chosen, options) if options.netlist else Machines(chosen, options.board)
    coverage = Coverage(chosen) if options.coverage else None
    tally, begun = Tally(), time.monotonic()
    if options.model is None:
        with progress() as update:
            for tally in _run_programs(machines, options, coverage):
                update(f"{chosen.name}: programs", tally.programs, options.programs)
    else:
        assert isinstance(machines, Machines)
        tally = _run_model(machines, options.model, options.shapes)
    rate = tally.programs / max(time.monotonic() - begun, 1e-9)
    if json:
        print_json(_summary(machines, options, tally) | (_reached(coverage) if coverage else {}))
    else:
        _print(machines, options, tally, rate)
        if coverage:
            _print_coverage(coverage)
    for difference in tally.differences:
        _explain(difference)
    for program in tally.unexpected:
        log.print(_ending_text(program))
    if tally.failed:
        raise SystemExit(1)


def _netlists(config: Config, options: Lockstep) -> Netlists:
    """Boards of a netlist, which is made where ``vdla synth`` hasn't left it."""
    board = find_board(options.board or "")
    name = {"synth": MAPPED, "routed": PLACED}[options.netlist or ""]
    with progress() as update:
        path = find_netlist(board, config, name, folder_of(board, config, options.out), update)
    return Netlists(read_circuit(path, board, config), board.name, config)


def _run_programs(
    machines: Machines | Netlists, options: Lockstep, coverage: Coverage | None
) -> Iterator[Tally]:
    if isinstance(machines, Netlists):
        yield from lockstep_netlist(machines, options.programs, options.seed, coverage=coverage)
        return
    how: dict[str, Any] = {"memories": options.memories, "coverage": coverage}
    if options.workers == 1 and options.farm is None:
        yield from run_lockstep(machines, options.programs, options.seed, **how)
        return
    with _pool(options) as pool:
        yield from lockstep_in_parallel(
            machines.config, options.programs, options.seed, pool=pool, board=options.board, **how
        )


def _pool(options: Lockstep) -> JobPool:
    """The processes that run programs."""
    if options.farm is not None:
        return farm_pool(options.farm, options.folder, options.without_encryption, log.print)
    resources = [{RTL: ""}] * options.workers
    return ProcessPool(resources=resources, preload=(lockstep_in_parallel.__module__,))


def _reached(coverage: Coverage) -> dict[str, object]:
    return {
        "coverage": {
            "goals": len(coverage.goals),
            "reached": len(coverage.goals) - len(coverage.missing),
            "groups": {
                name: {"goals": goals, "reached": reached}
                for name, (reached, goals) in coverage.by_group().items()
            },
            "missing": coverage.missing,
        }
    }


def _print_coverage(coverage: Coverage) -> None:
    rows = [
        (name, f"{reached} of {goals}", f"{100 * reached / goals:.1f} %")
        for name, (reached, goals) in coverage.by_group().items()
    ]
    whole = len(coverage.goals)
    reached = whole - len(coverage.missing)
    rows.append(("all", f"{reached} of {whole}", f"{100 * reached / whole:.1f} %"))
    table("goals reached", ("group", "goals", "share"), rows)
    for goal in coverage.missing:
        console.print(f"not reached: {goal}", highlight=False, soft_wrap=True)


def _run_model(machines: Machines, model: str, shapes: Shapes | None) -> Tally:
    with progress() as update:
        module = api.compile(model, machines.config, shapes=shapes, progress=update)
    device = LockstepDevice(machines)
    Executor(module, device).run(random_inputs(module))
    return device.tally


def _summary(machines: Machines | Netlists, options: Lockstep, tally: Tally) -> dict[str, object]:
    return {
        "config": machines.config.name,
        **({"board": machines.board} if machines.board else {}),
        **({"netlist": options.netlist} if options.netlist else {}),
        "programs": tally.programs,
        "ended": tally.ended,
        "faulted": tally.faulted,
        "deadlocked": tally.deadlocked,
        "unexpected_endings": tally.unexpected_endings,
        "instructions": tally.instructions,
        "mismatches": tally.mismatches,
        "max_cycle_error": tally.max_cycle_error,
        "rtl_cycles_per_second": tally.cycles / max(tally.rtl_seconds, 1e-9),
        "sim_cycles_per_second": tally.cycles / max(tally.sim_seconds, 1e-9),
    }


def _print(machines: Machines | Netlists, options: Lockstep, tally: Tally, rate: float) -> None:
    """The tally, how it was made, and how fast."""
    memories = 1 if machines.memory else options.memories
    made = {"seed": options.seed, "memories": memories, "programs_per_second": rate}
    summary = _summary(machines, options, tally) | made
    rows = [
        (name.replace("_", " "), f"{value:,.0f}" if isinstance(value, float) else str(value))
        for name, value in summary.items()
    ]
    what = f"netlist ({options.netlist})" if options.netlist else "RTL"
    table(f"simulator and {what} in lockstep", ("", "value"), rows)
    verdict = "equal in every cycle and byte" if not tally.mismatches else "they differ"
    if tally.unexpected_endings:
        verdict += f"; programs that ended otherwise than made to: {tally.unexpected_endings}"
    on_board = f" on {machines.board}" if machines.board else ""
    console.print(f"{machines.config.name}{on_board}: {verdict}")


def _explain(difference: Difference) -> None:
    """Both timelines around the first thing that differs."""
    case, simulated, rtl = difference.case, difference.simulated, difference.rtl
    memory = difference.memory.name
    log.print(f"first difference: {difference.where}, with memory {memory}; shrunk to")
    if rtl.overdue:
        log.print(rtl.overdue)
    instructions = case.stream.instructions
    centre = difference.instruction if difference.instruction is not None else len(instructions)
    rows = []
    for i in range(max(centre - AROUND, 0), min(centre + AROUND + 1, len(instructions))):
        times = [(simulated.start[i], rtl.start[i]), (simulated.finish[i], rtl.finish[i])]
        mark = "←" if any(a != b for a, b in times) else ""
        cells = [_cell(a, b) for a, b in times]
        rows.append((str(i), *cells, mark, format_instruction(instructions[i])))
    log.print("number | start sim/rtl | finish sim/rtl | | instruction")
    for row in rows:
        log.print(" | ".join(row))
    log.print(f"cycles: simulator {_end(simulated)}, RTL {_end(rtl)}")
    counters = [
        f"{name} {count}/{rtl.causes[name]}"
        for name, count in simulated.causes.items()
        if count != rtl.causes[name]
    ]
    if counters:
        log.print(f"counters that differ, simulator/RTL: {', '.join(counters)}")
    for name, content in simulated.memories.items():
        apart = np.flatnonzero((content != rtl.memories[name]).reshape(-1))
        if apart.size:
            log.print(f"{name}: {apart.size} bytes differ, the first at {int(apart[0]):#x}")


WORDS = {Ending.FINISH: "its FINISH", Ending.FAULT: "a fault", Ending.DEADLOCK: "a deadlock"}


def _ending_text(program: UnexpectedEnding) -> str:
    """Which program ended otherwise than it was made to, and how."""
    which = "the model's program" if program.number is None else f"program --seed {program.number}"
    goal = f" ({program.goal})" if program.goal else ""
    return (
        f"{which}{goal}, with memory {program.memory.name}: expected it to end with "
        f"{WORDS[program.purpose]}, found {WORDS[program.ending]}"
    )


def _cell(simulated: int, rtl: int) -> str:
    return str(simulated) if simulated == rtl else f"{simulated}/{rtl}"


def _end(outcome: Outcome) -> str:
    if outcome.fault:
        return f"{outcome.cycles} (fault {outcome.fault.name} at {outcome.fault_at:#x})"
    return "deadlock" if outcome.cycles < 0 else str(outcome.cycles)
