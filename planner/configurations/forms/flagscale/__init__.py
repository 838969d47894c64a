"""FlagScale's Hydra YAML: experiment, system, model and data; meshes of unlike devices and degrees."""

from planner.configurations.base import Form
from planner.configurations.forms.flagscale.batch import RULES as BATCH
from planner.configurations.forms.flagscale.layers import RULES as LAYERS
from planner.configurations.forms.flagscale.meaning import setup
from planner.configurations.forms.flagscale.meshes import RULES as MESHES
from planner.configurations.forms.flagscale.plain import RULES as PLAIN
from planner.configurations.forms.flagscale.reading import FORM, read, recognises
from planner.configurations.forms.flagscale.recompute import RULES as RECOMPUTE
from planner.configurations.forms.flagscale.running import RULES as RUNNING
from planner.configurations.forms.flagscale.stories import READING

FLAGSCALE = Form(
    name=FORM,
    summary="FlagScale's YAML with hetero_process_meshes, or the train part of one",
    framework="flagscale",
    recognises=recognises,
    read=read,
    rules=(*READING, *MESHES, *LAYERS, *BATCH, *RECOMPUTE, *RUNNING, *PLAIN),
    setup=setup,
)

__all__ = ["FLAGSCALE"]
