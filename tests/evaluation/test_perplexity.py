"""Perplexity on running text, held against transformers and against counting by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.corpus.encoding.index import read_index
from tasks.corpus.encoding.token_bytes import token_bytes
from tasks.evaluation.estimates import NO_DATA
from tasks.evaluation.losses import scored_counts, sequence_losses
from tasks.evaluation.perplexity import Perplexity, Window, choose_windows, summarise, window_spans
from tasks.evaluation.tokens import document_bounds, open_split
from tasks.evaluation.unigram import count_tokens, unigram_losses
from tasks.training.chat import ChatTokenizer, Message
from tasks.training.token_files import PackedSequences, TokenStream

CONTEXT, MODEL_CONTEXT = 16, 48
TRAIN = ["The mill grinds the grain.", "The miller went to the mill by the river; the river was cold.", "été"]
VALIDATION = ["The river turns the wheel. " * 9, "Grain.", "", "Flour — à la meule, naïve 水 😀."]


def validation_of(tokens: Path) -> TokenStream:
    stream = open_split(tokens, read_index(tokens), "validation")
    assert stream is not None
    return stream


@pytest.fixture
def windows(run) -> list[Window]:
    stream = validation_of(run.tokens)
    bounds = document_bounds(stream)
    return [Window(stream.read(start, end - start)) for start, end in window_spans(*bounds, CONTEXT)]


def test_every_token_but_the_first_of_each_document_is_scored_once():
    starts_D, ends_D = np.array([0, 40, 42, 59]), np.array([40, 42, 59, 60])
    scored = [
        position
        for start, end in window_spans(starts_D, ends_D, CONTEXT)
        for position in range(start + 1, end)
    ]
    assert sorted(scored) == sorted(set(range(60)) - set(starts_D.tolist()))


def test_no_window_is_longer_than_the_context_and_the_token_it_predicts(windows):
    assert max(len(window.tokens) for window in windows) == CONTEXT + 1


def test_perplexity_is_that_of_transformers(run, base_model, windows):
    from transformers import AutoModelForCausalLM

    reference = AutoModelForCausalLM.from_pretrained(run.base)
    total = tokens = 0.0
    with torch.no_grad():
        for window in windows:
            ids = torch.tensor(window.tokens.astype(np.int64))[None]
            total += float(reference(ids, labels=ids).loss.double()) * (ids.shape[1] - 1)
            tokens += ids.shape[1] - 1
    measured = summarise(
        sequence_losses(base_model, windows, batch_size=5), scored_counts(windows), text_bytes=100
    )
    assert isinstance(measured, Perplexity)
    assert measured.perplexity == pytest.approx(math.exp(total / tokens), rel=1e-5)
    assert measured.loss.value == pytest.approx(total / tokens, rel=1e-5)
    assert measured.bits_per_byte == pytest.approx(total / math.log(2) / 100, rel=1e-5)


@pytest.mark.parametrize("batch_size", [1, 4, 5, 100])
def test_the_batch_size_changes_nothing(base_model, windows, batch_size):
    alone = sequence_losses(base_model, windows, batch_size=1)
    np.testing.assert_allclose(sequence_losses(base_model, windows, batch_size=batch_size), alone, rtol=2e-5)


def test_only_answers_and_their_ends_are_scored_in_a_dialogue(run, base_model):
    chat = ChatTokenizer(run.tokens)
    example = chat.dialogue(
        [Message(role="user", content="Who?"), Message(role="assistant", content="The mill.")]
    )
    assert example is not None
    answer = [*chat.encode("The mill."), chat.eos_id]
    with torch.no_grad():
        logits_TV = base_model(torch.tensor([example.tokens]))[0]
    expected = -sum(
        float(logits_TV[-len(answer) - 1 + i].double().log_softmax(-1)[token])
        for i, token in enumerate(answer)
    )
    (loss,) = sequence_losses(base_model, [example], batch_size=1)
    assert scored_counts([example]).tolist() == [len(answer)]
    assert loss == pytest.approx(expected, rel=1e-5)


def test_the_unigram_loss_is_that_of_a_naive_count(run, windows):
    index, chat = read_index(run.tokens), ChatTokenizer(run.tokens)
    vocabulary = index.vocab_size
    seen = []
    for text in TRAIN:
        document = [chat.bos_id, *chat.encode(text), chat.eos_id]
        # A sequence holds CONTEXT + 1 tokens, of which nothing predicts the first.
        for first in range(0, len(document), MODEL_CONTEXT + 1):
            seen += document[first : first + MODEL_CONTEXT + 1][1:]
    expected = [
        -sum(
            math.log((seen.count(token) + 1) / (len(seen) + vocabulary))
            for token in window.tokens[1:].tolist()
        )
        for window in windows
    ]
    counts_V = count_tokens(PackedSequences(run.tokens, index).targets(), vocabulary)
    np.testing.assert_allclose(unigram_losses(counts_V, windows), expected, rtol=1e-12)


def test_the_bytes_of_all_tokens_are_the_bytes_of_the_text(run):
    bytes_V = token_bytes(run.tokens)
    assert bytes_V is not None
    stream = validation_of(run.tokens)
    assert int(bytes_V[stream.read(0, len(stream))].sum()) == stream.bytes


def test_the_bounds_of_documents_are_those_of_the_texts(run):
    stream, chat = validation_of(run.tokens), ChatTokenizer(run.tokens)
    found = [
        stream.read(start, end - start).tolist() for start, end in zip(*document_bounds(stream), strict=True)
    ]
    assert found == [[chat.bos_id, *chat.encode(text), chat.eos_id] for text in VALIDATION]


def test_a_limit_takes_whole_windows_and_each_once():
    spans = [(start, start + 11) for start in range(0, 1000, 10)]
    chosen = choose_windows(spans, limit=95, seed=3)
    assert len(chosen) == len(set(chosen)) == 10
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(spans)
    assert chosen == choose_windows(spans, limit=95, seed=3) != choose_windows(spans, limit=95, seed=4)
    assert choose_windows(spans, limit=10**9, seed=3) == choose_windows(spans, limit=None, seed=3) == spans


def test_nothing_scored_is_no_data(base_model):
    losses_N = sequence_losses(base_model, [], batch_size=4)
    assert summarise(losses_N, scored_counts([]), text_bytes=0) == NO_DATA
