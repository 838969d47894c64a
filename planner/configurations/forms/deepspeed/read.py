"""DeepSpeed's JSON as a configuration: every key with its place."""

from __future__ import annotations

from planner.configurations.forms.deepspeed.keys import TABLES
from planner.configurations.forms.deepspeed.text import plain
from planner.configurations.nested import flat, text_findings
from planner.domain.configuration import NOTE, Configuration, Finding, Spot
from planner.errors import SpecError
from planner.loader import parse

NAME = "deepspeed"
DEFAULTS = {
    "zero_optimization.stage": 0,
    "zero_optimization.reduce_scatter": True,
    "zero_optimization.compute_grad_norm": True,
    "zero_optimization.contiguous_gradients": True,
    "zero_optimization.zero_hpz_partition_size": 1,
    "zero_optimization.offload_optimizer.device": "none",
    "zero_optimization.offload_optimizer.ratio": 1.0,
    "zero_optimization.offload_param.device": "none",
    "fp16.loss_scale": 0,
    "fp16.loss_scale_window": 1000,
    "fp16.min_loss_scale": 1,
    "tensor_parallel.autotp_size": 0,
    "sequence_parallel_size": 1,
    "gradient_allreduce_op": "mean",
    "gradient_predivide_factor": 1.0,
    "gradient_clipping": 0.0,
    "managed_gradient_accumulation": True,
}
"""What DeepSpeed takes where a key that rules look at is not written (0.19.8)."""


def read(text: str, name: str) -> Configuration:
    """Return what a DeepSpeed configuration says.

    Raises:
        SpecError: it is no JSON, or no mapping.

    """
    body = plain(text)
    document = parse(body, name)
    if not isinstance(document.value, dict):
        raise SpecError.of(name, 'should be a mapping of keys to values, such as {"train_batch_size": 256}')
    settings = flat(document, TABLES)
    if isinstance(document.value.get("bf16", document.value.get("bfloat16")), dict) and "bf16" not in settings:
        old = {key: one for key, one in settings.items() if key.startswith("bfloat16.")}
        settings |= {f"bf16.{key.partition('.')[2]}": one for key, one in old.items()}
    automatic = [key for key, one in settings.items() if one.value == "auto" and not key.startswith("expert_parallel.")]
    notes = (f"{len(automatic)} values are auto: the script's arguments decide them",) if automatic else ()
    return Configuration(
        form=NAME,
        origin=name,
        settings=settings,
        defaults=DEFAULTS,
        findings=(*text_findings(document, "DS004"), *_comments(text, body, name)),
        notes=notes,
    )


def _comments(text: str, body: str, name: str) -> tuple[Finding, ...]:
    """Return where the first comment, or comma too many, stands."""
    if text == body:
        return ()
    at = next(index for index, (old, new) in enumerate(zip(text, body, strict=True)) if old != new)
    spot = Spot(name, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
    message = (
        "has comments, or a comma before a closing bracket: DeepSpeed's own reader takes them, while Transformers and"
        " Accelerate read strict JSON and stop; remove them if either loads this file"
    )
    return (Finding(code="DS005", severity=NOTE, spot=spot, key="", message=message),)
