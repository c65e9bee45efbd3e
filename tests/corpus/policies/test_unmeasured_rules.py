from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.clean import clean
from tasks.corpus.policies.policy import CleanParams
from tasks.resources import Resources
from tasks.stage import StageError

NOTHING = {"toxicity": False, "perplexity": None, "evaluation_sets": [], "lexicons": []}


@pytest.mark.parametrize(
    ("scoring", "policy", "complaint"),
    [
        ({}, {"rules": [{"name": "toxic", "signal": "toxicity", "maximum": 0.8}]},
         "rule toxic needs the signal toxicity, which score did not measure: set score.toxicity"),
        ({}, {"rules": [{"name": "plain", "signal": "perplexity", "maximum": 900}]},
         "rule plain needs the signal perplexity, .* set score.perplexity"),
        ({"perplexity": {"trusted_sources": [], "model": None}}, {"keep_buckets": ["head"]},
         "keep_buckets needs the signal perplexity"),
        ({}, {"rules": [{"name": "seen", "signal": "contamination", "maximum": 0.8}]},
         "rule seen needs the signal contamination, .* set score.evaluation_sets"),
        ({"lexicons": [{"name": "en", "path": "en.txt"}]},
         {"rules": [{"name": "rude", "signal": "lexicon_fr_rate", "maximum": 1}]},
         "rule rude needs the signal lexicon_fr_rate, .* set score.lexicons"),
    ],
)  # fmt: skip
def test_a_rule_on_what_was_not_measured_is_refused_before_anything_starts(
    tmp_path: Path, scoring: dict[str, Any], policy: dict[str, Any], complaint: str
) -> None:
    (tmp_path / "scored").mkdir()
    (tmp_path / "lexicons").mkdir()
    lineage = [{"stage": "score", "parameters": NOTHING | scoring}]
    (tmp_path / "scored" / "lineage.json").write_text(json.dumps(lineage))
    params = CleanParams.model_validate(policy)
    with pytest.raises(StageError, match=complaint):
        clean(tmp_path / "scored", tmp_path / "lexicons", tmp_path, tmp_path / "clean", params, Resources())
    assert not (tmp_path / "clean").exists()
