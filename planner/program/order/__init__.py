"""The best order of the passes of a small pipeline, whose stages and placement are given."""

from planner.program.order.bound import least_step
from planner.program.order.shop import Shop, fits, timed
from planner.program.order.solve import Ordered, find_order

__all__ = ["Ordered", "Shop", "find_order", "fits", "least_step", "timed"]
