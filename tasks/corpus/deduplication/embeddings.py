"""What texts mean, as vectors of a local model in the Hugging Face layout.

SemDeDup (Abbas et al. 2023) removes documents by the cosine of such vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.corpus.deduplication.embedding_layout import Pooling, read_embedding_layout
from tasks.stage import StageError
from tasks.training.fingerprint import content_hash

if TYPE_CHECKING:
    import torch

CHARACTERS_PER_TOKEN = 32
"""Only so many characters of a text are read for each token of the model's length."""

TOKENS_AT_ONCE = 8192
"""Of a batch, with what fills up its shorter texts."""

USUAL_TOKENS = 512
"""The length of a model that names none."""


@dataclass(frozen=True)
class EmbeddingModel:
    """A network, its tokenizer, and what is made of what it says."""

    network: Any
    tokenizer: Any
    pooling: Pooling
    lower_case: bool
    tokens: int
    """of a text that are read, special ones included"""
    digest: str
    """SHA-256 over the names and contents of the directory's files"""


@dataclass(frozen=True)
class Embeddings:
    """The vectors of D texts."""

    vectors_DE: np.ndarray
    """float32 of the norm 1; zeros for a text without tokens, which is like no other"""
    truncated_D: np.ndarray
    """bool: whether the text goes on behind what the model read of it"""


def load_embedding_model(directory: Path, tokens: int | None = None) -> EmbeddingModel:
    """The model of a directory, on one thread of this process; ``tokens`` shortens its length.

    Nothing is fetched, no code of the directory is run, and weights are read from safetensors only: other
    formats can run code.

    Raises:
        StageError: if the directory or a file of it is missing or broken, if weights are missing, if
            tokenizer and network do not belong together, if vectors are to be made in a way that is not known
            here, or if the network reads fewer than ``tokens``.
    """
    import torch

    if not directory.is_dir():
        raise StageError(f"{directory}: there is no such directory; it is to hold an embedding model")
    layout = read_embedding_layout(directory)
    torch.set_num_threads(1)  # each worker embeds documents of its own
    with _quiet():
        network = _network(layout.network)
        tokenizer = _tokenizer(layout.network, network)
    limit = min(_limits(network, tokenizer, layout.tokens), default=USUAL_TOKENS)
    if tokens is not None and tokens > limit:
        raise StageError(f"{directory}: the model reads {limit} tokens, fewer than the {tokens} asked for")
    return EmbeddingModel(
        network, tokenizer, layout.pooling, layout.lower_case, tokens or limit, content_hash([directory])
    )


def embed(loaded: EmbeddingModel, texts: Sequence[str | None]) -> Embeddings:
    """The vectors of the texts, each of its first ``loaded.tokens`` tokens.

    Texts of like length are read together; with which others shows in the last digits of float32 at most.
    """
    read = [(text or "")[: loaded.tokens * CHARACTERS_PER_TOKEN] for text in texts]
    truncated_D = np.array([len(text or "") > len(cut) for text, cut in zip(texts, read, strict=True)], bool)
    vectors_DE = np.zeros((len(read), loaded.network.config.hidden_size), np.float32)
    tokens_D, longer_D = _tokens(loaded, read)
    for batch in _batches([len(tokens) for tokens in tokens_D]):
        vectors_DE[batch] = _pooled(loaded, [tokens_D[d] for d in batch])
    return Embeddings(vectors_DE, truncated_D | longer_D)


