"""The sample is what its README says: real, licensed, small, uncleaned, split by prompt."""

import gzip
import html
import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SAMPLE = Path(__file__).resolve().parents[2] / "sample"
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def _load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_preferences", SAMPLE / "make_preferences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_preferences = _load_script()


@cache
def rows_of(folder: str) -> list[dict[str, Any]]:
    return make_preferences.read_rows(SAMPLE / folder)


@cache
def documents() -> dict[str, str]:
    return {row["path"]: row["raw"] for row in rows_of("corpus")}


def readme() -> str:
    return (SAMPLE / "README.md").read_text(encoding="utf-8")


def listed_near_duplicates() -> list[tuple[str, str, float]]:
    found = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (0\.\d+) \|$", readme(), re.M)
    return [(one, two, float(similarity)) for one, two, similarity in found]


def shingles(text: str) -> set[tuple[str, ...]]:
    """Sets of five words, as the README defines them, written apart from the pipeline's own code."""
    if "<body" in text:
        text = html.unescape(re.sub(r"<[^>]+>", " ", text[text.index("<body") :]))
    words = re.sub(r"[\W_]+", " ", text.lower()).split()
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


def jaccard(one: str, two: str) -> float:
    a, b = shingles(documents()[one]), shingles(documents()[two])
    return len(a & b) / len(a | b)


def test_takes_at_most_six_megabytes():
    stored = sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file())
    assert 5_000_000 < stored <= 6_000_000


def test_readme_counts_documents_and_rows_as_they_are():
    counted = dict(re.findall(r"^\| `([\w-]+\.jsonl\.gz)` \| ([\d,]+) \|", readme(), re.M))
    files = sorted([*SAMPLE.glob("corpus/*"), *SAMPLE.glob("instructions/*")])
    assert sorted(counted) == sorted(path.name for path in files)
    for path in files:
        with gzip.open(path) as lines:
            assert sum(1 for _ in lines) == int(counted[path.name].replace(",", "")), path.name


@pytest.mark.parametrize("folder", ["corpus", "instructions", "preferences"])
def test_every_row_has_a_licence_that_the_readme_explains(folder: str):
    table = dict(re.findall(r"^\| `([^`]+)` \| (none needed|`licenses/[^`]+`) \|", readme(), re.M))
    licences = {row["licence"] for row in rows_of(folder)}
    assert licences <= set(table)
    for licence in licences - {"public domain"}:
        assert (SAMPLE / table[licence].strip("`")).stat().st_size > 500


def test_corpus_rows_have_unique_relative_paths_and_text():
    rows = rows_of("corpus")
    assert {tuple(row) for row in rows} == {("raw", "path", "lang", "licence", "pkg")}
    assert len(documents()) == len(rows)
    for row in rows:
        assert re.fullmatch(r"[\w()#.-]+(/[\w()#.-]+)+", row["path"]), row["path"]
        assert row["raw"].strip(), row["path"]
        assert ".pyenv" not in row["raw"], row["path"]


def test_corpus_speaks_english_chinese_and_code():
    languages = Counter(row["lang"] for row in rows_of("corpus"))
    assert languages["en"] > 1000
    assert languages["zh"] > 100
    assert languages["code-python"] > 100


def test_corpus_is_uncleaned():
    texts = documents().values()
    assert sum(len(EMAIL.findall(text)) for text in texts) == 431
    assert sum("\r\n" in text for text in texts) == 16
    assert sum("<body" in text for text in texts) >= 254


def test_some_documents_of_the_chinese_handbook_are_english():
    english = 0
    for row in rows_of("corpus"):
        if row["lang"] == "zh":
            text = re.sub(r"<[^>]+>", "", row["raw"])
            chinese, latin = len(re.findall(r"[\u4e00-\u9fff]", text)), len(re.findall(r"[A-Za-z]", text))
            english += chinese < 0.1 * (chinese + latin)
    assert english == 30


def test_exact_duplicates_are_there():
    paths: dict[str, list[str]] = defaultdict(list)
    for path, text in documents().items():
        paths[text].append(path)
    groups = [group for group in paths.values() if len(group) > 1]
    assert [len(group) for group in groups] == [2] * 12
    assert ["miltondata/texts/areopagitica.txt", "miltondata/texts/areopagitica_gut.txt"] in groups


def test_readme_lists_twelve_near_duplicates():
    assert len(listed_near_duplicates()) == 12


@pytest.mark.parametrize(("one", "two", "similarity"), listed_near_duplicates())
def test_near_duplicates_are_as_alike_as_the_readme_says(one: str, two: str, similarity: float):
    assert documents()[one] != documents()[two]
    assert similarity >= 0.8
    assert round(jaccard(one, two), 3) == similarity


def test_macbeth_in_folio_spelling_is_no_near_duplicate():
    modern, folio = "shksprdata/texts/macbeth_gut.txt#act-1", "shksprdata/texts/macbeth_gut_f.txt#act-1"
    assert round(jaccard(modern, folio), 3) == 0.140


