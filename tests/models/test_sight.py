"""Windows, packed documents and attention both ways, against masks written out."""

import pytest
import torch
from torch.nn import functional as F

from models.cache import KeyValueCache
from models.config import ModelConfig
from models.masks import Sight, document_numbers
from models.transformer import CausalLM
from models.window import block_length, windowed_attention


def tokens(config: ModelConfig, batch: int, length: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, config.vocab_size, (batch, length), generator=generator)


@pytest.fixture
def sliding(config: ModelConfig, make) -> CausalLM:
    pattern = ("sliding_attention", "full_attention")
    return make(config.model_copy(update={"sliding_window": 5, "layer_types": pattern}))


def heads(batch: int, number: int, length: int, seed: int) -> torch.Tensor:
    return torch.randn(batch, number, length, 8, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("window", [1, 3, 64, 130])
@pytest.mark.parametrize("length", [65, 300])
def test_attention_in_blocks_is_that_under_one_mask_with_its_gradients(window, length):
    inputs = [heads(2, 4, length, 1), heads(2, 2, length, 2), heads(2, 2, length, 3)]
    ours = [tensor.clone().requires_grad_() for tensor in inputs]
    whole = [tensor.clone().requires_grad_() for tensor in inputs]
    segments_BT = document_numbers([[0, 20, 37], [50]], length)
    sight = Sight(segments_BT=segments_BT)
    blocked = windowed_attention(ours[0], ours[1], ours[2], window, sight)
    places = torch.arange(length)
    distance = places[:, None] - places
    visible = (distance >= 0) & (distance < window) & (segments_BT[:, :, None] == segments_BT[:, None, :])
    expected = F.scaled_dot_product_attention(*whole, attn_mask=visible[:, None], enable_gqa=True)
    torch.testing.assert_close(blocked, expected)
    weights = heads(2, 4, length, 4)
    (blocked * weights).sum().backward()
    (expected * weights).sum().backward()
    for mine, theirs in zip(ours, whole, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_a_block_is_shorter_than_what_it_sees():
    assert block_length(1024) == 512


@pytest.mark.parametrize("length", [4, 9, 30])
def test_a_token_is_changed_by_its_window_alone(config, make, length):
    model = make(config.model_copy(update={"sliding_window": 4, "num_hidden_layers": 1}))
    ours = tokens(config, 1, length)
    for changed in range(length):
        other = ours.clone()
        other[0, changed] = (other[0, changed] + 1) % config.vocab_size
        differs = (model(ours) != model(other)).any(-1)[0].nonzero().flatten().tolist()
        assert differs == list(range(changed, min(changed + 4, length)))


@pytest.mark.parametrize("chunks", [[1] * 23, [3, 1, 1, 9, 1, 8], [23], [4, 19], [11, 12]])
def test_a_cache_of_window_size_gives_what_one_pass_gives(sliding, chunks):
    ours = tokens(sliding.config, 2, 23)
    cache = KeyValueCache(sliding.config, batch=2, length=23)
    assert [keys.shape[2] for keys in cache.keys_BKSD] == [5, 23]
    parts = [sliding(chunk, cache=cache) for chunk in ours.split(chunks, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), sliding(ours), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("chunks", [[12], [7, 5], [9, 1, 1, 1]])
def test_a_left_padded_row_in_a_window_equals_the_row_alone(sliding, chunks):
    lengths = [12, 3, 8]
    rows = [tokens(sliding.config, 1, length, seed=length) for length in lengths]
    padded_BT = torch.cat([F.pad(row, (12 - row.shape[1], 0), value=50) for row in rows])
    padding_BT = torch.arange(12) < 12 - torch.tensor(lengths)[:, None]
    cache, parts, end = KeyValueCache(sliding.config, batch=3, length=12), [], 0
    for chunk in padded_BT.split(chunks, dim=1):
        end += chunk.shape[1]
        parts.append(sliding(chunk, padding_BT=padding_BT[:, :end], cache=cache))
    for row, length, alone in zip(torch.cat(parts, dim=1), lengths, rows, strict=True):
        torch.testing.assert_close(row[12 - length :], sliding(alone)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("window", [None, 3, 30])
def test_documents_of_a_packed_row_are_computed_as_if_alone(config, make, window):
    model = make(config.model_copy(update={"sliding_window": window}))
    documents = [tokens(config, 1, length, seed=length) for length in (7, 1, 11)]
    packed_BT = torch.cat(documents, dim=1)
    logits_BTV = model(packed_BT, segments_BT=document_numbers([[0, 7, 8]], 19))
    alone_BTV = torch.cat([model(document) for document in documents], dim=1)
    torch.testing.assert_close(logits_BTV, alone_BTV, atol=1e-5, rtol=1e-5)


def test_a_bidirectional_model_looks_both_ways_and_not_at_padding(config, make):
    model = make(config.model_copy(update={"is_causal": False}))
    ours = tokens(config, 1, 6)
    later = ours.clone()
    later[0, 5] = (later[0, 5] + 1) % config.vocab_size
    assert (model(ours)[0, 0] != model(later)[0, 0]).any()
    padded_BT = F.pad(ours, (0, 3), value=9)
    padding_BT = torch.arange(9)[None] >= 6
    torch.testing.assert_close(
        model(padded_BT, padding_BT=padding_BT)[:, :6], model(ours), atol=1e-5, rtol=1e-5
    )


def test_a_bidirectional_model_has_no_use_for_a_cache(config, make):
    model = make(config.model_copy(update={"is_causal": False}))
    with pytest.raises(ValueError, match="is_causal false"):
        model(tokens(config, 1, 3), cache=KeyValueCache(config, 1, 8))


def test_segments_with_a_cache_are_refused(model, config):
    with pytest.raises(ValueError, match="segments_BT are of whole rows"):
        model(tokens(config, 1, 3), segments_BT=torch.zeros(1, 3), cache=KeyValueCache(config, 1, 8))


@pytest.mark.parametrize("choice", [{}, {"sliding_window": 4}, {"num_local_experts": 4}, {"norm": "layer"}])
def test_recomputing_activations_gives_the_same_gradients(config, make, choice):
    kept, recomputed = (make(config.model_copy(update=choice)) for _ in range(2))
    recomputed.model.checkpoint_activations = True
    ours = tokens(config, 2, 30)
    for model in (kept, recomputed):
        model(ours).logsumexp(-1).sum().backward()
    for mine, theirs in zip(recomputed.parameters(), kept.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("choice", ["attention_dropout", "residual_dropout", "embedding_dropout"])
def test_dropout_is_in_training_only_and_follows_the_seed(config, make, choice):
    model = make(config.model_copy(update={choice: 0.4}))
    ours = tokens(config, 1, 12)
    drawn = [model.train()(ours) for _ in (torch.manual_seed(1), torch.manual_seed(1))]
    torch.manual_seed(1)
    first = model(ours)
    torch.manual_seed(1)
    assert torch.equal(model(ours), first)
    assert not torch.equal(drawn[0], drawn[1])
    torch.testing.assert_close(model.eval()(ours), make(config)(ours))
