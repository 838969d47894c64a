"""Event replay of a plan -> prediction. It knows nothing of the program's formulas, so that it can judge them."""

from planner.simulate.predict import predict
from planner.simulate.replay import Replay, lower_bound, replay

__all__ = ["Replay", "lower_bound", "predict", "replay"]
