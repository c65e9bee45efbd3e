"""The model card of a release, and the summary of licences beside it, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml

from models.config import ModelConfig
from models.estimates import parameter_count
from tasks.corpus.snapshot import Manifest
from tasks.evaluation.estimates import Estimate, NoData
from tasks.evaluation.perplexity import Perplexity
from tasks.evaluation.results import AssessReport
from tasks.release.sources import LicensedSource


@dataclass(frozen=True)
class CardFacts:
    """All that a card is written from."""

    name: str
    version: str
    license: str
    dtype: str
    config: ModelConfig
    manifest: Manifest
    sources: Sequence[LicensedSource]
    results: AssessReport


def model_card(facts: CardFacts) -> str:
    """README.md of the release: front matter, then what a user of the model must know."""
    sections = [
        _front_matter(facts),
        f"# {facts.name} {facts.version}",
        _summary(facts),
        "## Use",
        _use(facts),
        "## Data",
        _data(facts),
        "## Training",
        _training(facts),
        "## Evaluation",
        _evaluation(facts.results),
        "## Intended use and limits",
        _limits(facts),
    ]
    return "\n\n".join(section.strip("\n") for section in sections) + "\n"


def licences_summary(facts: CardFacts) -> str:
    """LICENSES.md: the licence of every source of documents and of instructions."""
    documents = [(s.source, s.license, f"{s.documents:,}") for s in facts.sources]
    rows = [(row.source, row.licence, f"{row.rows:,}") for row in facts.results.instructions]
    return "\n\n".join(
        [
            f"# Licences of the texts behind {facts.name} {facts.version}",
            "The weights were computed from the texts below. Whoever passes them on should read these "
            "licences; this file lists them and judges nothing.",
            f"## Documents of snapshot `{facts.manifest.snapshot[:12]}`",
            _table(("Source", "Licence", "Documents"), documents, "llr") if documents else "no data",
            "## Instructions and dialogues",
            _table(("Source", "Licence", "Rows"), rows, "llr") if rows else "no data",
        ]
    ) + "\n"  # fmt: skip


def _front_matter(facts: CardFacts) -> str:
    languages = [
        name for name in facts.manifest.counts.get("language", {}) if name.isalpha() and len(name) == 2
    ]
    content = {
        "license": facts.license,
        "language": sorted(languages),
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["llama", "ppo", "gristmill"],
        "version": facts.version,
    }
    return "---\n" + yaml.safe_dump(content, sort_keys=False, allow_unicode=True) + "---"


def _summary(facts: CardFacts) -> str:
    config = facts.config
    return (
        f"A decoder with {parameter_count(config):,} parameters, pretrained on "
        "documents, tuned on instructions and aligned with proximal policy optimisation. It was "
        f"made from snapshot `{facts.manifest.snapshot}`."
    )


def _use(facts: CardFacts) -> str:
    return """```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("path/to/this/directory")
model = AutoModelForCausalLM.from_pretrained("path/to/this/directory")
messages = [{"role": "user", "content": "What is Python?"}]
inputs = tokenizer.apply_chat_template(
    messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
)
print(tokenizer.decode(model.generate(**inputs)[0], skip_special_tokens=True))
```

