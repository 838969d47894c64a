"""A plan as one page for a browser: a single file without scripts, styles or pictures from elsewhere."""

from planner.report.page.subject import Subject
from planner.report.page.whole import page

__all__ = ["Subject", "page"]
