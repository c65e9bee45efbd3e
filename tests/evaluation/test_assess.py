"""The stage as a whole, on a tiny run made for real."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tasks.evaluation.assess import assess
from tasks.evaluation.bench import AnswerSampling, AssessParams, RewardSampling
from tasks.evaluation.estimates import NO_DATA, Estimate
from tasks.evaluation.perplexity import Perplexity
from tasks.evaluation.results import AssessReport
from tasks.parameters import validate
from tasks.resources import Resources
from tasks.stage import StageError, Tracker

QUESTIONS = ["What grinds?", "What turns the wheel?", "Is this new?"]
PARAMS = AssessParams(
    batch_size=4,
    rewards=RewardSampling(max_new_tokens=6),
    answers=AnswerSampling(prompts=QUESTIONS, max_new_tokens=6),
)


def assessed(paths, out: Path, params: AssessParams = PARAMS) -> AssessReport:
    names = ("tokens", "instructions", "base", "tuned", "aligned", "reward", "assessment")
    places = dict(zip(names, [*paths, out], strict=True))
    return assess(
        **places, params=params, resources=validate({}, Resources, "resources.yaml"), tracker=Tracker()
    )


@pytest.fixture(scope="module")
def assessment(run, tmp_path_factory) -> tuple[AssessReport, Path]:
    out = tmp_path_factory.mktemp("assessed") / "assessment"
    return assessed(run.paths(), out), out


def test_the_results_file_is_the_report(assessment):
    report, out = assessment
    assert AssessReport.model_validate_json((out / "results.json").read_text("utf-8")) == report


def test_the_same_run_is_assessed_to_the_same_bytes(run, assessment, tmp_path):
    _, out = assessment
    assessed(run.paths(), tmp_path / "again")
    for name in ("results.json", "samples.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def test_the_batch_size_changes_no_figure(run, assessment, tmp_path):
    report, _ = assessment
    other = assessed(run.paths(), tmp_path / "other", PARAMS.model_copy(update={"batch_size": 5}))
    assert other.metrics() == pytest.approx(report.metrics(), rel=1e-4, abs=1e-5)


def test_an_untrained_model_is_close_to_uniform_guessing(run, tmp_path):
    """With small initial weights every token has about the same probability, so perplexity is about V."""
    paths = {name: getattr(run, name) for name in run.__dataclass_fields__}
    paths["base"] = tmp_path / "base"
    shutil.copytree(run.base, paths["base"])
    config = json.loads((run.base / "config.json").read_text())
    (paths["base"] / "config.json").write_text(json.dumps(config | {"initializer_range": 0.001}))
    untrained = assessed(paths.values(), tmp_path / "out").validation.models["untrained"]
    assert isinstance(untrained, Perplexity)
    assert untrained.perplexity == pytest.approx(config["vocab_size"], rel=0.01)


def test_each_question_has_three_answers_and_says_where_it_is_known_from(assessment):
    _, out = assessment
    samples = [json.loads(line) for line in (out / "samples.jsonl").read_text("utf-8").splitlines()]
    assert [sample["prompt"] for sample in samples] == QUESTIONS
    assert [sample["split"] for sample in samples] == ["train", "held_out", "unseen"]
    assert [sample["reference"] for sample in samples] == ["The mill.", "The river.", None]
    assert all(list(sample["answers"]) == ["aligned", "base", "tuned"] for sample in samples)


def test_dialogues_too_long_for_the_model_are_counted(assessment):
    report, _ = assessment
    assert (report.answers.dialogues, report.answers.too_long) == (3, 1)


def test_checks_hold_the_measured_figures(assessment):
    report, _ = assessment
    base, unigram = report.validation.models["base"], report.validation.models["unigram"]
    assert isinstance(base, Perplexity)
    assert isinstance(unigram, Perplexity)
    check = report.checks["base_below_unigram"]
    assert check.value == pytest.approx(unigram.perplexity / base.perplexity, rel=1e-5)
    assert check.passed is False  # a random base is worse than counting
    gain = report.rewards.gain
    assert isinstance(gain, Estimate)
    assert report.checks["aligned_beats_tuned"].value == gain.value
    assert report.checks["aligned_beats_tuned"].passed == (gain.value > 0)


def test_models_that_are_the_same_neither_gain_nor_diverge(run, tmp_path):
    paths = (run.tokens, run.instructions, run.tuned, run.tuned, run.tuned, run.reward)
    report = assessed(paths, tmp_path / "out")
    assert isinstance(report.rewards.gain, Estimate)
    assert isinstance(report.rewards.kl_per_token, Estimate)
    assert report.rewards.gain.value == 0
    assert report.rewards.kl_per_token.value == pytest.approx(0, abs=1e-6)
    assert report.checks["tuned_beats_base"].passed is False  # equal is not better


def test_what_is_empty_is_no_data(run, tmp_path):
    rows = tmp_path / "instructions"
    rows.mkdir()
    (rows / "train.jsonl").write_text('{"instruction": "a", "output": "b", "split": "train"}\n')
    tokens = tmp_path / "tokens"
    shutil.copytree(run.tokens, tokens)
    index = json.loads((tokens / "index.json").read_text())
    index["splits"]["validation"] = []
    (tokens / "index.json").write_text(json.dumps(index))
    paths = (tokens, rows, run.base, run.tuned, run.aligned, run.reward)
    report = assessed(
        paths, tmp_path / "out", PARAMS.model_copy(update={"answers": AnswerSampling(max_new_tokens=6)})
    )
    assert set(report.validation.models.values()) == {NO_DATA}
    assert set(report.answers.models.values()) == {NO_DATA}
    assert report.rewards.models["aligned"].reward == report.rewards.kl_per_token == NO_DATA
    assert {check.passed for check in report.checks.values()} == {NO_DATA}
    assert (tmp_path / "out" / "samples.jsonl").read_text() == ""


def test_a_directory_without_a_model_is_named(run, tmp_path):
    (tmp_path / "reward").mkdir()
    paths = (*run.paths()[:-1], tmp_path / "reward")
    with pytest.raises(StageError, match="reward"):
        assessed(paths, tmp_path / "out")
    assert not (tmp_path / "out").exists()
