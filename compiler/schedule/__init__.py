"""Schedule primitives: each rewrites the loop IR, checks what it needs, and is recorded.

``create_schedule(C)`` gives a ``Schedule``; ``s[C].split(...)`` and the like transform ``s.mod``.
Names and argument order are TVM's (v0.6). Of its primitives ``env_threads`` alone is left out: it
launches a scan in threads that the environment starts, which no target here has.
``storage_align`` and ``prefetch`` speak to the CPU; on chip, entries lie densely and
``double_buffer`` loads ahead.
"""

from vdla.compiler.schedule.errors import ScheduleError
from vdla.compiler.schedule.schedule import Schedule, checked_at_the_end, create_schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.schedule.trace import Step, Trace, from_json, to_json

__all__ = [
    "Schedule",
    "ScheduleError",
    "Stage",
    "Step",
    "Trace",
    "checked_at_the_end",
    "create_schedule",
    "from_json",
    "to_json",
]
