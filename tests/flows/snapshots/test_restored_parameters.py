from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.snapshots.restored_parameters import differing_parameters, with_sections

GIVEN = """\
# what decides
clean: # one stage
  presets: [plain]
  rules: # bounds
    - {name: long, maximum: 0.5} # of words
    - {name: short, minimum: 2}
  mask: true
mix:
  seed: 1 # any
  parent: null # none
"""


def lock(**sections: Any) -> dict[str, Any]:
    return {name: {"params": {"params.yaml": {name: section}}} for name, section in sections.items()}


@pytest.fixture
def params(tmp_path: Path) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(GIVEN)
    return path


RULES = [{"name": "long", "maximum": 0.8}, {"name": "short", "minimum": 2}]


def test_what_differs_has_a_name_down_to_the_items_of_lists(params: Path) -> None:
    recorded = lock(
        clean={"presets": ["plain"], "rules": RULES, "mask": True},
        mix={"seed": 2, "epochs": 3, "parent": None},
    )
    assert differing_parameters(params, recorded) == {
        "clean.rules[0].maximum": (0.8, 0.5),
        "mix.epochs": (3, None),
        "mix.seed": (2, 1),
    }


def test_only_what_differs_is_set_and_comments_stay(params: Path) -> None:
    recorded = lock(clean={"presets": ["plain"], "rules": RULES, "mask": True})
    assert with_sections(params, recorded) == GIVEN.replace("0.5", "0.8")


def test_keys_come_and_go(params: Path) -> None:
    recorded = lock(clean={"presets": [], "rules": [], "languages": ["no"]}, mix=None)
    text = with_sections(params, recorded)
    params.write_text(text)
    assert differing_parameters(params, recorded) == {}
    assert "mask" not in text
    assert text.startswith("# what decides\nclean: # one stage\n")


def test_true_is_not_one(params: Path) -> None:
    recorded = lock(clean={"presets": ["plain"], "rules": RULES, "mask": 1})
    assert "mask: 1\n" in with_sections(params, recorded)
