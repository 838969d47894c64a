"""Priced candidates: the only thing that both physics and the integer program know."""

from planner.candidates.choices import Choice
from planner.candidates.families import Family, Restriction
from planner.candidates.prices import BASE_POLICIES, NEVER, Holding, Positions, Prices
from planner.candidates.space import Slots, Space, find_space
from planner.candidates.table import Table, holdings

__all__ = [
    "BASE_POLICIES",
    "NEVER",
    "Choice",
    "Family",
    "Holding",
    "Positions",
    "Prices",
    "Restriction",
    "Slots",
    "Space",
    "Table",
    "find_space",
    "holdings",
]