The chat template knows the roles user and assistant and no system message."""


def _data(facts: CardFacts) -> str:
    counts = facts.manifest.counts
    languages = [
        (name or "und", f"{number:,}") for name, number in _largest_first(counts.get("language", {}))
    ]
    sources = [(s.source, s.license, f"{s.documents:,}") for s in facts.sources]
    documents = sum(file.rows for file in facts.manifest.files)
    return "\n\n".join(
        [
            f"{documents:,} documents; repeated ones, where a source is seen more than once an epoch, are "
            "counted each time. The language `zxx` is code.",
            _table(("Source", "Licence", "Documents"), sources, "llr") if sources else "no data",
            _table(("Language", "Documents"), languages, "lr") if languages else "no data",
        ]
    )  # fmt: skip


def _training(facts: CardFacts) -> str:
    config = facts.config
    rows = [
        ("Layers", config.num_hidden_layers),
        ("Hidden size", config.hidden_size),
        ("Attention heads (key-value heads)", f"{config.num_attention_heads} ({config.num_key_value_heads})"),
        ("Vocabulary", f"{config.vocab_size:,}"),
        ("Context", f"{config.max_position_embeddings:,} tokens"),
        ("Weights", facts.dtype),
    ]
    steps = ", ".join(entry["stage"] for entry in facts.manifest.lineage)
    return "\n\n".join(
        [
            _table(("", ""), [(name, str(value)) for name, value in rows], "lr"),
            f"The documents passed the stages {steps or 'no data'}. Their parameters stand in the snapshot's "
            "manifest; `release.json` has a hash of each. Instructions came from the sources that "
            "`LICENSES.md` lists.",
        ]
    )


def _evaluation(results: AssessReport) -> str:
    text, answers, rewards = results.validation, results.answers, results.rewards
    perplexities = [
        (name, _perplexity(value), _bits(value))
        for name, value in _in_order(text.models, "base untrained unigram")
    ]
    losses = [
        (name, _loss(value), _perplexity(value))
        for name, value in _in_order(answers.models, "base tuned aligned")
    ]
    sampled = [
        (name, estimate(value.reward), estimate(value.ended), estimate(value.length))
        for name, value in _in_order(rewards.models, "tuned aligned")
    ]
    checks = [
        (check.statement, str(check.value), f"{check.relation} {check.bound:g}", _verdict(check.passed))
        for check in results.checks.values()
    ]
    return "\n\n".join(
        [
            f"Held-out documents: {text.tokens:,} of {text.tokens_available:,} tokens, each scored once in "
            f"windows of {text.context} tokens (stride {text.stride}).",
            _table(("Model", "Perplexity", "Bits per byte"), perplexities, "lrr"),
            f"Held-out answers: {answers.dialogues:,} dialogues, {answers.tokens:,} answer tokens.",
            _table(("Model", "Loss, nats per token", "Perplexity"), losses, "lrr"),
            f"Responses to {rewards.prompts:,} held-out prompts at temperature {rewards.temperature:g}; "
            f"KL of aligned to tuned: {estimate(rewards.kl_per_token)} nats per token.",
            _table(("Model", "Mean reward", "Ended by itself", "Tokens"), sampled, "lrrr"),
            _table(("Check", "Value", "Required", "Result"), checks, "lrrl"),
            "± is one standard error.",
        ]
    )


def _limits(facts: CardFacts) -> str:
    return (
        "The model shows that the journey from documents to a released model works; with "
        f"{parameter_count(facts.config):,} parameters it knows little, states falsehoods fluently, and "
        "repeats the views of its sources. Use it to study training and alignment. Do not use it to answer "
        "questions that matter, and do not show its output to people as fact. The reward model that steered "
        "its alignment is as small as itself and can be pleased by answers that people would not like."
    )


def estimate(value: Estimate | NoData) -> str:
    """A mean with its standard error, or "no data"."""
    if not isinstance(value, Estimate):
        return value
    error = "" if value.standard_error is None else f" ± {value.standard_error:.2g}"
    return f"{value.value:.4g}{error}"


def _perplexity(value: Perplexity | NoData) -> str:
    return f"{value.perplexity:,.1f}" if isinstance(value, Perplexity) else value


def _bits(value: Perplexity | NoData) -> str:
    if not isinstance(value, Perplexity) or value.bits_per_byte is None:
        return "no data"
    return f"{value.bits_per_byte:.3f}"


def _loss(value: Perplexity | NoData) -> str:
    return estimate(value.loss) if isinstance(value, Perplexity) else value


def _verdict(passed: bool | NoData) -> str:
    return ("passed" if passed else "failed") if isinstance(passed, bool) else passed


def _in_order(models: dict, names: str) -> list[tuple]:
    return [(name, models[name]) for name in names.split() if name in models]


def _largest_first(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]], align: str) -> str:
    rules = ["---:" if side == "r" else "---" for side in align]
    lines = [list(head), rules, *[[cell.replace("|", "\\|") for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
