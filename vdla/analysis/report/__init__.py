"""Pages of what was measured: schedules, where the cycles of a run went, a search for designs."""

from vdla.analysis.report.designs_page import designs_page
from vdla.analysis.report.noise_page import noise_page
from vdla.analysis.report.page import report_page
from vdla.analysis.report.run_page import run_page
from vdla.analysis.report.side_by_side_page import side_by_side_page

__all__ = ["designs_page", "noise_page", "report_page", "run_page", "side_by_side_page"]
