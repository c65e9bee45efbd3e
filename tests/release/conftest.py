"""A small finished run: layers with ledgers, histories, an assessment, and a model that loads.

`make_run` is also good for looking: it writes what a real run writes, at the size of an example.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SNAPSHOT_LINEAGE = [{"stage": "collect", "parameters": {"sources": 3}}, {"stage": "clean", "parameters": {}}]
HOSTILE = '<script>alert(1)</script><img src=https://example.org/x.png onerror=alert(2)> & "quotes"'
TALE = (
    "The mill stood where the river bends. Every morning the miller opened the sluice, and the wheel began "
    "to turn, slowly at first, then with the patience of things that never stop. Grain came in sacks from "
    "the villages; flour went out in sacks to the town. {} Nobody asked what the stones thought of it."
)


def identifier(*parts: object) -> str:
    return hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def document(name: str, text: str, source: str, language: str, license: str = "CC-BY-4.0") -> dict[str, Any]:
    return {
        "id": identifier(name),
        "content": identifier(text),
        "text": text,
        "source": source,
        "origin": f"{source}/{name}.txt",
        "kind": "book",
        "domain": "general",
        "language": language,
        "license": license,
        "split": "train",
    }


def make_run(root: Path) -> tuple[Path, Path, Path]:
    """Write data/, artifacts/, reports/ and reviews/ under ``root`` and return the first three."""
    data, artifacts, reports = (root / name for name in ("data", "artifacts", "reports"))
    _layers(data)
    _reports(reports)
    _histories(artifacts)
    snapshot = _snapshot(data / "snapshot")
    _assessment(artifacts / "assessment", snapshot)
    write_aligned(artifacts / "aligned")
    _reviews(root / "reviews")
    return data, artifacts, reports


def _layers(data: Path) -> None:
    kept_text = TALE.format("The miller's cat kept the accounts.")
    near = TALE.format("The miller's daughter kept the books.")
    documents = [
        document("mill", kept_text, "books", "en"),
        document("mill-2", near, "books", "en"),
        document("mill-3", kept_text, "manuals", "en"),
        document("hostile", HOSTILE + kept_text.replace("mill", "wheel"), "manuals", "en"),
        document("hostile-2", HOSTILE + kept_text.replace("mill", "wheel") + HOSTILE, "manuals", "en"),
        document("moulin", "Le moulin se dressait au coude de la rivière.", "books", "fr"),
    ]
    _parquet(data / "clean" / "documents", documents)
    write(data / "profile.json", _profile(documents))
    _ledger(data / "raw" / "ledger", "collect", [("broken-json", None, None, "quarantined", "line 14", 3)])
    _ledger(data / "scored" / "ledger", "score", [("empty", 0, 1, "removed", "no text is left", 1)])
    _ledger(
        data / "clean" / "ledger",
        "clean",
        [
            ("too_short", 17, 200, "removed", "characters is below the minimum", 143),
            ("symbol_share", 0.41, 0.2, "removed", "symbols is above the maximum", 61),
            ("language_score", 0.22, 0.5, "removed", "language_score is below the minimum", 25),
            ("email", 2, None, "kept", "addresses replaced by placeholders", 38),
        ],
    )
    ids = {d["origin"].split("/")[1][:-4]: d["id"] for d in documents}
    pairs = [
        ("mill-2", "near_duplicate", 0.83, 0.8, ids["mill"]),
        ("hostile-2", "near_duplicate", 0.91, 0.8, ids["hostile"]),
        ("mill-3", "exact_duplicate", 1.0, 1.0, ids["mill"]),
    ]
    rows = [
        {"id": ids[name], "stage": "dedup", "rule": rule, "value": value, "threshold": threshold,
         "verdict": "removed", "detail": kept}
        for name, rule, value, threshold, kept in pairs
    ]  # fmt: skip
    _parquet(data / "unique" / "ledger", rows)
    _parquet(data / "unique" / "documents", [documents[0], documents[3], documents[5]])
    _ledger(data / "mixture" / "ledger", "mix", [("mixture", 0.0, 0.5, "removed", "not drawn", 40)])


def _profile(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """The profile of layers of these documents; the last two lack one that was a duplicate."""
    from tasks.corpus.profiling.distinct import standard_error
    from tasks.corpus.profiling.histograms import LENGTH_EDGES
    from tasks.corpus.profiling.losses import stage_losses
    from tasks.corpus.profiling.results import Profile
    from tasks.corpus.profiling.sketch import Sketch, add_batch
    from tasks.corpus.profiling.summary import layer_profile
    from tasks.records import arrow_schema

    signals = {"signals": {"words": 60.0, "toxicity": 0.1}, "language_score": 0.9}
    unknown = {"signals": {}, "language": None}
    layers = {}
    for name, there in {"raw": 6, "scored": 6, "clean": 6, "unique": 5, "mixture": 5}.items():
        known: dict[str, Sketch] = {}
        rows = [found | (unknown if name == "raw" else signals) for found in documents[:there]]
        add_batch(known, pa.RecordBatch.from_pylist(rows, arrow_schema()), 64)
        layers[name] = layer_profile(known, 64, 0.01)
    found = Profile(
        sketch_size=64,
        sketch_standard_error=round(standard_error(64), 4),
        minimum_share=0.01,
        length_edges=list(LENGTH_EDGES),
        layers=layers,
        losses=stage_losses(layers, {"unique": {None: (1, 44), "near_duplicate": (1, 44)}}),
    )
    return found.model_dump(mode="json")


def _ledger(directory: Path, stage: str, rules: list[tuple]) -> None:
    rows = [
        {"id": identifier(stage, rule, number), "stage": stage, "rule": rule, "value": value,
         "threshold": threshold, "verdict": verdict, "detail": detail}
        for rule, value, threshold, verdict, detail, many in rules
        for number in range(many)
    ]  # fmt: skip
    _parquet(directory, rows)


def _parquet(directory: Path, rows: list[dict[str, Any]]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    doubles = {"value": pa.float64(), "threshold": pa.float64()}
    schema = pa.schema([(name, doubles.get(name, pa.string())) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema), directory / "part-00000.parquet")


def _reviews(reviews: Path) -> None:
    """A sample of two rules and of what was kept: of one rule a fifth is wrong, of one none is judged."""
    too_short = [identifier("clean", "too_short", number) for number in range(10)]
    kept = [identifier("mill"), identifier("moulin")]
    rules = {
        "clean/too_short": {"strata": {"": 143}, "drawn": dict.fromkeys(too_short, "")},
        "clean/symbol_share": {"strata": {"": 70}, "drawn": {identifier("clean", "symbol_share", 0): ""}},
        "kept": {"strata": {"": 3}, "drawn": dict.fromkeys(kept, "")},
    }
    write(reviews / "sample.json", {"params": {}, "rules": rules})
    verdicts = [(name, "clean/too_short", "wrong" if number < 2 else "right")
                for number, name in enumerate(too_short)]  # fmt: skip
    verdicts += [(kept[0], "kept", "right"), (kept[1], "kept", "unsure")]
    lines = [json.dumps(dict(zip(("id", "rule", "verdict"), verdict, strict=True))) for verdict in verdicts]
    (reviews / "verdicts.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def _reports(reports: Path) -> None:
    by_source = {"bible": 1189, "handbook": 254, "python-docs": 175, "python-code": 108, "books": 104}
    cleaned = {"bible": 1181, "handbook": 131, "python-docs": 160, "python-code": 93, "books": 69}
    unique = {"bible": 1170, "handbook": 124, "python-docs": 158, "python-code": 93, "books": 61}
    mixed = {"bible": 1130, "handbook": 124, "python-docs": 158, "python-code": 93, "books": 122}
    languages = {"en": 1351, "zxx": 93, "fr": 41, "de": 39, "es": 33, "und": 49}
    write(reports / "collect.json", {
        "records_in": 1834, "kept": 1831, "removed": 0, "quarantined": 3,
        "removed_by_rule": {"broken-json": 3},
        "kept_by_source": by_source | {"books": 105}, "kept_by_language": {"und": 1831}})  # fmt: skip
    write(reports / "score.json", {
        "records_in": 1831, "kept": 1830, "removed": 1, "quarantined": 0, "removed_by_rule": {"empty": 1},
        "kept_by_source": by_source, "kept_by_language": languages | {"en": 1575}})  # fmt: skip
    write(reports / "clean.json", {
        "records_in": 1830, "kept": 1634, "removed": 196, "quarantined": 0,
        "removed_by_rule": {"too_short": 131, "symbol_share": 47, "language_score": 18},
        "kept_by_source": cleaned, "kept_by_language": languages | {"en": 1379}})  # fmt: skip
    write(reports / "dedup.json", {
        "records_in": 1634, "kept": 1606, "removed": 28, "quarantined": 0,
        "removed_by_rule": {"near_duplicate": 19, "exact_duplicate": 9},
        "kept_by_source": unique, "kept_by_language": languages})  # fmt: skip
    write(reports / "mix.json", {
        "records_in": 1667, "kept": 1627, "removed": 40, "quarantined": 0, "removed_by_rule": {"mixture": 40},
        "kept_by_source": mixed, "kept_by_language": languages | {"en": 1372}, "grouped_by": ["domain"],
        "groups": [
            {"group": ["general"], "asked": 0.7, "given": 0.8125, "epochs": 1.3, "available_bytes": 1000,
             "bytes": 1300},
            {"group": ["law"], "asked": 0.3, "given": 0.1875, "epochs": 4.0, "available_bytes": 75,
             "bytes": 300}]})  # fmt: skip
    write(reports / "encode.json", {
        "snapshot": "0" * 64, "vocabulary": 4096, "tokens": {"train": 2_418_733, "validation": 51_220},
        "documents": {"train": 1594, "validation": 33}, "bytes": {}, "bytes_per_token": 3.4,
        "tokens_by": {"source": {"books": 70, "web": 30}, "language": {"en": 100}}})  # fmt: skip


def _histories(artifacts: Path) -> None:
    def falling(step: int, low: float, high: float, rate: float) -> float:
        return round(low + (high - low) * math.exp(-step / rate) + 0.06 * math.sin(step * 1.7), 4)

    pretrain = [
        {"step": s, "loss": falling(s, 3.9, 8.3, 90), "learning_rate": 1e-3} for s in range(5, 601, 5)
    ]
    pretrain += [{"step": s, "validation_loss": falling(s, 4.1, 8.3, 95)} for s in range(100, 601, 100)]
    sft = [{"step": s, "loss": falling(s, 2.6, 5.2, 20)} for s in range(2, 121, 2)]
    sft += [{"step": s, "validation_loss": falling(s, 3.1, 5.2, 22)} for s in range(40, 121, 40)]
    reward = [{"step": s, "loss": falling(s, 0.42, 0.71, 30)} for s in range(2, 101, 2)]
    reward += [
        {"step": s, "validation_loss": falling(s, 0.5, 0.7, 30), "validation_accuracy": 0.6 + s / 600}
        for s in range(25, 101, 25)
    ]
    ppo = [
        {"step": s, "reward": round(-0.4 + 0.05 * s + 0.1 * math.sin(s), 4), "kl_per_token": 0.004 * s,
         "entropy": 4.4 - 0.03 * s, "response_tokens": 30.0}
        for s in range(1, 25)
    ]  # fmt: skip
    for name, history in (("base", pretrain), ("tuned", sft), ("reward", reward), ("aligned", ppo)):
        path = artifacts / name / "history.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps(entry) + "\n" for entry in history), "utf-8")


def _snapshot(directory: Path) -> str:
    rows = [
        document("a", "one", "books", "en", "public domain"),
        document("b", "two", "books", "fr", "public domain"),
        document("c", "three", "manuals", "en", "GPL-2+ or CC-BY-SA-3.0"),
    ]
    _parquet(directory / "documents", rows)
    content = {
        "parent": None,
        "note": "",
        "files": [{"path": "documents/part-00000.parquet", "sha256": "0" * 64, "rows": len(rows)}],
        "columns": {},
        "lineage": SNAPSHOT_LINEAGE,
        "counts": {"language": {"en": 2, "fr": 1}, "source": {"books": 2, "manuals": 1}},
    }
    name = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    write(directory / "manifest.json", {"snapshot": name, **content})
    return name


def _assessment(directory: Path, snapshot: str) -> None:
    def mean(value: float, error: float) -> dict[str, Any]:
        return {"value": value, "standard_error": error, "observations": 128}

    def perplexity(loss: float, bits: float | None = None) -> dict[str, Any]:
        return {"loss": mean(loss, 0.021), "perplexity": round(math.exp(loss), 3), "bits_per_byte": bits}

    def check(statement: str, passed: bool, value: float, relation: str, bound: float) -> dict[str, Any]:
        return {
            "statement": statement,
            "passed": passed,
            "value": value,
            "relation": relation,
            "bound": bound,
        }

    write(directory / "results.json", {
        "snapshot": snapshot,
        "precision": "fp32",
        "parameters": 4_193_536,
        "validation": {
            "context": 256, "stride": 256, "windows": 140, "windows_available": 219, "tokens": 32_768,
            "tokens_available": 51_187, "text_bytes": 111_411,
            "models": {"base": perplexity(4.12, 1.748), "untrained": perplexity(8.33, 3.535),
                       "unigram": perplexity(6.61, 2.805)},
        },
        "answers": {
            "dialogues": 190, "too_long": 3, "tokens": 7120, "gain": mean(1.61, 0.05),
            "models": {"base": perplexity(4.88), "tuned": perplexity(3.27), "aligned": perplexity(3.31)},
        },
        "rewards": {
            "prompts": 64, "temperature": 1.0, "top_p": 1.0, "max_new_tokens": 48,
            "models": {
                "tuned": {"reward": mean(-0.31, 0.09), "ended": mean(0.86, 0.04), "length": mean(22.3, 1.9)},
                "aligned": {"reward": mean(0.74, 0.08), "ended": mean(0.97, 0.02), "length": mean(17.8, 1.5)},
            },
            "gain": mean(1.05, 0.11), "kl_per_token": mean(0.087, 0.008), "kl_per_response": mean(1.55, 0.17),
        },
        "checks": {
            "base_below_unigram": check(
                "Validation perplexity of the unigram baseline, divided by that of the base model",
                True, 12.06, ">=", 3.0),
            "tuned_beats_base": check(
                "Loss on held-out answers: base less tuned, nats per token", True, 1.61, ">", 0.0),
            "aligned_beats_tuned": check(
                "Mean reward on held-out prompts: aligned less tuned", False, -0.02, ">", 0.0),
        },
        "instructions": [{"source": "chatterbot-corpus", "licence": "BSD-3-Clause", "rows": 1414}],
        "instructions_broken": 0,
    })  # fmt: skip
    samples = [
        {
            "prompt": "What is AI?", "split": "train",
            "reference": "Artificial Intelligence is the branch of engineering and science devoted to "
                         "constructing machines that think.",
            "answers": {
                "base": {"text": " and the LORD said unto Moses, the module is used to the children of the "
                                 "file, and the house of the", "tokens": 48, "ended": False},
                "tuned": {"text": "Artificial Intelligence is the study of the world.", "tokens": 12,
                          "ended": True},
                "aligned": {"text": "AI is the field of science which concerns itself with machines.",
                            "tokens": 15, "ended": True},
            },
        },
        {
            "prompt": HOSTILE, "split": "unseen", "reference": None,
            "answers": {name: {"text": HOSTILE, "tokens": 9, "ended": True} for name in
                        ("base", "tuned", "aligned")},
        },
    ]  # fmt: skip
    (directory / "samples.jsonl").write_text("".join(json.dumps(s) + "\n" for s in samples), "utf-8")
    write(directory.parent / "release" / "release.json", {
        "name": "gristmill", "version": "0.1.0", "dtype": "float32",
        "files": {"config.json": {"sha256": "a" * 64, "bytes": 812},
                  "model.safetensors": {"sha256": "b" * 64, "bytes": 16_790_312}}})  # fmt: skip


def write_aligned(directory: Path) -> None:
    """A tiny language model with its tokenizer, beside a history that may be there already."""
    from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
    from tokenizers import models as tokenizer_models

    from models.config import ModelConfig
    from models.hub import save_model
    from models.initialization import initialise
    from models.transformer import CausalLM
    from tasks.training.chat import SPECIAL_TOKENS, tokenizer_config

    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(tokenizer_models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TALE], trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    write(directory / "tokenizer_config.json", tokenizer_config(64))
    config = ModelConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    model = CausalLM(config)
    initialise(model, config, 7)
    save_model(model, directory)


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """data, artifacts, reports: read only."""
    return make_run(tmp_path_factory.mktemp("finished"))
