"""Commands about the hardware: its Verilog, and whether it equals the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vdla import api
from vdla.commands.output import console, log, print_json, progress, table, write_text
from vdla.commands.usage import UsageError, sizes
from vdla.compiler.build import Options
from vdla.compiler.frontend.shapes import Shapes
from vdla.isa.asm import format_instruction
from vdla.isa.config import Config, load_config
from vdla.lockstep import Difference, LockstepDevice, Machines, Outcome, Tally
from vdla.lockstep import lockstep as run_lockstep
from vdla.runtime.executor import Executor
from vdla.runtime.rtl import build

AROUND = 6  # instructions shown on either side of a difference


def verilog(config: str, output: Path | None, settings: Sequence[str]) -> None:
    """Prints or writes the core's Verilog."""
    write_text(output, build.verilog(load_config(config, settings)))


def lockstep(
    config: str,
    programs: int,
    seed: int,
    model: str | None,
    settings: Sequence[str],
    shapes: Sequence[str],
    json: bool,
) -> None:
    """Prints the tally; exit code 1 when the machines differ anywhere."""
    chosen, given = load_config(config, settings), sizes(shapes)
    if given and model is None:
        raise UsageError("--shape: expected --model MODEL, found none")
    machines = Machines(chosen, log.print)
    tally = Tally()
    if model is None:
        with progress() as update:
            for tally in run_lockstep(machines, programs, seed):
                update(f"{chosen.name}: programs", tally.programs, programs)
    else:
        tally = _run_model(machines, model, given)
    if json:
        print_json(_summary(chosen, tally))
    else:
        _print(chosen, tally)
    for difference in tally.differences:
        _explain(difference)
    if tally.mismatches:
        raise SystemExit(1)


def _run_model(machines: Machines, model: str, shapes: Shapes) -> Tally:
    with progress() as update:
        module = api.compile(model, machines.config, (), Options(progress=update), shapes)
    device = LockstepDevice(machines)
    Executor(module, device).run(api.random_inputs(module))
    return device.tally


def _summary(config: Config, tally: Tally) -> dict[str, object]:
    return {
        "config": config.name,
        "programs": tally.programs,
        "instructions": tally.instructions,
        "mismatches": tally.mismatches,
        "max_cycle_error": tally.max_cycle_error,
        "rtl_cycles_per_second": tally.cycles / max(tally.rtl_seconds, 1e-9),
        "sim_cycles_per_second": tally.cycles / max(tally.sim_seconds, 1e-9),
    }


def _print(config: Config, tally: Tally) -> None:
    summary = _summary(config, tally)
    rows = [
        (name.replace("_", " "), f"{value:,.0f}" if isinstance(value, float) else str(value))
        for name, value in summary.items()
    ]
    table("simulator and RTL in lockstep", ("", "value"), rows)
    verdict = "equal in every cycle and byte" if not tally.mismatches else "they differ"
    console.print(f"{config.name}: {verdict}")


def _explain(difference: Difference) -> None:
    """Both timelines around the first thing that differs."""
    case, simulated, rtl = difference.case, difference.simulated, difference.rtl
    memory = difference.memory.name
    log.print(f"first difference: {difference.where}, with memory {memory}; shrunk to")
    instructions = case.stream.instructions
    centre = difference.instruction if difference.instruction is not None else len(instructions)
    rows = []
    for i in range(max(centre - AROUND, 0), min(centre + AROUND + 1, len(instructions))):
        times = [(simulated.begun[i], rtl.begun[i]), (simulated.ended[i], rtl.ended[i])]
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


def _cell(simulated: int, rtl: int) -> str:
    return str(simulated) if simulated == rtl else f"{simulated}/{rtl}"


def _end(outcome: Outcome) -> str:
    if outcome.fault:
        return f"{outcome.cycles} (fault {outcome.fault.name} at {outcome.fault_at:#x})"
    return "deadlock" if outcome.cycles < 0 else str(outcome.cycles)
