"""Pages of what was measured: a comparison of schedules, and where the cycles of a run went."""

from vdla.analysis.report.page import report_page
from vdla.analysis.report.run_page import run_page

__all__ = ["report_page", "run_page"]
