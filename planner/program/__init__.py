"""The integer program: variables, constraints, bounds, search. The only user of OR-Tools."""

from planner.program.decode import decode, decode_unlike
from planner.program.search import Found, Result, Search
from planner.program.unlike import UnlikeFound, UnlikeResult, UnlikeSearch

__all__ = ["Found", "Result", "Search", "UnlikeFound", "UnlikeResult", "UnlikeSearch", "decode", "decode_unlike"]
