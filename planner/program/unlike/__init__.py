"""Plans whose replicas are of several kinds: which kind each group has, how many of it, and their shares."""

from planner.program.unlike.search import UnlikeFound, UnlikeResult, UnlikeSearch

__all__ = ["UnlikeFound", "UnlikeResult", "UnlikeSearch"]
