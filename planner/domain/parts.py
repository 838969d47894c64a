"""The parts of layers of every family that is known, planned or not, and their parameters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Queries, keys and values of every head from the layer's input (Ainslie et al. 2023 where heads share keys)."""

    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    qkv_bias: bool = False
    output_bias: bool = False
    gated: bool = False
    """Whether the output is multiplied by a gate, which a second matrix of queries makes (Qwen3-Next)."""
    extra_parameters: int = 0
    """[-] norms on queries and keys, sinks, relative positions."""

    @property
    def parameters(self) -> int:
        """[-] number of parameters."""
        query, keys_values = self.num_heads * self.head_dim, 2 * self.num_kv_heads * self.head_dim
        rows = (2 * query if self.gated else query) + keys_values
        weights = self.hidden * rows + query * self.hidden
        return (
            weights + (rows if self.qkv_bias else 0) + (self.hidden if self.output_bias else 0) + self.extra_parameters
        )

    @property
    def active_parameters(self) -> int:
        """[-] parameters that work on a token."""
        return self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values from a narrow latent (DeepSeek-V2, 2024, section 2.1)."""

    hidden: int
    num_heads: int
    q_lora_rank: int | None
    """Width of the queries' latent; None: queries come from the hidden size at once."""
    kv_lora_rank: int
    """Width of the latent of keys and values."""
    qk_nope_head_dim: int
    """Channels of a head's queries and keys without positions."""
    qk_rope_head_dim: int
    """Channels with rotary positions; the keys' are shared by all heads."""
    v_head_dim: int
    bias: bool = False
    """Whether the products into the latents and the last one have biases."""

    @property
    def parameters(self) -> int:
        """[-] number of parameters, the latents' norms included."""
        query_size = self.num_heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
        if self.q_lora_rank is None:
            queries = self.hidden * query_size
        else:
            queries = self.q_lora_rank * (self.hidden + query_size + 1)
        latent = self.hidden * (self.kv_lora_rank + self.qk_rope_head_dim) + self.kv_lora_rank
        keys_values = self.kv_lora_rank * self.num_heads * (self.qk_nope_head_dim + self.v_head_dim)
        biases = (self.q_lora_rank or 0) + self.kv_lora_rank + self.qk_rope_head_dim + self.hidden if self.bias else 0
        return queries + latent + keys_values + self.num_heads * self.v_head_dim * self.hidden + biases

    @property
    def active_parameters(self) -> int:
        """[-] parameters that work on a token."""
        return self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Gated delta rule: a state for each head in place of keys and values of the past (Yang et al. 2024)."""

    hidden: int
    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    """[tokens] that the convolution before it sees."""

    @property
    def parameters(self) -> int:
        """[-] number of parameters: queries, keys, values and gate; rates; convolution; norm; last product."""
        keys, values = self.num_key_heads * self.key_head_dim, self.num_value_heads * self.value_head_dim
        projections = self.hidden * (2 * keys + 2 * values) + self.hidden * 2 * self.num_value_heads
        convolution = self.conv_kernel * (2 * keys + values)
        return projections + convolution + 2 * self.num_value_heads + self.value_head_dim + values * self.hidden

    @property
    def active_parameters(self) -> int:
        """[-] parameters that work on a token."""
        return self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """A Mamba-2 mixer (Dao and Gu 2024, section 7)."""

    hidden: int
    num_heads: int
    head_dim: int
    num_groups: int
    """Groups of heads that share what enters and leaves their states."""
    state_size: int
    conv_kernel: int
    """[tokens] that the convolution sees."""
    bias: bool = False
    conv_bias: bool = True

    @property
    def parameters(self) -> int:
        """[-] number of parameters: first product, convolution, rates of each head, norm, last product."""
        inner = self.num_heads * self.head_dim
        channels = inner + 2 * self.num_groups * self.state_size
        rows = inner + channels + self.num_heads
        biases = (rows + self.hidden if self.bias else 0) + (channels if self.conv_bias else 0)
        return (
            self.hidden * rows + self.conv_kernel * channels + 3 * self.num_heads + inner * (1 + self.hidden) + biases
        )

    @property
    def active_parameters(self) -> int:
        """[-] parameters that work on a token."""
        return self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """A feed-forward block that all tokens pass."""

    hidden: int
    size: int
    """Its width."""
    gated: bool = True
    bias: bool = False

    @property
    def parameters(self) -> int:
        """[-] number of parameters."""
        up = 2 * self.size if self.gated else self.size
        return self.hidden * (up + self.size) + (up + self.hidden if self.bias else 0)

    @property
    def active_parameters(self) -> int:
        """[-] parameters that work on a token."""
        return self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts: feed-forward blocks of which a router chooses some for each token."""

    hidden: int
    num_experts: int
    """Experts to choose from, shared ones left out."""
    experts_per_token: int
    """Experts chosen for a token, shared ones left out."""
    expert_size: int
    """Width of each."""
    num_shared: int = 0
    """Experts that all tokens pass."""
    shared_size: int = 0
    """Width of all shared experts together."""
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    """Whether a gate scales what the shared experts make."""
    latent_size: int | None = None
    """Width at which chosen experts work, with products to and from it around them; None: the hidden size."""
    num_groups: int = 1
    """Groups of experts, of which a token chooses some before it chooses experts in them (DeepSeek-V2, 2.2.2)."""
    groups_per_token: int = 1

    @property
    def expert_parameters(self) -> int:
        """[-] of one expert."""
        hidden = self.latent_size or self.hidden
        return FeedForward(hidden=hidden, size=self.expert_size, gated=self.gated, bias=self.bias).parameters

    @property
    def common_parameters(self) -> int:
        """[-] that all tokens pass: router, shared experts, their gate, products around a latent."""
        shared = FeedForward(hidden=self.hidden, size=self.shared_size, gated=self.gated, bias=self.bias)
        router = self.num_experts * (self.hidden + (1 if self.router_bias else 0))
        latent = 2 * self.hidden * self.latent_size if self.latent_size else 0
        return (
            router + (shared.parameters if self.shared_size else 0) + (self.hidden if self.shared_gate else 0) + latent
        )

    @property
    def parameters(self) -> int:
        """[-] number of parameters, all experts included."""
        return self.common_parameters + self.num_experts * self.expert_parameters

    @property
    def active_parameters(self) -> int:
        """[-] parameters that work on a token."""
        return self.common_parameters + self.experts_per_token * self.expert_parameters
