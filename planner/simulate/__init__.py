"""Event replay of a plan -> prediction. It knows nothing of the program's formulas, so that it can judge them."""

from planner.simulate.board import StageTimes
from planner.simulate.events import Event
from planner.simulate.orders import replay_orders
from planner.simulate.predict import predict
from planner.simulate.replay import Replay, lower_bound, replay
from planner.simulate.timeline import Timeline, timeline

__all__ = ["Event", "Replay", "StageTimes", "Timeline", "lower_bound", "predict", "replay", "replay_orders", "timeline"]
