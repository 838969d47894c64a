"""FlagScale's YAML, flattened as its runner does: every key below system, model and data is an argument of Megatron.

The runner (``flagscale/runner/runner_train.py`` and ``utils.py`` at da4935e) writes the leaves of the three blocks one
after another, true ones as switches and false ones not at all, and Megatron's parser takes the last of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from planner.domain.configuration import ERROR, WARNING, Configuration, Finding, Setting, Spot
from planner.errors import SpecError
from planner.loader import Document, Path, dotted, parse

FORM = "flagscale"
BLOCKS = ("system", "model", "data")
NUMBERS = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_attention_heads",
    "num_query_groups",
    "kv_channels",
    "seq_length",
    "max_position_embeddings",
    "micro_batch_size",
    "global_batch_size",
    "recompute_num_layers",
    "num_experts",
    "mtp_num_layers",
    "vocab_size",
)
"""Arguments that are whole numbers."""
LISTS = ("hetero_process_meshes", "hetero_pipeline_layer_split", "expert_tensor_parallel_size_per_process_mesh")
"""Arguments that are lists of whole numbers."""
OTHERS = (
    "enable_hetero",
    "hetero_device_types",
    "hetero_current_device_type",
    "hetero_use_cpu_communication",
    "standalone_embedding_stage",
    "use_partial_reduce_for_shared_embedding",
    "sequence_parallel",
    "use_distributed_optimizer",
    "use_tp_pp_dp_mapping",
    "untie_embeddings_and_output_weights",
    "recompute_granularity",
    "recompute_method",
    "recompute_granularity_per_stage_micro_batch",
    "recompute_method_per_stage_micro_batch",
    "recompute_num_layers_per_stage_micro_batch",
    "num_distributed_optimizer_instances",
)
NO_SLIPS = ("no_position_embedding",)
"""Arguments that only look like a slip of another."""
KNOWN = (*NUMBERS, *LISTS, *OTHERS)
DEFAULTS: Mapping[str, Any] = {
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 1,
    "context_parallel_size": 1,
    "expert_model_parallel_size": 1,
    "num_distributed_optimizer_instances": 1,
}
"""What Megatron's parser takes."""
UNKNOWN, BAD_VALUE, REPEATED = "FS001", "FS002", "FS003"
VARIABLES = re.compile(
    r"[A-Z]+(_RT)?_VISIBLE_DEVICES|CUDA_DEVICE_MAX_CONNECTIONS|NCCL_(?!.*(TOKEN|KEY|SECRET))\w+|NVTE_\w+"
)
"""Variables that are kept; others may be secrets."""
MOST = 10_000_000
"""Of anything that is counted; more would be a mistake."""
_NEAR = 0.86
"""[-] likeness from which a key is taken for a slip of the pen."""
_OWN = re.compile(r"^\s*(hetero_process_meshes|hetero_device_types|hetero_pipeline_layer_split)\s*:", re.MULTILINE)
_BLOCK = r"^(  )?{}:\s*(#.*)?$"


def recognises(text: str, name: str) -> bool:
    """Return whether a text is YAML with FlagScale's meshes, or with its three blocks."""
    if name.endswith((".sh", ".py", ".toml", ".json")):
        return False
    blocks = all(re.search(_BLOCK.format(block), text, re.MULTILINE) for block in BLOCKS[:2])
    return bool(_OWN.search(text)) or (blocks and "tensor_model_parallel_size" in text)


def read(text: str, name: str) -> Configuration:
    """Return what a text says.

    Raises:
        SpecError: it is no YAML, or has none of FlagScale's blocks.
    """
    document = parse(text, name)
    base = _train(document)
    settings, findings = _arguments(document, base)
    experiment = dict(_leaves(document.value.get("experiment"), ("experiment",)))
    for path, value in experiment.items():
        settings[dotted(path)] = _setting(document, path, value)
    findings += [
        Finding(code=BAD_VALUE, severity=ERROR, spot=Spot(name), key=problem.place, message=problem.message)
        for problem in document.problems
    ]
    return Configuration(
        form=FORM,
        origin=name,
        settings=settings,
        defaults=DEFAULTS,
        environment=_environment(document, experiment),
        world=_world(settings),
        findings=tuple(findings),
        notes=() if "num_layers" in settings else ("the model is not described: its rules are left out",),
    )


def _train(document: Document) -> Path:
    """Return where the three blocks are.

    Raises:
        SpecError: nowhere.
    """
    value = document.value
    for base in (("train",), ()):
        found = value
        for key in base:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict) and any(isinstance(found.get(block), dict) for block in BLOCKS[:2]):
            return base
    message = "has no blocks system and model; give the train part of a FlagScale configuration, or all in one file"
    raise SpecError.of(document.origin, message)


def _arguments(document: Document, base: Path) -> tuple[dict[str, Setting], list[Finding]]:
    """Return the arguments by Megatron's names, and what is wrong with them."""
    root = document.value
    for key in base:
        root = root[key]
    settings: dict[str, Setting] = {}
    findings: list[Finding] = []
    for block in BLOCKS:
        for path, value in _leaves(root.get(block), (*base, block)):
            key = str(path[-1]).replace("-", "_")
            setting = _setting(document, path, value)
            findings += _judged(key, setting, settings.get(key))
            settings[key] = setting
    return settings, findings


def _judged(key: str, setting: Setting, before: Setting | None) -> Iterator[Finding]:
    """Yield what is wrong with one argument."""

    def found(code: str, severity: str, message: str) -> Finding:
        return Finding(code=code, severity=severity, spot=setting.spot, key=setting.name, message=message)

    near = get_close_matches(key, KNOWN, n=1, cutoff=_NEAR)
    if key not in (*KNOWN, *NO_SLIPS) and near:
        yield found(UNKNOWN, WARNING, f"{key} is no argument that is known; did you mean {near[0]}?")
    value = setting.value
    if key in NUMBERS and not _whole(value):
        yield found(BAD_VALUE, ERROR, f"{key} should be a whole number up to {MOST:,}; write {key}: 8")
    if key in LISTS and not (isinstance(value, list) and all(map(_whole, value))):
        yield found(BAD_VALUE, ERROR, f"{key} should be a list of whole numbers; write {key}: [2, 1, 1, 4, 1]")
    if before and before.value != value:
        message = f"{key} stands at {before.spot} as {before.name} too, with another value; the last one counts"
        yield found(REPEATED, WARNING, f"{message}, so keep only one")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield (path, value) of everything that is no block."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif value is not None:
        yield path, value


def _setting(document: Document, path: Path, value: Any) -> Setting:
    line = document.lines().get(path, 0)
    return Setting(name=dotted(path), value=value, spot=Spot(document.origin, line))


def _environment(document: Document, experiment: Mapping[Path, Any]) -> dict[str, Setting]:
    """Return the variables that matter; those of one kind of device or one node only where all have none."""
    found: dict[str, Setting] = {}
    for path, value in experiment.items():
        if path[1:2] == ("envs",) and VARIABLES.fullmatch(str(path[-1])):
            found.setdefault(str(path[-1]), _setting(document, path, value))
    return found


def _world(settings: Mapping[str, Setting]) -> Setting | None:
    """Return the number of ranks where the runner says nodes and processes; a hostfile is not looked into."""
    nodes, each = (settings.get(f"experiment.runner.{key}") for key in ("nnodes", "nproc_per_node"))
    if not (nodes and each and _whole(nodes.value) and _whole(each.value)):
        return None
    return Setting(name="nnodes x nproc_per_node", value=nodes.value * each.value, spot=nodes.spot)
