"""Schedule primitives: each rewrites the loop IR, checks what it needs, and is recorded.

`te.create_schedule(C)` gives a `Schedule`; `s[C].split(...)` and the like transform `s.mod`.
"""

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.schedule import Schedule, Stage
from vdla.compiler.schedule.trace import Step, Trace, from_json, to_json

__all__ = ["Schedule", "ScheduleError", "Stage", "Step", "Trace", "from_json", "to_json"]
