"""What Megatron-LM refuses or silently does otherwise, one table for each hundred of codes."""

from planner.configurations.base import Rule
from planner.configurations.forms.megatron.rules.batch import BATCH
from planner.configurations.forms.megatron.rules.degrees import DEGREES
from planner.configurations.forms.megatron.rules.dispatch import DISPATCH
from planner.configurations.forms.megatron.rules.environment import ENVIRONMENT
from planner.configurations.forms.megatron.rules.experts import EXPERTS
from planner.configurations.forms.megatron.rules.layers import LAYERS
from planner.configurations.forms.megatron.rules.layout import LAYOUT_RULES
from planner.configurations.forms.megatron.rules.optimizer import OPTIMIZER_RULES
from planner.configurations.forms.megatron.rules.precision import PRECISION
from planner.configurations.forms.megatron.rules.reading import READING
from planner.configurations.forms.megatron.rules.recompute import RECOMPUTE
from planner.configurations.forms.megatron.rules.schedule import SCHEDULE
from planner.configurations.forms.megatron.rules.sequence import SEQUENCE
from planner.configurations.forms.megatron.rules.shapes import SHAPES
from planner.configurations.forms.megatron.rules.sharding import SHARDING

RULES: tuple[Rule, ...] = (
    *READING,
    *DEGREES,
    *LAYERS,
    *LAYOUT_RULES,
    *SCHEDULE,
    *BATCH,
    *SHAPES,
    *SEQUENCE,
    *EXPERTS,
    *DISPATCH,
    *SHARDING,
    *OPTIMIZER_RULES,
    *RECOMPUTE,
    *ENVIRONMENT,
    *PRECISION,
)

__all__ = ["RULES"]
