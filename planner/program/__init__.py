"""The integer program: variables, constraints, bounds, search. The only user of OR-Tools."""

from planner.program.decode import decode
from planner.program.search import Found, Result, Search

__all__ = ["Found", "Result", "Search", "decode"]
