"""How a family that cannot be planned yet is read: fields by name, and every problem met on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from planner.domain.facts import Block, ModelFacts
from planner.domain.parts import Attention, Experts, FeedForward
from planner.errors import Problem

LAYERS_MAX, NUMBER_MAX = 2_000, 10**9
"""Larger numbers are mistakes, and would only exhaust the memory."""
NUM_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
"""What transformers 5 and the families themselves call the number of experts."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A configuration to be asked for its fields; what is missing or wrong is noted, and 1 stands in for it."""

    name: str
    """Of the model."""
    values: Mapping[str, object]
    where: Callable[[str], str]
    """Key as written -> place for problems."""
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, key: str, message: str) -> None:
        """Note what is wrong with `key`."""
        self.problems.append(Problem(self.where(key), message))

    def has(self, *names: str) -> bool:
        """Return whether any of `names` is given; null counts as absent."""
        return any(self.values.get(name) is not None for name in names)

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = NUMBER_MAX) -> int:
        """Return a whole number.

        Args:
            names: what it is called; the first is the usual name. Values under several names must agree.
            default: what holds where none is given (the default of the family's Hugging Face class); None: it must be.
            least: smallest sensible value.
            most: largest sensible value.
        """
        given = [(name, self.values[name]) for name in names if self.values.get(name) is not None]
        if not given:
            if default is None:
                also = f", as {' or '.join(names[1:])} too" if names[1:] else ""
                self.refuse(names[0], f"is missing{also}; the family needs it")
            return 1 if default is None else default
        name, value = given[0]
        for other, second in given[1:]:
            if second != value:
                self.refuse(other, f"is {second!r} but {name}, the same thing, is {value!r}; keep one")
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        bounds = f"from {least} to {most:,}" if isinstance(value, int) and value > most else f"of at least {least}"
        self.refuse(name, f"should be a whole number {bounds}, not {value!r}")
        return max(1, least)

    def optional(self, *names: str, least: int = 1) -> int | None:
        """Return a whole number, or None where none is given."""
        return self.count(*names, least=least) if self.has(*names) else None

    def flag(self, *names: str, default: bool) -> bool:
        """Return a switch under the first of `names` that is given."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, bool):
                return value
            if value is not None:
                self.refuse(name, f"should be true or false, not {value!r}")
        return default

    def text(self, name: str, default: str) -> str:
        """Return a text."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self.refuse(name, f"should be text, not {value!r}")
        return default

    def words(self, name: str, known: Collection[str], length: int | None = None) -> tuple[str, ...] | None:
        """Return a list of `known` words, one for each of `length` layers; None where it is absent or wrong."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not value or len(value) > LAYERS_MAX:
            self.refuse(name, "should be a list with a word for each layer")
        elif strange := [item for item in value if item not in known]:
            self.refuse(name, f"should hold {', '.join(known)}, not {strange[0]!r}")
        elif length is not None and len(value) != length:
            self.refuse(name, f"has {len(value)} entries, but there are {length} layers")
        else:
            return tuple(value)
        return None

    def indices(self, name: str, num_layers: int) -> frozenset[int] | None:
        """Return a list of layers, counted from 0; None where it is absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or any(isinstance(i, bool) or not isinstance(i, int) for i in value):
            self.refuse(name, f"should be a list of layers, as [0, 1], not {value!r}")
            return frozenset()
        if strange := [index for index in value if not 0 <= index < num_layers]:
            self.refuse(name, f"names layer {strange[0]}, but there are layers 0 to {num_layers - 1}")
        return frozenset(value)

    def attention(
        self, *, bias: bool = False, output_bias: bool = False, head_dim: int | None = None, extra: int = 0
    ) -> Attention:
        """Return ordinary attention.

        Args:
            bias: whether queries, keys and values have biases.
            output_bias: whether the last product has one.
            head_dim: what holds where none is given; None: the hidden size over the heads.
            extra: [-] norms on queries and keys, per channel of a head: 2 is a norm on each.
        """
        hidden, heads = self.count("hidden_size"), self.count("num_attention_heads")
        kv_heads = self.count("num_key_value_heads", default=heads)
        size = self.optional("head_dim") or head_dim or hidden // heads
        if not self.has("head_dim") and head_dim is None and hidden % heads:
            self.refuse("num_attention_heads", f"{heads} does not divide hidden_size {hidden}; give head_dim")
        if heads % kv_heads:
            self.refuse("num_key_value_heads", f"{kv_heads} does not divide num_attention_heads {heads}")
        return Attention(
            hidden=hidden,
            num_heads=heads,
            num_kv_heads=kv_heads,
            head_dim=max(1, size),
            qkv_bias=bias,
            output_bias=output_bias,
            extra_parameters=extra * max(1, size),
        )

    def experts(self, size: int, **more: int | bool | None) -> Experts:
        """Return a mixture of experts of width `size` each; `more` are further fields of `Experts`."""
        hidden, number = self.count("hidden_size"), self.count(*NUM_EXPERTS)
        chosen = self.count("num_experts_per_tok", "num_experts_per_token")
        if chosen > number and self.has(*NUM_EXPERTS):
            self.refuse("num_experts_per_tok", f"{chosen} is more than the {number} experts")
        return Experts(hidden=hidden, num_experts=number, experts_per_token=chosen, expert_size=size, **more)  # type: ignore[arg-type]

    def groups(self) -> dict[str, int]:
        """Return the groups of experts, and how many of them a token may choose from, as fields of `Experts`."""
        number, chosen = self.count("n_group", default=1), self.count("topk_group", default=1)
        if chosen > number:
            self.refuse("topk_group", f"{chosen} is more than the {number} groups")
        return {"num_groups": number, "groups_per_token": chosen}

    def dense(self, size: int) -> FeedForward:
        """Return a gated feed-forward block without biases."""
        return FeedForward(hidden=self.count("hidden_size"), size=size)

    def num_layers(self) -> int:
        """Return the number of layers."""
        return self.count("num_hidden_layers", most=LAYERS_MAX)

    def facts(
        self, model_type: str, blocks: tuple[Block, ...], *, norm_size: int = 1, head_bias: bool = False, mtp: int = 0
    ) -> ModelFacts:
        """Return the facts of a decoder with a table of tokens before and a norm behind its layers.

        Args:
            model_type: name of the family.
            blocks: every layer in order.
            norm_size: [-] parameters per channel of the last norm.
            head_bias: whether the projection to the vocabulary has a bias.
            mtp: layers that predict tokens further on.
        """
        hidden, vocabulary = self.count("hidden_size"), self.count("vocab_size")
        tied = self.flag("tie_word_embeddings", default=False)
        head = (0 if tied else vocabulary * hidden) + (vocabulary if head_bias else 0)
        return ModelFacts(
            name=self.name,
            model_type=model_type,
            hidden_size=hidden,
            blocks=blocks,
            num_mtp_layers=mtp,
            vocab_size=vocabulary,
            max_position_embeddings=self.count("max_position_embeddings"),
            tie_word_embeddings=tied,
            embedding_parameters=vocabulary * hidden,
            end_parameters=norm_size * hidden + head,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A family whose configurations are understood although its layers cannot be planned yet."""

    name: str
    model_types: tuple[str, ...]
    """Values of ``model_type`` in Hugging Face configurations."""
    read: Callable[[Fields], ModelFacts]
    """A configuration -> its facts; to be used only if no problem was noted."""
