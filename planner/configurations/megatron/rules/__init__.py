"""What Megatron-LM refuses or silently does otherwise, by its inner names of settings, a table or two a hundred."""

from planner.configurations.base import Rule
from planner.configurations.megatron.rules.batch import BATCH
from planner.configurations.megatron.rules.context import CONTEXT
from planner.configurations.megatron.rules.degrees import DEGREES
from planner.configurations.megatron.rules.dispatch import DISPATCH
from planner.configurations.megatron.rules.environment import ENVIRONMENT
from planner.configurations.megatron.rules.experts import EXPERTS
from planner.configurations.megatron.rules.kernels import KERNELS
from planner.configurations.megatron.rules.layers import LAYERS
from planner.configurations.megatron.rules.layout import LAYOUT_RULES
from planner.configurations.megatron.rules.optimizer import OPTIMIZER_RULES
from planner.configurations.megatron.rules.precision import PRECISION
from planner.configurations.megatron.rules.recompute import RECOMPUTE
from planner.configurations.megatron.rules.schedule import SCHEDULE
from planner.configurations.megatron.rules.sequence import SEQUENCE
from planner.configurations.megatron.rules.shapes import SHAPES
from planner.configurations.megatron.rules.sharding import SHARDING

CORE_RULES: tuple[Rule, ...] = (
    *DEGREES,
    *CONTEXT,
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
    *KERNELS,
)

__all__ = ["CORE_RULES"]