def _network(directory: Path) -> Any:
    """The network of a directory, all of whose weights are there.

    Raises:
        StageError: if not.
    """
    import torch
    from transformers import AutoModel

    for pattern, name in (("config.json", "config.json"), ("*.safetensors", "model.safetensors")):
        if not any(directory.glob(pattern)):
            raise StageError(f"{directory}: there is no {name}")
    try:
        network, loading = AutoModel.from_pretrained(
            directory,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except Exception as error:  # whatever is wrong with a file, the library raises what it likes
        raise StageError(f"{directory}: config.json and weights give no model ({error})") from None
    # What has no weights would be drawn at random. What is made of the first token is not used here.
    missing = sorted(name for name in loading["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise StageError(f"{directory}: the weights lack {', '.join(missing[:3])} ({len(missing)} in all)")
    if network.config.is_encoder_decoder:
        raise StageError(f"{directory}: an encoder with a decoder makes no vectors here")
    return network.eval()


def _tokenizer(directory: Path, network: Any) -> Any:
    """The tokenizer of a directory, which belongs to the network.

    Raises:
        StageError: if there is none, or not.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # as above
        raise StageError(f"{directory}: tokenizer.json gives no tokenizer ({error})") from None
    words = network.get_input_embeddings().num_embeddings
    if not tokenizer.is_fast or not len(tokenizer):
        raise StageError(f"{directory}: there is no tokenizer.json")
    if len(tokenizer) > words:
        raise StageError(
            f"{directory}: the tokenizer has {len(tokenizer)} tokens, the model's embedding only {words}; "
            "they do not belong together"
        )
    return tokenizer


def _limits(network: Any, tokenizer: Any, said: int | None) -> list[int]:
    """All numbers of tokens that the directory names as its most."""
    positions = getattr(network.config, "max_position_embeddings", None)
    if positions is not None:
        # RoBERTa and its kin number positions from behind that of the filling.
        filling = getattr(getattr(network, "embeddings", None), "padding_idx", None)
        positions -= 0 if filling is None else filling + 1
    known = tokenizer.model_max_length if tokenizer.model_max_length < 10**9 else None
    return [limit for limit in (positions, known, said) if limit is not None]


def _tokens(loaded: EmbeddingModel, texts: list[str]) -> tuple[list[list[int]], np.ndarray]:
    """The tokens of each text (none if it is of special ones alone), and whether there are more."""
    tokens_D: list[list[int]] = [[] for _ in texts]
    longer_D = np.zeros(len(texts), bool)
    for d, text in enumerate(texts):
        found = loaded.tokenizer(
            text.lower() if loaded.lower_case else text,
            truncation=True,
            max_length=loaded.tokens,
            return_overflowing_tokens=True,
            return_special_tokens_mask=True,
        )
        longer_D[d] = len(found["input_ids"]) > 1
        if not all(found["special_tokens_mask"][0]):
            tokens_D[d] = found["input_ids"][0]
    return tokens_D, longer_D


def _batches(lengths_D: list[int]) -> Iterator[list[int]]:
    """Texts that have tokens, those of like length together."""
    batch: list[int] = []
    for d in sorted(range(len(lengths_D)), key=lambda d: (lengths_D[d], d)):
        if batch and (len(batch) + 1) * lengths_D[d] > TOKENS_AT_ONCE:
            yield batch
            batch = []
        if lengths_D[d]:
            batch.append(d)
    if batch:
        yield batch


def _pooled(loaded: EmbeddingModel, tokens_B: list[list[int]]) -> np.ndarray:
    """The vectors of a batch: float32 of shape (B, E)."""
    import torch

    shape = len(tokens_B), max(map(len, tokens_B))
    filling = loaded.tokenizer.pad_token_id or 0
    ids_BT, mask_BT = torch.full(shape, filling), torch.zeros(shape, dtype=torch.long)
    for row, tokens in enumerate(tokens_B):
        ids_BT[row, : len(tokens)] = torch.tensor(tokens)
        mask_BT[row, : len(tokens)] = 1
    with torch.inference_mode():
        said_BTE = loaded.network(input_ids=ids_BT, attention_mask=mask_BT).last_hidden_state
        vectors_BE = _pool(said_BTE, mask_BT.bool(), loaded.pooling)
        return torch.nn.functional.normalize(vectors_BE, dim=1).numpy()


def _pool(said_BTE: torch.Tensor, mask_BT: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    if pooling == "cls":
        return said_BTE[:, 0]
    mask_BT1 = mask_BT[:, :, None]
    if pooling == "max":
        return said_BTE.masked_fill(~mask_BT1, float("-inf")).amax(dim=1)
    return said_BTE.masked_fill(~mask_BT1, 0).sum(dim=1) / mask_BT1.sum(dim=1)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's bars and reports: what matters of them is an error here."""
    from transformers.utils import logging

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()
