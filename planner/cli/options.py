"""Options that several commands share, and what they mean for the job."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer


class Format(str, Enum):
    """Of what is printed."""

    text = "text"
    json = "json"
    yaml = "yaml"


ClusterSource = Annotated[
    str, typer.Argument(metavar="CLUSTER", help="Cluster file, - or a one-liner such as 8x8:h100-sxm-80gb.")
]
ModelSource = Annotated[str, typer.Argument(metavar="MODEL", help="Model file, - or a Hugging Face config.json.")]
PlanSource = Annotated[str, typer.Argument(metavar="PLAN", help="Plan file, or -.")]
FormatOption = Annotated[Format, typer.Option("--format", help="Of what is printed; json is stable.")]
JobFile = Annotated[str | None, typer.Option("--job", metavar="FILE", help="Job file; options replace what it says.")]
GlobalBatch = Annotated[
    str | None, typer.Option("--global-batch", metavar="SAMPLES", help="Samples of one optimizer step.")
]
GlobalBatchTokens = Annotated[
    str | None, typer.Option("--global-batch-tokens", metavar="TOKENS", help="Tokens of one step instead.")
]
SequenceLength = Annotated[
    str | None, typer.Option("--sequence-length", metavar="TOKENS", help="Tokens of one sample.")
]
Precision = Annotated[
    str | None, typer.Option("--precision", metavar="NAME", help="bf16, fp16, fp32, fp8, mxfp8 or nvfp4.")
]
Framework = Annotated[
    str | None, typer.Option("--framework", metavar="NAME", help="Profile of costs and memory; default megatron.")
]
Optimizer = Annotated[
    str | None, typer.Option("--optimizer", metavar="NAME", help="Optimizer recipe; default the framework's usual.")
]
Target = Annotated[
    str | None, typer.Option("--for", metavar="NAME", help="Only plans that this framework can run, with its profile.")
]
Headroom = Annotated[
    str | None, typer.Option("--headroom", metavar="SHARE", help="Share of memory left free; default 10%.")
]
Gap = Annotated[
    str | None, typer.Option("--gap", metavar="SHARE", help="Wanted distance from the proved bound; default 1%.")
]
TimeLimit = Annotated[str | None, typer.Option("--time-limit", metavar="SECONDS", help="Of the search; default none.")]
TotalTokens = Annotated[
    str | None, typer.Option("--total-tokens", metavar="TOKENS", help="Of the whole training: prints days and cost.")
]
Constraints = Annotated[
    list[str] | None,
    typer.Option("--constraint", "-c", metavar="TEXT", help='Such as "tp <= 8" or "recompute: never"; repeatable.'),
]

ScheduleName = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="NAME",
        help='Only this schedule; any of those that train alike; or search for one. As -c "schedule = NAME".',
    ),
]


def overrides(
    *,
    global_batch: str | None,
    global_batch_tokens: str | None,
    sequence_length: str | None,
    precision: str | None,
    framework: str | None,
    optimizer: str | None,
    target: str | None,
    headroom: str | None,
    total_tokens: str | None,
    gap: str | None = None,
    time_limit: str | None = None,
    constraints: list[str] | None = None,
    schedule: str | None = None,
) -> dict[str, object]:
    """Return job key -> value of the options that were given.

    Raises:
        SpecError: there is no such schedule.
    """
    if schedule is not None:
        from planner.specs.constraints import parse_constraint

        parse_constraint(f"schedule = {schedule}", "--schedule")
    given: dict[str, object] = {
        "global_batch": number(global_batch),
        "global_batch_tokens": number(global_batch_tokens),
        "sequence_length": number(sequence_length),
        "precision": precision,
        "framework": framework,
        "optimizer": optimizer,
        "for": target,
        "headroom": number(headroom),
        "gap": number(gap),
        "time_limit_s": number(time_limit),
        "total_tokens": number(total_tokens),
        "constraints": (*(constraints or ()), *([f"schedule = {schedule}"] if schedule is not None else [])),
    }
    return {key: value for key, value in given.items() if value not in (None, ())}


def share(text: str, option: str) -> float:
    """Return the share that an option gives.

    Raises:
        SpecError: it is none.
    """
    from planner.errors import SpecError

    found = number(text)
    if not isinstance(found, (int, float)) or not 0 <= found < 1:
        raise SpecError.of(option, f"should be at least 0 and less than 1 (or a percentage), not {text!r}")
    return float(found)


def number(text: str | None) -> Any:
    """Return the number that an option gives, ``5%`` and ``4_194_304`` included, or the text for specs to refuse."""
    if text is None:
        return None
    plain = text.strip()
    percent = plain.endswith("%")
    plain = plain.removesuffix("%")
    kind = int if plain.lstrip("+-").replace("_", "").isdecimal() else float
    try:
        return kind(plain) / 100 if percent else kind(plain)
    except ValueError:
        return text
