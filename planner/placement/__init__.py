"""Which device of which node each rank of a plan runs on, and how the ranks are numbered."""

from planner.placement.place import Placement, place
from planner.placement.ranks import ORDERS, Rank, Slots, slots

__all__ = ["ORDERS", "Placement", "Rank", "Slots", "place", "slots"]
