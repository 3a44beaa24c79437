"""The page that ``vdla compare --report`` writes: where the cycles went, and what hiding bought."""

from vdla.analysis.report.page import report_page

__all__ = ["report_page"]
