"""Shell scripts, read without running anything."""

from planner.configurations.shell.script import Command, Script, follow
from planner.configurations.shell.text import MAYBE, UNKNOWN, Text

__all__ = ["MAYBE", "UNKNOWN", "Command", "Script", "Text", "follow"]
