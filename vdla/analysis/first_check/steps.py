"""Steps of a board's first check, one after another, and the report of all of them."""

from __future__ import annotations

import datetime
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from vdla.analysis.first_check.board_network import check_network
from vdla.analysis.first_check.board_programs import check_programs
from vdla.analysis.first_check.core_identity import check_identity
from vdla.analysis.first_check.memory_patterns import check_memory
from vdla.analysis.first_check.session import Figures, Session, StepFailure
from vdla.isa.identity import Identity
from vdla.support.errors import CheckError, UserError

STEPS: Mapping[str, Callable[[Session], Figures]] = {
    "identity": check_identity,
    "memory": check_memory,
    "programs": check_programs,
    "network": check_network,
}
PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"


@dataclass(frozen=True)
class StepVerdict:
    """Verdict of one step: PASSED, FAILED with a ``text``, or NOT_RUN; what it took and found."""

    name: str
    verdict: str
    seconds: float = 0.0
    sent_again: int = 0
    text: str = ""
    figures: Figures = field(default_factory=dict)


def run_steps(session: Session, tell: Callable[[StepVerdict], None]) -> list[StepVerdict]:
    """Runs the steps up to the first that fails; ``tell`` gets each verdict as it comes."""
    verdicts: list[StepVerdict] = []
    for name in STEPS:
        failed = any(each.verdict == FAILED for each in verdicts)
        verdict = StepVerdict(name, NOT_RUN) if failed else _verdict(session, name)
        verdicts.append(verdict)
        tell(verdict)
    return verdicts


def _verdict(session: Session, name: str) -> StepVerdict:
    """A step's verdict: what it raises is what it found."""
    begun, sent_before = time.monotonic(), session.sent_again
    verdict, text, figures = PASSED, "", dict[str, object]()
    try:
        figures |= STEPS[name](session)
    except StepFailure as error:
        verdict, text = FAILED, str(error)
        figures |= error.figures
    except (CheckError, UserError, OSError) as error:  # a line that goes away is an OSError, too
        verdict, text = FAILED, str(error)
    seconds, again = time.monotonic() - begun, session.sent_again - sent_before
    return StepVerdict(name, verdict, round(seconds, 3), again, text, figures)


def report_of(session: Session, reached: str, verdicts: list[StepVerdict]) -> dict[str, object]:
    """The report, as ``vdla schema board-check`` describes it.

    ``reached`` is the port or how else the board is reached. Of a path only its end is in there,
    and no name of a user or a machine.
    """
    own, shown = Identity.of(session.config), Path(reached).name
    home = str(Path.home())
    rows = [
        {**vars(each), "text": each.text.replace(reached, shown).replace(home, "~")}
        for each in verdicts
    ]
    return {
        "vdla": version("vdla"),
        "isa": own.isa,
        "config": session.config.name,
        "config_hash": own.config,
        "board": session.board.name,
        "reached_by": shown,
        "host": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        },
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "passed": all(each.verdict == PASSED for each in verdicts),
        "exact_cycles": session.exact,
        "sent_again": session.sent_again,
        "seconds": round(sum(each.seconds for each in verdicts), 3),
        "steps": rows,
    }
