import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.stage import StageError
from tasks.training.batches import PackedBatches, TokenStream, read_index, validation_batches


def stream_of(directory: Path, split: str = "train") -> TokenStream:
    return TokenStream(directory, read_index(directory), split)


def all_tokens(directory: Path, split: str = "train") -> np.ndarray:
    return np.concatenate([np.fromfile(path, "<u2") for path in sorted(directory.glob(f"{split}-*.bin"))])


def test_a_read_crosses_files(tiny_tokens):
    assert stream_of(tiny_tokens).read(690, 30).tolist() == all_tokens(tiny_tokens)[690:720].tolist()


def test_a_read_ends_with_the_split(tiny_tokens):
    assert stream_of(tiny_tokens).read(1195, 30).tolist() == all_tokens(tiny_tokens)[1195:].tolist()


def test_a_batch_is_a_pure_function_of_seed_and_step(tiny_tokens):
    forwards = PackedBatches(stream_of(tiny_tokens), 16, 4, seed=3)
    direct = PackedBatches(stream_of(tiny_tokens), 16, 4, seed=3)
    batches = [forwards.at_step(step) for step in range(1, 41)]
    for step in (40, 7, 1):
        assert all(torch.equal(direct.at_step(step)[name], batches[step - 1][name]) for name in batches[0])


def test_another_seed_is_another_order(tiny_tokens):
    orders = [
        PackedBatches(stream_of(tiny_tokens), 16, 75, seed=seed).window_numbers(1).tolist() for seed in (0, 1)
    ]
    assert orders[0] != orders[1]


def test_every_window_comes_once_an_epoch_even_where_a_batch_spans_two(tiny_tokens):
    batches = PackedBatches(stream_of(tiny_tokens), 16, 7, seed=0)
    assert batches.windows == 75
    places = np.concatenate([batches.window_numbers(step) for step in range(1, 34)])
    for epoch in range(3):
        assert sorted(places[epoch * 75 : (epoch + 1) * 75]) == list(range(75))


def test_targets_are_the_next_tokens(tiny_tokens):
    tokens = all_tokens(tiny_tokens).astype(np.int64)
    batches = PackedBatches(stream_of(tiny_tokens), 16, 4, seed=0)
    batch = batches.at_step(2)
    for row, window in enumerate(batches.window_numbers(2)):
        assert batch["tokens"][row].tolist() == tokens[window * 16 : window * 16 + 16].tolist()
        assert batch["targets"][row].tolist() == tokens[window * 16 + 1 : window * 16 + 17].tolist()
    assert batch["mask"].all()


def test_an_epoch_has_no_target_twice(tiny_tokens):
    stream = stream_of(tiny_tokens)
    marked = PackedBatches(stream, 16, 75, seed=0)
    starts = Counter(
        int(window) * 16 + offset for window in marked.window_numbers(1) for offset in range(1, 17)
    )
    assert set(starts.values()) == {1}
    assert len(starts) == 1200


def test_validation_scores_every_token_but_the_first_once_in_order(tiny_tokens):
    tokens = all_tokens(tiny_tokens, "validation")
    batches = list(validation_batches(stream_of(tiny_tokens, "validation"), 16, 4))
    scored = torch.cat([batch["targets"][batch["mask"]] for batch in batches])
    assert scored.tolist() == tokens[1:].tolist()


@pytest.mark.parametrize("size", [0, 999, 1398, 1402])
def test_a_file_of_another_size_than_the_index_says_is_named(tiny_tokens, size):
    path = tiny_tokens / "train-00000.bin"
    path.write_bytes(path.read_bytes().ljust(size, b"\0")[:size])
    with pytest.raises(StageError, match=rf"train-00000.bin has {size} bytes, but .* 700 tokens"):
        stream_of(tiny_tokens)


def test_a_missing_file_is_named(tiny_tokens):
    (tiny_tokens / "train-00001.bin").unlink()
    with pytest.raises(StageError, match=r"train-00001.bin does not exist"):
        stream_of(tiny_tokens)


def test_a_token_outside_the_vocabulary_names_the_file(tiny_tokens):
    tokens = np.fromfile(tiny_tokens / "train-00001.bin", "<u2")
    tokens[5] = 320
    tokens.tofile(tiny_tokens / "train-00001.bin")
    with pytest.raises(StageError, match=r"train-00001.bin holds token 320, but the vocabulary has 320"):
        stream_of(tiny_tokens).read(0, 1201)


def test_fewer_tokens_than_a_window_is_an_error_with_both_numbers(tiny_tokens):
    with pytest.raises(StageError, match=r"has 1201 tokens to train on, .*context \+ 1 = 1202"):
        PackedBatches(stream_of(tiny_tokens), 1201, 1, seed=0)


def test_a_split_that_is_not_there_is_named(tiny_tokens):
    with pytest.raises(StageError, match=r"index.json lists no files of the split `held_out`"):
        stream_of(tiny_tokens, "held_out")


@pytest.mark.parametrize("content", ["{", "{}", '{"dtype": "int8"}'])
def test_a_broken_index_is_named(tiny_tokens, content):
    (tiny_tokens / "index.json").write_text(content)
    with pytest.raises(StageError, match=r"index.json is not an index of token files"):
        read_index(tiny_tokens)


def test_32_bit_tokens_are_read_too(tiny_tokens):
    expected = all_tokens(tiny_tokens).tolist()
    for path in tiny_tokens.glob("*.bin"):
        np.fromfile(path, "<u2").astype("<u4").tofile(path)
    index = json.loads((tiny_tokens / "index.json").read_text()) | {"dtype": "uint32"}
    (tiny_tokens / "index.json").write_text(json.dumps(index))
    assert stream_of(tiny_tokens).read(0, 1201).tolist() == expected
