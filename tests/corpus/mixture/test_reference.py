from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.mixture.reference import read_reference
from tasks.stage import StageError

REPORT = {
    "records_in": 3,
    "grouped_by": ["domain", "language"],
    "groups": [
        {"group": ["law", "en"], "bytes": 10},
        {"group": ["law", "zh"], "bytes": 20},
        {"group": ["general", "en"], "bytes": 70},
    ],
}
MANIFEST = {"snapshot": "00ff", "counts": {"language": {"": 2, "und": 1, "en": 7}, "source": {"web": 10}}}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def test_a_report_of_mix_gives_the_bytes_of_its_groups(tmp_path: Path) -> None:
    path = write(tmp_path / "mix.json", REPORT)
    assert read_reference(path, "domain").counts == {"law": 30, "general": 70}
    assert read_reference(path, "language").counts == {"en": 80, "zh": 20}


def test_a_manifest_gives_its_counts_and_calls_what_is_not_known_as_the_mixture_does(tmp_path: Path) -> None:
    assert read_reference(write(tmp_path / "manifest.json", MANIFEST), "language").counts == {
        "und": 3,
        "en": 7,
    }


def test_shares_of_a_person_are_told_from_counts(tmp_path: Path) -> None:
    reference = read_reference(write(tmp_path / "shares.json", {"law": 0.3, "general": 0.7}), "domain")
    assert (reference.counts, reference.unit) == ({"law": 0.3, "general": 0.7}, "shares")


def test_a_folder_gives_its_report_or_where_that_does_not_tell_its_snapshot(tmp_path: Path) -> None:
    write(tmp_path / "reports" / "mix.json", REPORT)
    write(tmp_path / "data" / "snapshot" / "manifest.json", MANIFEST)
    assert read_reference(tmp_path, "domain").path.name == "mix.json"
    assert read_reference(tmp_path, "source").counts == {"web": 10}
    assert read_reference(tmp_path / "data" / "snapshot", "language").path.name == "manifest.json"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"law": 0.3, "gen', r"shares\.json is not valid JSON: .*line 1 column 14"),
        ("", r"shares\.json is not valid JSON"),
        ("[0.3, 0.7]", r"must be .*\{value: share\}, not list"),
        ("{}", "is empty"),
        ('{"law": "much"}', '`law` must be a number, not "much"'),
        ('{"law": true}', "`law` must be a number, not true"),
        ('{"law": NaN}', "`law` must be a number, not NaN"),
        ('{"law": -0.5}', "`law` must be 0 or more, not -0.5"),
        (REPORT, "does not tell of source: that mixture was grouped by domain, language"),
        (REPORT | {"grouped_by": ["source"]} | {"groups": [{}]}, "its groups are broken"),
        ({"snapshot": "00ff", "counts": {"kind": {}}}, "counts no source; it counts kind"),
    ],
    ids=[
        "cut-off", "empty-file", "list", "no-values", "word", "boolean", "nan", "negative",
        "other-columns", "broken-report", "not-counted",
    ],
)  # fmt: skip
def test_what_is_no_reference_is_named_with_its_file(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(StageError, match=message):
        read_reference(write(tmp_path / "shares.json", content), "source")


def test_a_file_that_is_not_there_or_not_utf_8_is_named(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"nowhere\.json does not exist"):
        read_reference(tmp_path / "nowhere.json", "domain")
    (tmp_path / "latin.json").write_bytes('{"café": 1}'.encode("latin-1"))
    with pytest.raises(StageError, match=r"latin\.json is not UTF-8"):
        read_reference(tmp_path / "latin.json", "domain")
    with pytest.raises(StageError, match="has no mixture's report and no manifest"):
        read_reference(tmp_path, "domain")
