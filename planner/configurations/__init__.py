"""Launch configurations of training frameworks, one kind a package: read, held to the framework's rules, understood."""

from planner.configurations.base import Complaint, Form, Rule, Setup
from planner.configurations.forms.accelerate import FORM as ACCELERATE
from planner.configurations.forms.deepspeed import FORM as DEEPSPEED

FORMS: tuple[Form, ...] = (ACCELERATE, DEEPSPEED)

__all__ = ["FORMS", "Complaint", "Form", "Rule", "Setup"]
