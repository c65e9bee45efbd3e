"""More rows in the vocabulary of a model that is there."""

from __future__ import annotations

import torch
from torch import Tensor

from models.config import ModelConfig
from models.transformer import CausalLM

ROWS = ("model.embed_tokens.weight", "lm_head.weight")


def with_vocabulary(model: CausalLM, config: ModelConfig) -> CausalLM:
    """The same weights under ``config``, which may have other special tokens and a larger vocabulary.

    New rows of embedding and head are the mean of the old ones: the new tokens then take little probability
    from the others, and none has a logit far from what the model knows (Hewitt 2021, "Initializing new word
    embeddings for pretrained language models"). The tensors are taken over, not copied.
    """
    state = model.state_dict()
    for name in ROWS:
        if name in state:
            state[name] = _extended(state[name], config.vocab_size)
    with torch.device("meta"):
        other = CausalLM(config)
    other.model.rotary.to_empty(device="cpu")
    other.load_state_dict(state, assign=True)
    other.tie_weights()
    return other


def _extended(rows_VC: Tensor, size: int) -> Tensor:
    missing = size - len(rows_VC)
    if not missing:
        return rows_VC
    return torch.cat((rows_VC, rows_VC.mean(dim=0, keepdim=True).expand(missing, -1)))
