"""BERT with both heads of its pre-training: masked words (transform, tied projection) and next sentence (pooler)."""

from __future__ import annotations

from planner.architectures.base import Architecture, Hyper, assemble, transformer_layer
from planner.domain.model import Model
from planner.layers import Embedding, Head


def build(hyper: Hyper) -> Model:
    """Return the model of Hugging Face's ``BertForPreTraining``.

    The norms stand behind the blocks, so that no last norm follows the body; the embedding has its own. The head's
    dense layers are the pooler and the transform, the rest is the transform's norm and the two sentence classes.
    """
    hidden, vocabulary = hyper.hidden_size, hyper.vocabulary
    return assemble(
        hyper,
        "bert",
        Embedding(
            hidden=hidden,
            vocabulary=vocabulary,
            num_positions=hyper.max_position_embeddings,
            num_token_types=hyper.type_vocab_size,
            norm_parameters=2 * hidden,
        ),
        transformer_layer(
            hyper, gated=False, norm_parameters=4 * hidden, output_bias=hyper.attention_bias, causal=False
        ),
        Head(
            hidden=hidden,
            vocabulary=vocabulary,
            tied=hyper.tie_word_embeddings,
            bias=True,
            num_dense=2,
            extra_parameters=2 * hidden + 2 * (hidden + 1),
        ),
    )


BERT = Architecture(
    name="bert",
    model_types=("bert",),
    build=build,
    aliases={
        "hidden_dropout_prob": "hidden_dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "layer_norm_eps": "norm_eps",
    },
    defaults={
        "type_vocab_size": 2,
        "tie_word_embeddings": True,
        "attention_bias": True,
        "mlp_bias": True,
        "hidden_dropout": 0.1,
        "attention_dropout": 0.1,
    },
)
