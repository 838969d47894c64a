"""Launch configurations of training frameworks, one kind a package: read, held to the framework's rules, understood."""

from planner.configurations.base import Complaint, Form, Rule, Setup
from planner.configurations.forms.accelerate import ACCELERATE
from planner.configurations.forms.bridge import BRIDGE
from planner.configurations.forms.deepspeed import DEEPSPEED
from planner.configurations.forms.flagscale import FLAGSCALE
from planner.configurations.forms.megatron import MEGATRON
from planner.configurations.forms.torchtitan import TORCHTITAN

FORMS: tuple[Form, ...] = (MEGATRON, BRIDGE, FLAGSCALE, TORCHTITAN, DEEPSPEED, ACCELERATE)

__all__ = ["FORMS", "Complaint", "Form", "Rule", "Setup"]
