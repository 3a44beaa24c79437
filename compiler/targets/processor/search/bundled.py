"""The tuned schedules for processors that ship with the package.

``benchmarks/processor_records.py`` writes them: schedules that were faster than the default ones in
a search and again in a measurement of their own, on one thread and on two.
"""

from pathlib import Path

from vdla.compiler.search.records import load
from vdla.compiler.targets.search.function_records import FunctionRecord, FunctionRecords

BUNDLED_PATH = Path(__file__).parent / "data" / "best.jsonl"
BUNDLED = FunctionRecords(lambda: load(BUNDLED_PATH, FunctionRecord))
