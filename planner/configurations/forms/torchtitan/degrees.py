"""The degrees of parallelism of a configuration, and the batch that goes with them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.configurations.forms.torchtitan.catalog import TOML, Flavor, flavor, release
from planner.domain.configuration import Configuration

REPLICATE = "parallelism.data_parallel_replicate_degree"
SHARD = "parallelism.data_parallel_shard_degree"
TENSOR = "parallelism.tensor_parallel_degree"
CONTEXT = "parallelism.context_parallel_degree"
PIPELINE = "parallelism.pipeline_parallel_degree"
EXPERT = "parallelism.expert_parallel_degree"
EXPERT_TENSOR = "parallelism.expert_tensor_parallel_degree"
LOCAL_BATCH = "training.local_batch_size"
GLOBAL_BATCH = "training.global_batch_size"
MICRO_BATCH = "parallelism.pipeline_parallel_microbatch_size"
SEQUENCE = "training.seq_len"
FLAVOR = "model.flavor"
SIZES = (
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "hidden_size",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
"""What a model that is written out must say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """The mesh of a configuration, from the outermost axis: pp, replicate, shard, cp, tp."""

    replicate: int
    shard: int
    """As written: -1 for all ranks that the others leave."""
    context: int
    tensor: int
    pipeline: int
    expert: int
    expert_tensor: int
    world: int | None
    """Ranks, where they are known."""

    @property
    def sound(self) -> bool:
        """Whether each is a number that a degree can be."""
        others = (self.replicate, self.context, self.tensor, self.pipeline, self.expert, self.expert_tensor)
        return min(others) >= 1 and (self.shard == -1 or self.shard >= 1)

    @property
    def others(self) -> int:
        """Ranks of all axes but `shard`."""
        return self.replicate * self.context * self.tensor * self.pipeline

    @property
    def shards(self) -> int | None:
        """Ranks that share weights out among them, context ranks apart; None where the world would have to tell."""
        if self.shard != -1:
            return self.shard
        return max(1, self.world // max(1, self.others)) if self.world else None

    @property
    def data(self) -> int | None:
        """Degree of data parallelism, replicated and sharded together."""
        return None if self.shards is None else self.replicate * self.shards

    @property
    def ranks(self) -> int | None:
        """Ranks of the mesh."""
        return None if self.shards is None else self.others * self.shards

    @property
    def sharded(self) -> bool:
        """Whether weights are sharded: with -1 and no known world, they are taken to be."""
        return self.shards != 1 or self.context > 1


def degrees(configuration: Configuration) -> Degrees:
    """Return the degrees that a configuration says, those that it does not say as torchtitan takes them."""
    found = {key: configuration.number(key, 1) for key in (REPLICATE, TENSOR, CONTEXT, PIPELINE, EXPERT, EXPERT_TENSOR)}
    world = configuration.world.value if configuration.world else None
    return Degrees(
        replicate=found[REPLICATE],
        shard=configuration.number(SHARD, -1),
        context=found[CONTEXT],
        tensor=found[TENSOR],
        pipeline=found[PIPELINE],
        expert=found[EXPERT],
        expert_tensor=found[EXPERT_TENSOR],
        world=world if isinstance(world, int) and world > 0 else None,
    )


def model_of(configuration: Configuration) -> Flavor | None:
    """Return the model that a configuration names; None if its sizes are not known."""
    name, size = configuration.get("model.name"), configuration.get(FLAVOR)
    if isinstance(name, str) and isinstance(size, str):
        return flavor(name, size, configuration.version)
    return _written_out(configuration)


def _written_out(configuration: Configuration) -> Flavor | None:
    """Return the model whose sizes the configuration lists, as our own exports do; None if it lists none."""
    found = configuration.settings.items()
    sizes = {key.removeprefix("model."): one.value for key, one in found if key.startswith("model.")}
    numbers = [sizes.get(key) for key in SIZES]
    if not all(isinstance(number, int) and number > 0 for number in numbers):
        return None
    return Flavor(
        model="llama3",
        name="written out",
        config={"name": "written-out", "model_type": "llama", "tie_word_embeddings": False, **sizes},
        pipeline=True,
        context=True,
    )


def is_old(configuration: Configuration) -> bool:
    """Return whether the version is one that reads TOML."""
    return release(configuration.version) == TOML


def micro_batches(configuration: Configuration) -> int:
    """Return the micro-batches of one pass through the pipeline; 0 where batch and micro-batch do not go together."""
    local, micro = configuration.number(LOCAL_BATCH), configuration.number(MICRO_BATCH, 1)
    return local // micro if local > 0 and micro > 0 and local % micro == 0 else 0