def test_instructions_are_short_and_end_with_the_answer():
    for row in rows_of("instructions"):
        assert row["instruction"].strip()
        assert row["input"] == ""
        assert 0 < len(row["output"]) <= 600
        turns = row.get("messages")
        if turns is not None:
            assert [turn["content"] for turn in turns[:2]] == [row["instruction"], row["output"]]
            assert turns[-1]["role"] == "assistant"


def test_no_answer_is_repeated():
    seen = Counter((row["instruction"], row["output"]) for row in rows_of("instructions"))
    assert max(seen.values()) == 1


def test_splits_are_disjoint_by_prompt_over_instructions_and_preferences():
    prompts: dict[str, set[str]] = defaultdict(set)
    for row in rows_of("instructions"):
        prompts[row["split"]].add(row["instruction"].casefold())
        for turn in row.get("messages", []):
            if turn["role"] == "user":
                prompts[row["split"]].add(turn["content"].casefold())
    for row in rows_of("preferences"):
        prompts[row["split"]].add(row["prompt"].casefold())
    assert set(prompts) == {"train", "held_out"}
    assert not prompts["train"] & prompts["held_out"]
    share = len(prompts["held_out"]) / (len(prompts["held_out"]) + len(prompts["train"]))
    assert 0.08 < share < 0.12


def test_split_ignores_case_punctuation_and_space():
    same = ["What is AI?", "what is  ai", "WHAT IS AI!", "Ｗhat is AI"]
    assert len({make_preferences.split_of(prompt) for prompt in same}) == 1


def test_preferences_are_made_again_byte_for_byte(tmp_path: Path):
    again = tmp_path / "pairs.jsonl.gz"
    script = [sys.executable, str(SAMPLE / "make_preferences.py"), "--out", str(again)]
    subprocess.run(script, check=True, capture_output=True, env={"PYTHONHASHSEED": "7"})
    committed = (SAMPLE / "preferences" / "pairs.jsonl.gz").read_bytes()
    # Another zlib may compress otherwise; what is packed must be the same.
    assert gzip.decompress(again.read_bytes()) == gzip.decompress(committed)
    make_preferences.write_rows(rows_of("preferences"), tmp_path / "twice.jsonl.gz")
    assert (tmp_path / "twice.jsonl.gz").read_bytes() == again.read_bytes()


def test_preferences_do_not_depend_on_the_order_of_the_instructions():
    rows = rows_of("instructions")
    assert make_preferences.make_pairs(rows[::-1]) == make_preferences.make_pairs(rows)


def test_chosen_is_a_real_answer_and_rejected_is_none():
    real = defaultdict(set)
    for row in rows_of("instructions"):
        real[row["instruction"].casefold()].add(row["output"].strip())
    for pair in rows_of("preferences"):
        assert pair["chosen"] in real[pair["prompt"].casefold()]
        assert pair["rejected"] not in real[pair["prompt"].casefold()]
        assert pair["rejected"].strip()


def test_rules_are_balanced_and_neither_side_is_longer_over_all():
    pairs = rows_of("preferences")
    counts = Counter(pair["rule"] for pair in pairs)
    assert set(counts) == {"cut", "looped", "scrambled", "other"}
    assert max(counts.values()) - min(counts.values()) <= 1
    chosen = sum(len(pair["chosen"]) for pair in pairs)
    rejected = sum(len(pair["rejected"]) for pair in pairs)
    assert 0.97 < rejected / chosen < 1.03
    longer = sum(len(pair["chosen"]) > len(pair["rejected"]) for pair in pairs)
    shorter = sum(len(pair["chosen"]) < len(pair["rejected"]) for pair in pairs)
    assert abs(longer - shorter) < 0.05 * len(pairs)


def test_each_rule_spoils_as_its_name_says():
    for pair in rows_of("preferences"):
        chosen, rejected = pair["chosen"], pair["rejected"]
        if pair["rule"] == "cut":
            assert chosen.startswith(rejected)
            assert rejected[-1] not in ".!?。！？,"
        elif pair["rule"] == "scrambled":
            assert Counter("".join(chosen.split())) == Counter("".join(rejected.split()))
        elif pair["rule"] == "looped":
            start = chosen[: max(1, len(rejected) // 20)]
            assert rejected.startswith(start)
            assert re.search(r"(.{2,})\s*\1", rejected, re.S), rejected


def test_short_answers_are_left_alone():
    assert make_preferences.cut("I am a bot.") is None
    assert make_preferences.cut("this answer does not end a sentence at all") is None
    assert make_preferences.looped("One two three four five six seven.") is None
    row = {"instruction": "Who?", "output": "A human.", "source": "s", "lang": "en", "licence": "l"}
    assert make_preferences.make_pairs([row]) == []


@pytest.mark.parametrize("name", ["corpus", "instructions", "preferences"])
def test_archives_carry_no_time_and_no_name(name: str):
    for path in (SAMPLE / name).glob("*.gz"):
        header = path.read_bytes()[:10]
        assert header[3] == 0, path
        assert header[4:8] == bytes(4), path


def test_rows_are_one_json_object_a_line():
    with gzip.open(SAMPLE / "preferences" / "pairs.jsonl.gz", "rt", encoding="utf-8") as lines:
        assert all(isinstance(json.loads(line), dict) for line in lines)
