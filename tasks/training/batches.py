"""Batches of packed sequences, straight from the token files; the batch of a step has no hidden state.

A batch has ``tokens``, ``targets`` (int64), ``mask`` (bool: where a target counts) and ``segments`` (int32),
each of shape (batch, context). ``segments`` tells the piece of a document that an input is of, counted from 0
in its row; padding is a segment of its own behind them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from tasks.stage import StageError
from tasks.training.permutation import permute
from tasks.training.token_files import PackedSequences, Sequences, TokenStream, target_mask


class PackedBatches:
    """Sequences in batches; an epoch is a permutation of all sequences."""

    def __init__(self, sequences: PackedSequences, context: int, batch_size: int, seed: int) -> None:
        """Prepare.

        Raises:
            StageError: the sequences were packed for another context.
        """
        if context != sequences.context:
            raise StageError(
                f"pretrain.context is {context}, but {sequences.directory} was packed with encode.context = "
                f"{sequences.context}: set both to the same"
            )
        self.sequences = sequences
        self.batch_size = batch_size
        self.seed = seed

    def numbers(self, step: int) -> np.ndarray:
        """The sequences of step 1, 2, …: a pure function of seed and step, whatever was asked before."""
        size = len(self.sequences)
        places = np.arange((step - 1) * self.batch_size, step * self.batch_size)
        epochs, positions = np.divmod(places, size)
        numbers_B = np.empty_like(places)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            numbers_B[here] = permute(positions[here], size, (self.seed, int(epoch)))
        return numbers_B

    def at_step(self, step: int) -> dict[str, Tensor]:
        """The batch of step 1, 2, …"""
        return _shifted(self.sequences.read(self.numbers(step)))


def validation_batches(stream: TokenStream, context: int, batch_size: int) -> Iterator[dict[str, Tensor]]:
    """The windows of a stream in order: every token but the first of each document is a target once.

    A window may hold several documents. The last one may be short; it is filled up, and ``mask`` is False
    there.
    """
    starts = range(0, len(stream) - 1, context)
    for first in range(0, len(starts), batch_size):
        chosen = starts[first : first + batch_size]
        tokens_BS = np.zeros((len(chosen), context + 1), np.int64)
        used_B = np.empty(len(chosen), np.int64)
        for row, start in enumerate(chosen):
            found = stream.read(start, context + 1)
            tokens_BS[row, : len(found)] = found
            used_B[row] = len(found)
        places_BS = np.array(chosen)[:, None] + np.arange(context + 1)
        document_BS = np.searchsorted(stream.ends_D, places_BS, side="right").astype(np.int32)
        yield _shifted(Sequences(tokens_BS, document_BS - document_BS[:, :1], used_B))


def _shifted(sequences: Sequences) -> dict[str, Tensor]:
    """The one place where targets are shifted against inputs."""
    return {
        "tokens": torch.from_numpy(sequences.tokens_BS[:, :-1].copy()),
        "targets": torch.from_numpy(sequences.tokens_BS[:, 1:].copy()),
        "mask": torch.from_numpy(target_mask(sequences)),
        "segments": torch.from_numpy(sequences.segments_BS[:, :-1].copy()),
    }
