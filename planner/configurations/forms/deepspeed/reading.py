"""Rules of the keys themselves: unknown, misplaced, removed, of a wrong kind."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.deepspeed.keys import REMOVED, REMOVED_IN, TABLES, VERSION
from planner.configurations.forms.deepspeed.values import AUTO, BATCH
from planner.configurations.nested import misfits, unknown
from planner.domain.configuration import NOTE, WARNING, Configuration

CONFIG = f"deepspeed {VERSION}, deepspeed/runtime/config.py"
MODELS = f"deepspeed {VERSION}, deepspeed/runtime/config_utils.py DeepSpeedConfigModel (extra=forbid)"
_RENAMED = {
    "zero_optimization.cpu_offload": "zero_optimization.offload_optimizer",
    "zero_optimization.cpu_offload_param": "zero_optimization.offload_param",
    "zero_optimization.stage3_gather_fp16_weights_on_model_save": (
        "zero_optimization.stage3_gather_16bit_weights_on_model_save"
    ),
}
"""Old key -> the key that replaced it."""
_LEAST = {
    "reduce_bucket_size": 1,
    **dict.fromkeys(
        (
            "allgather_bucket_size",
            "sub_group_size",
            "stage3_prefetch_bucket_size",
            "stage3_param_persistence_threshold",
            "stage3_model_persistence_threshold",
            "stage3_max_live_parameters",
            "stage3_max_reuse_distance",
            "zero_hpz_partition_size",
        ),
        0,
    ),
}
"""Size -> the least that it may be."""


def _near(configuration: Configuration) -> Iterator[Complaint]:
    for one in unknown(configuration, TABLES):
        if not one.strict and one.near:
            yield one.key, f"DeepSpeed knows no key {one.key}, and ignores it without a word{one.hint}"


def _ignored(configuration: Configuration) -> Iterator[Complaint]:
    for one in unknown(configuration, TABLES):
        if not one.strict and not one.near:
            message = (
                f"DeepSpeed knows no key {one.key}, and ignores it without a word; remove it if no script reads it"
            )
            yield one.key, message


def _refused(configuration: Configuration) -> Iterator[Complaint]:
    for one in unknown(configuration, TABLES):
        if one.strict:
            yield one.key, f"DeepSpeed knows no key {one.key}, and refuses the block{one.hint}"


def _ranges(configuration: Configuration) -> Iterator[Complaint]:
    for name, least in _LEAST.items():
        key = f"zero_optimization.{name}"
        value = configuration.get(key) if key in configuration else None
        if isinstance(value, int) and not isinstance(value, bool) and value < least:
            yield key, f"{key} should be at least {least}, not {value}"


def _kinds(configuration: Configuration) -> Iterator[Complaint]:
    yield from misfits(configuration, TABLES, words=(AUTO,))
    whole = configuration.get("zero_optimization")
    if whole is not None and not isinstance(whole, (dict, bool)):
        yield "zero_optimization", 'zero_optimization should be a block, such as {"stage": 2}'


def _from_text(_: Configuration) -> Iterator[Complaint]:
    """Say nothing: what breaks the rule shows when the text is read."""
    yield from ()


def _automatic(configuration: Configuration) -> Iterator[Complaint]:
    keys = [key for key in BATCH if configuration.get(key) == AUTO]
    keys = keys or [key for key, one in configuration.settings.items() if one.value == AUTO and "." in key]
    keys = [key for key in keys if not key.startswith("expert_parallel.")]
    if keys:
        listed = f"{', '.join(keys[:3])}{', ...' if len(keys) > 3 else ''}"
        verb = "are" if len(keys) > 1 else "is"
        effect = "by itself DeepSpeed stops at it in a batch size, and takes its default elsewhere"
        yield keys[0], f"{listed} {verb} auto: only Transformers and Accelerate fill it in from the script; {effect}"


def _removed(configuration: Configuration) -> Iterator[Complaint]:
    for key in REMOVED:
        if key in configuration:
            yield key, f"{key} was removed: DeepSpeed {REMOVED_IN} and later refuse the file; remove the key"


def _old(configuration: Configuration) -> Iterator[Complaint]:
    for key, new in _RENAMED.items():
        if key in configuration and new not in configuration:
            value = '{"device": "cpu"}' if "offload" in new else "the same"
            yield key, f"{key} is deprecated; write {new}: {value}"
    if "bfloat16" in configuration and configuration.get("bf16") is not None:
        yield "bfloat16", "bfloat16 is the old name of bf16, which is given too: only bf16 is read; remove bfloat16"
    if isinstance(configuration.get("zero_optimization"), bool):
        on = configuration.get("zero_optimization")
        yield "zero_optimization", f'zero_optimization is a switch of old; write {{"stage": {int(on)}}}, which it means'


def _both(configuration: Configuration) -> Iterator[Complaint]:
    for key, new in _RENAMED.items():
        if key in configuration and new in configuration:
            yield key, f"{key} and {new}, which replaced it, are both given, and DeepSpeed stops; remove {key}"


RULES = (
    Rule(
        code="DS001",
        name="Keys are spelt as DeepSpeed spells them",
        summary="no key of the outermost level or of a loosely read block is a misspelt known one",
        why=(
            "DeepSpeed asks its JSON for the keys that it knows, and never looks at others. A misspelt key is"
            " therefore a default that nobody chose: zero_optimisation trains without ZeRO."
        ),
        source=f"{CONFIG} _initialize_params",
        check=_near,
        caught=False,
    ),
    Rule(
        code="DS002",
        name="Every key is one of DeepSpeed's",
        summary="no unknown keys, which DeepSpeed ignores",
        why="DeepSpeed never looks at keys that it does not know. Scripts may read some of their own from the file.",
        source=f"{CONFIG} _initialize_params",
        check=_ignored,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="DS003",
        name="Keys of strict blocks are known",
        summary="zero_optimization, fp16, bf16, tensor_parallel and other typed blocks hold only keys that they define",
        why="Typed blocks are pydantic models that forbid extra keys: DeepSpeed stops when the engine is built.",
        source=MODELS,
        check=_refused,
    ),
    Rule(
        code="DS004",
        name="Every key stands once",
        summary="no duplicate keys; text that can be read",
        why="DeepSpeed raises on duplicate keys, Transformers and Accelerate silently keep the last.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/config_utils.py dict_raise_error_on_duplicate_keys",
        check=_from_text,
    ),
    Rule(
        code="DS005",
        name="The file is strict JSON",
        summary="no comments, no comma before a closing bracket",
        why=(
            "DeepSpeed reads the file with hjson, which takes both. HfDeepSpeedConfig of Transformers and Accelerate"
            " reads it with json.load, which stops."
        ),
        source=f"{CONFIG} DeepSpeedConfig.__init__; accelerate 1.15.0, utils/deepspeed.py HfDeepSpeedConfig",
        check=_from_text,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="DS006",
        name="auto is for Transformers and Accelerate",
        summary="what is auto is filled in by the HF integration, and nothing else",
        why=(
            "Transformers and Accelerate replace auto by the script's arguments. DeepSpeed's typed blocks drop an auto"
            " and take their default; batch sizes that are auto end in a TypeError."
        ),
        source=f"{MODELS}; accelerate 1.15.0, utils/dataclasses.py DeepSpeedPlugin.fill_match",
        check=_automatic,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="DS007",
        name="No removed features",
        summary="none of amp, elasticity, compression_training, mics_shard_size and others",
        why=(
            "DeepSpeed 0.19.7 removed features that were ignored or broken before, and refuses their keys, so that"
            " nobody trains without what the file asks for."
        ),
        source=f"{CONFIG} _REMOVED_TOP_LEVEL_CONFIG_KEYS; deepspeedai/DeepSpeed issue 8489",
        check=_removed,
        since=REMOVED_IN,
    ),
    Rule(
        code="DS008",
        name="No deprecated keys",
        summary="cpu_offload, cpu_offload_param, bfloat16 and others by their new names",
        why="Deprecated keys still work, with a warning in the log of every rank; later versions refuse them.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/zero/config.py",
        check=_old,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="DS009",
        name="A key or the one that replaced it, not both",
        summary="not both cpu_offload and offload_optimizer; not both cpu_offload_param and offload_param",
        why="DeepSpeed asserts that a deprecated key and the one that replaced it are not given together.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/config_utils.py _process_deprecated_field",
        check=_both,
    ),
    Rule(
        code="DS010",
        name="Values are of their kind",
        summary="numbers, switches and choices where the key wants them",
        why="Typed blocks refuse other values; values that are read loosely fail later, in the middle of the start.",
        source=f"deepspeed {VERSION}, the classes of the blocks",
        check=_kinds,
    ),
    Rule(
        code="DS011",
        name="Sizes are in their range",
        summary="bucket sizes, thresholds and group sizes of zero_optimization are not negative",
        why="DeepSpeed refuses the block when it reads the file.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/zero/config.py DeepSpeedZeroConfig",
        check=_ranges,
    ),
)
