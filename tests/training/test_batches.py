from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.corpus.encoding.index import read_index
from tasks.stage import StageError
from tasks.training.batches import PackedBatches, validation_batches
from tasks.training.token_files import PackedSequences, TokenStream


def batches_of(directory: Path, batch_size: int, seed: int = 0) -> PackedBatches:
    return PackedBatches(PackedSequences(directory, read_index(directory)), 16, batch_size, seed)


def rows_of(directory: Path) -> np.ndarray:
    files = [np.fromfile(path, "<u2") for path in sorted(directory.glob("train-*.bin"))]
    return np.concatenate(files).astype(np.int64).reshape(-1, 17)


def test_a_batch_is_a_pure_function_of_seed_and_step(tiny_tokens):
    forwards, direct = batches_of(tiny_tokens, 4, seed=3), batches_of(tiny_tokens, 4, seed=3)
    batches = [forwards.at_step(step) for step in range(1, 41)]
    for step in (40, 7, 1):
        assert all(torch.equal(direct.at_step(step)[name], batches[step - 1][name]) for name in batches[0])


def test_another_seed_is_another_order(tiny_tokens):
    orders = [batches_of(tiny_tokens, 72, seed=seed).numbers(1).tolist() for seed in (0, 1)]
    assert orders[0] != orders[1]


def test_every_sequence_comes_once_an_epoch_even_where_a_batch_spans_two(tiny_tokens):
    batches = batches_of(tiny_tokens, 7)
    places = np.concatenate([batches.numbers(step) for step in range(1, 32)])
    for epoch in range(3):
        assert sorted(places[epoch * 72 : (epoch + 1) * 72]) == list(range(72))


def test_targets_are_the_next_tokens(tiny_tokens):
    rows, batches = rows_of(tiny_tokens), batches_of(tiny_tokens, 4)
    batch = batches.at_step(2)
    assert batch["tokens"].tolist() == rows[batches.numbers(2), :-1].tolist()
    assert batch["targets"].tolist() == rows[batches.numbers(2), 1:].tolist()


def test_a_target_counts_where_it_is_of_the_same_piece_as_its_input(tiny_tokens):
    batches = batches_of(tiny_tokens, 72)
    batch = batches.at_step(1)
    for row, number in enumerate(batches.numbers(1).tolist()):
        _, pieces = batches.sequences.pieces(number)
        counted = [piece.position + token for piece in pieces for token in range(1, piece.tokens)]
        assert (batch["mask"][row].nonzero().flatten() + 1).tolist() == counted


def test_a_batch_has_the_segments_of_its_inputs(tiny_tokens):
    batches = batches_of(tiny_tokens, 72)
    batch, whole = batches.at_step(1), batches.sequences.read(batches.numbers(1))
    assert batch["segments"].tolist() == whole.segments_BS[:, :-1].tolist()
    assert batch["segments"].dtype == torch.int32
    assert batch["segments"].max() > 0


def test_validation_scores_every_token_but_the_first_of_each_document_once_in_order(tiny_tokens):
    tokens = np.fromfile(tiny_tokens / "validation-00000.bin", "<u2")
    stream = TokenStream(tiny_tokens, read_index(tiny_tokens), "validation")
    batches = list(validation_batches(stream, 16, 4))
    scored = torch.cat([batch["targets"][batch["mask"]] for batch in batches])
    assert scored.tolist() == [*tokens[1:70].tolist(), *tokens[71:].tolist()]
    assert len(scored) == stream.scored


def test_another_context_than_the_sequences_were_packed_for_names_both_keys(tiny_tokens):
    sequences = PackedSequences(tiny_tokens, read_index(tiny_tokens))
    with pytest.raises(StageError, match=r"pretrain.context is 32, but .* with encode.context = 16"):
        PackedBatches(sequences, 32, 1, seed=0)
