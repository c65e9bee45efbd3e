"""Measure the models of a run on what none of them was trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tasks.evaluation.bench import AssessParams, Bench
from tasks.evaluation.estimates import NO_DATA, Estimate, NoData, mean, ratio, significant
from tasks.evaluation.held_out import Instructions, distinct_prompts, read_instructions
from tasks.evaluation.perplexity import Perplexity, Window, choose_windows, summarise, window_spans
from tasks.evaluation.results import (
    AssessReport,
    Check,
    HeldOutAnswers,
    InstructionOrigin,
    Rewards,
    Sampled,
    ValidationText,
    check,
)
from tasks.evaluation.unigram import count_tokens, unigram_losses
from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, Tracker, run_as_stage, stage
from tasks.training.chat import ChatTokenizer, Message

if TYPE_CHECKING:
    from models.heads import RewardModel
    from models.transformer import CausalLM
    from tasks.corpus.encoding.index import TokenIndex

ModelName = Literal["base", "tuned", "aligned"]


@stage
def assess(
    tokens: Input,
    instructions: Input,
    base: Input,
    tuned: Input,
    aligned: Input,
    reward: Input,
    assessment: Output,
    params: AssessParams,
    resources: Resources,
    tracker: Tracker,
) -> AssessReport:
    """Measure base, tuned and aligned on held-out text, answers and prompts; write results and samples.

    ``assessment`` gets ``results.json`` (the report) and ``samples.jsonl`` (one question a line, with its
    answers). What cannot be measured because there is nothing to measure it on says "no data". A check that
    fails is reported, not raised.

    Raises:
        StageError: if an input is not what its stage writes, or the models do not fit each other.
    """
    from models.estimates import parameter_count
    from tasks.corpus.encoding.index import read_index
    from tasks.training.precision import choose_device

    bench = Bench(params, choose_device(resources.training), ChatTokenizer(tuned))
    index = read_index(tokens)
    questions = read_instructions(instructions, params.max_broken)

    base_model = bench.load(base)
    if index.vocab_size > base_model.config.vocab_size:
        raise StageError(
            f"{tokens} has tokens of a vocabulary of {index.vocab_size}, but {base} knows "
            f"{base_model.config.vocab_size}: they are not of one run"
        )
    validation = _validation(bench, tokens, index, base_model)
    tuned_model, aligned_model = bench.load(tuned), bench.load(aligned)
    models: dict[ModelName, CausalLM] = {"base": base_model, "tuned": tuned_model, "aligned": aligned_model}
    answers = _answers(bench, questions, models)
    rewards = _rewards(bench, questions, models, bench.load_reward(reward))
    samples = _samples(bench, questions, models)

    report = AssessReport(
        snapshot=index.snapshot,
        precision=params.precision,
        parameters=parameter_count(base_model.config),
        validation=validation,
        answers=answers,
        rewards=rewards,
        checks=_checks(validation, answers, rewards, params),
        instructions=[
            InstructionOrigin(source=source, licence=licence, rows=rows)
            for (source, licence), rows in sorted(questions.origins.items())
        ],
        instructions_broken=questions.broken,
    )
    assessment.mkdir()
    _write(assessment / "results.json", report.model_dump_json(indent=2) + "\n")
    lines = (json.dumps(sample, ensure_ascii=False, sort_keys=True) + "\n" for sample in samples)
    _write(assessment / "samples.jsonl", "".join(lines))
    tracker.tag(snapshot=index.snapshot, precision=params.precision)
    return report


def _validation(bench: Bench, tokens: Path, index: TokenIndex, base: CausalLM) -> ValidationText:
    from models.initialization import initialise
    from models.transformer import CausalLM
    from tasks.corpus.encoding.token_bytes import token_bytes
    from tasks.evaluation.losses import scored_counts
    from tasks.evaluation.tokens import document_bounds, open_split
    from tasks.training.token_files import PackedSequences

    limit = base.config.max_position_embeddings
    context = min(bench.params.context or limit, limit)
    stream = open_split(tokens, index, "validation")
    spans = list(window_spans(*document_bounds(stream), context))
    chosen = choose_windows(spans, bench.params.validation_tokens, bench.params.seed)
    windows = [Window(stream.read(start, end - start)) for start, end in chosen] if stream else []
    counts_N = scored_counts(windows)

    untrained = CausalLM(base.config)
    initialise(untrained, base.config, bench.params.seed)
    counts_V = count_tokens(PackedSequences(tokens, index).targets(), base.config.vocab_size)
    losses = {
        "base": bench.losses(base, windows),
        "untrained": bench.losses(untrained.to(bench.device).eval(), windows),
        "unigram": unigram_losses(counts_V, windows),
    }
    text_bytes, bytes_V = None, token_bytes(tokens)
    if bytes_V is not None:
        text_bytes = sum(int(bytes_V[window.tokens[1:]].sum()) for window in windows)
    return ValidationText(
        context=context,
        stride=context,
        windows=len(windows),
        windows_available=len(spans),
        tokens=int(counts_N.sum()),
        tokens_available=sum(end - start - 1 for start, end in spans),
        text_bytes=text_bytes,
        models={name: summarise(loss_N, counts_N, text_bytes) for name, loss_N in losses.items()},
    )


def _answers(bench: Bench, questions: Instructions, models: dict[ModelName, CausalLM]) -> HeldOutAnswers:
    from tasks.evaluation.losses import scored_counts

    context = min(model.config.max_position_embeddings for model in models.values())
    encoded = [bench.chat.dialogue(dialogue, context) for dialogue in questions.held_out]
    examples = [example for example in encoded if example is not None]
    counts_N = scored_counts(examples)
    losses = {name: bench.losses(model, examples) for name, model in models.items()}
    return HeldOutAnswers(
        dialogues=len(examples),
        too_long=len(encoded) - len(examples),
        tokens=int(counts_N.sum()),
        models={name: summarise(loss_N, counts_N, None) for name, loss_N in losses.items()},
        gain=ratio(losses["base"] - losses["tuned"], counts_N),
    )


def _rewards(
    bench: Bench, questions: Instructions, models: dict[ModelName, CausalLM], reward: RewardModel
) -> Rewards:
    from tasks.evaluation.responses import divergences, score

    how = bench.params.rewards
    prompts = distinct_prompts(questions.held_out)
    order = np.random.default_rng(bench.params.seed).permutation(len(prompts))[: how.prompts]
    prompts = [prompts[index] for index in sorted(order.tolist())]
    batch = {"batch_size": bench.params.batch_size, "pad_id": bench.chat.pad_id, "cast": bench.cast}
    sampled, rewards_N, responses = {}, {}, {}
    for name in ("tuned", "aligned"):
        responses[name] = bench.respond(models[name], prompts, how)
        rewards_N[name] = score(reward, responses[name], eos_id=bench.chat.eos_id, **batch)
        sampled[name] = Sampled(
            reward=mean(rewards_N[name]),
            ended=mean(np.array([response.ended for response in responses[name]], dtype=np.float64)),
            length=mean(np.array([len(response.tokens) for response in responses[name]], dtype=np.float64)),
        )
    kl_N = divergences(models["aligned"], models["tuned"], responses["aligned"], **batch)
    tokens_N = np.array([len(response.tokens) for response in responses["aligned"]])
    return Rewards(
        prompts=len(prompts),
        temperature=how.temperature,
        top_p=how.top_p,
        max_new_tokens=how.max_new_tokens,
        models=sampled,
        gain=mean(rewards_N["aligned"] - rewards_N["tuned"]),
        kl_per_token=ratio(kl_N, tokens_N),
        kl_per_response=mean(kl_N),
    )


def _samples(
    bench: Bench, questions: Instructions, models: dict[ModelName, CausalLM]
) -> list[dict[str, Any]]:
    """One record for each prompt: whether it was trained on, the reference answer, and three answers."""
    how = bench.params.answers
    asked = [[Message(role="user", content=prompt)] for prompt in how.prompts]
    given = {name: bench.respond(model, asked, how) for name, model in models.items()}
    samples = []
    for index, prompt in enumerate(how.prompts):
        split, reference = questions.references.get(prompt, ("unseen", None))
        answers = {}
        for name, responses in given.items():
            response = responses[index]
            text = bench.chat.decode(response.tokens)
            answers[name] = {"text": text, "tokens": len(response.tokens), "ended": response.ended}
        samples.append({"prompt": prompt, "split": split, "reference": reference, "answers": answers})
    return samples


def _checks(
    validation: ValidationText, answers: HeldOutAnswers, rewards: Rewards, params: AssessParams
) -> dict[str, Check]:
    base, unigram = validation.models["base"], validation.models["unigram"]
    times_below: float | NoData = NO_DATA
    if isinstance(base, Perplexity) and isinstance(unigram, Perplexity):
        times_below = significant(unigram.perplexity / base.perplexity)
    return {
        "base_below_unigram": check(
            "Validation perplexity of the unigram baseline, divided by that of the base model",
            times_below,
            ">=",
            params.unigram_factor,
        ),
        "tuned_beats_base": check(
            "Loss on held-out answers: base less tuned, nats per token",
            answers.gain.value if isinstance(answers.gain, Estimate) else NO_DATA,
            ">",
            0.0,
        ),
        "aligned_beats_tuned": check(
            "Mean reward on held-out prompts: aligned less tuned",
            rewards.gain.value if isinstance(rewards.gain, Estimate) else NO_DATA,
            ">",
            0.0,
        ),
    }


def _write(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    run_as_stage(assess)
