"""DeepSpeed's JSON configuration."""

from planner.configurations.base import Form
from planner.configurations.forms.deepspeed import batch, degrees, offload, precision, reading, sharding
from planner.configurations.forms.deepspeed.read import NAME, read
from planner.configurations.forms.deepspeed.setup import setup
from planner.configurations.forms.deepspeed.text import recognises

DEEPSPEED = Form(
    name=NAME,
    summary="DeepSpeed configuration (JSON), such as ds_config.json",
    framework="deepspeed",
    recognises=recognises,
    read=read,
    rules=(
        *reading.RULES,
        *degrees.RULES,
        *batch.RULES,
        *offload.RULES,
        *sharding.RULES,
        *precision.RULES,
    ),
    setup=setup,
    fills_cluster=lambda _: True,
)
