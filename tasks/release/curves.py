"""The curves of training, drawn from the histories beside the models."""

from __future__ import annotations

from tasks.evaluation.perplexity import Perplexity
from tasks.release.charts import Chart, Line, line_chart
from tasks.release.evidence import Evidence, Point


def pretraining_chart(evidence: Evidence) -> Chart | None:
    """Training and validation loss with the level of the unigram baseline."""
    unigram = evidence.results.validation.models.get("unigram") if evidence.results else None
    references = [("unigram baseline", unigram.loss.value)] if isinstance(unigram, Perplexity) else []
    return line_chart(
        "Loss, nats per token", _losses(evidence.histories.get("pretrain", [])), references=references
    )


def alignment_charts(evidence: Evidence) -> list[tuple[str, Chart | None]]:
    """Small multiples in the order of the journey, each under its heading."""
    sft, reward, ppo = (evidence.histories.get(stage, []) for stage in ("sft", "reward", "ppo"))

    def update_chart(title: str, key: str) -> Chart | None:
        return line_chart(title, [Line(title, _series(ppo, key), "first")], x_label="update")

    accuracy = Line("held-out pairs", _series(reward, "validation_accuracy"), "second")
    return [
        ("Tuning: loss, nats per answer token", line_chart("Loss", _losses(sft))),
        ("Reward model: loss, nats per pair", line_chart("Loss", _losses(reward))),
        ("Reward model: share of pairs ranked rightly", line_chart("Accuracy", [accuracy])),
        ("Alignment: reward", update_chart("Reward", "reward")),
        ("Alignment: KL to tuned, nats per token", update_chart("KL", "kl_per_token")),
        ("Alignment: entropy of the policy, nats", update_chart("Entropy", "entropy")),
    ]


def _losses(history: list[Point]) -> list[Line]:
    return [
        Line("training", _series(history, "loss"), "first"),
        Line("validation", _series(history, "validation_loss"), "second"),
    ]


def _series(history: list[Point], name: str) -> list[tuple[float, float]]:
    points = ((point.step, point.value(name)) for point in history)
    return [(float(step), value) for step, value in points if value is not None]
