"""What Megatron-LM refuses or silently does otherwise, one table for each hundred of codes."""

from planner.configurations.base import Rule
from planner.configurations.forms.megatron.rules.batch import BATCH
from planner.configurations.forms.megatron.rules.degrees import DEGREES
from planner.configurations.forms.megatron.rules.environment import ENVIRONMENT
from planner.configurations.forms.megatron.rules.experts import EXPERTS
from planner.configurations.forms.megatron.rules.layers import LAYERS
from planner.configurations.forms.megatron.rules.reading import READING
from planner.configurations.forms.megatron.rules.recompute import RECOMPUTE
from planner.configurations.forms.megatron.rules.schedule import SCHEDULE
from planner.configurations.forms.megatron.rules.shapes import SHAPES
from planner.configurations.forms.megatron.rules.sharding import SHARDING

RULES: tuple[Rule, ...] = (
    *READING,
    *DEGREES,
    *LAYERS,
    *SCHEDULE,
    *BATCH,
    *SHAPES,
    *EXPERTS,
    *SHARDING,
    *RECOMPUTE,
    *ENVIRONMENT,
)

__all__ = ["RULES"]
