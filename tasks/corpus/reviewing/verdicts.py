"""What reviewers decided: read from their files, kept under version control, brought to one label each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.corpus.reviewing.sample import ReviewError, Sample, read_sample, sample_json
from tasks.stage import publish

Label = Literal["right", "wrong", "unsure"]
MOST_SHOWN = 5


class Verdict(BaseModel):
    """One line of ``verdicts.jsonl``: whether a rule did right by a document."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[0-9a-f]{32}$", description="the document")
    rule: str = Field(min_length=1, description="stage and rule, as `clean/too_short`, or `kept`")
    verdict: Label
    reviewer: str | None = Field(default=None, max_length=200)
    time: str | None = Field(default=None, max_length=40, description="when, in ISO 8601")


@dataclass(frozen=True)
class Taken:
    """What `take_verdicts` did."""

    verdicts: int
    reviewers: int
    unknown: list[Verdict]
    path: Path


def read_verdicts(path: Path) -> list[Verdict]:
    """Read verdicts, a JSON object a line; blank lines are skipped, and so is a byte order mark.

    Raises:
        ReviewError: naming the line that is broken and what would be right.
    """
    verdicts = []
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if line.strip():
                    verdicts.append(_verdict(line, f"{path} line {number}"))
    except (FileNotFoundError, IsADirectoryError):
        raise ReviewError(
            f"{path} is no file of verdicts: export one from the page that `gristmill review` writes"
        ) from None
    return verdicts


def unknown_verdicts(sample: Sample, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those whose document was not drawn for their rule."""
    return [
        verdict
        for verdict in verdicts
        if verdict.rule not in sample.rules or verdict.id not in sample.rules[verdict.rule].drawn
    ]


def labels(verdicts: Iterable[Verdict]) -> dict[tuple[str, str], Label]:
    """One label for each (rule, id).

    Of one reviewer's the last counts; those without a name are one reviewer's. Of several reviewers the label
    that most gave; where two labels have most, it is ``unsure``.
    """
    by_reviewer: dict[tuple[str, str, str | None], Label] = {
        (each.rule, each.id, each.reviewer): each.verdict for each in verdicts
    }
    votes: defaultdict[tuple[str, str], Counter[Label]] = defaultdict(Counter)
    for (rule, name, _), label in by_reviewer.items():
        votes[rule, name][label] += 1
    return {key: _most(counted) for key, counted in votes.items()}


def take_verdicts(drawn: Path, files: Sequence[Path], reviews: Path, *, replace: bool = False) -> Taken:
    """Put reviewers' verdicts into ``reviews``, beside the sample that they are of.

    ``reviews/verdicts.jsonl`` and ``reviews/sample.json`` hold no texts; they are meant for version control.
    New verdicts come behind those that are there, and what a reviewer decided anew replaces what was before.

    Args:
        drawn: where `draw_review` wrote; where nothing is, the sample in ``reviews`` is meant.
        files: what was exported from the page.
        reviews: the folder of the project.
        replace: whether verdicts of another sample that are there may go.

    Raises:
        ReviewError: a file is broken, none of its verdicts is of the sample, or ``reviews`` has verdicts of
            another one.
    """
    ours, path = reviews / "sample.json", reviews / "verdicts.jsonl"
    sample = read_sample(drawn / "sample.json" if (drawn / "sample.json").exists() else ours)
    before = read_verdicts(path) if path.exists() else []
    if before and not replace and read_sample(ours).name != sample.name:
        raise ReviewError(
            f"{path} has verdicts of another sample than {drawn / 'sample.json'}: judge that one "
            "to its end, or commit it and let this one replace it (`gristmill review --replace FILE`)"
        )
    new = [verdict for file in files for verdict in _of_sample(file, sample)]
    kept = [*([] if replace and before and read_sample(ours).name != sample.name else before), *new]
    last = {(each.rule, each.id, each.reviewer): each for each in kept}
    ordered = sorted(last.values(), key=lambda each: (each.rule, each.id, each.reviewer or ""))
    reviews.mkdir(parents=True, exist_ok=True)
    with publish(ours) as partial:
        partial.write_text(sample_json(sample), "utf-8")
    with publish(path) as partial:
        partial.write_text("".join(each.model_dump_json() + "\n" for each in ordered), "utf-8")
    reviewers = len({each.reviewer for each in ordered})
    return Taken(len(ordered), reviewers, unknown_verdicts(sample, new), path)


def _of_sample(file: Path, sample: Sample) -> list[Verdict]:
    verdicts = read_verdicts(file)
    if verdicts and len(unknown_verdicts(sample, verdicts)) == len(verdicts):
        raise ReviewError(
            f"{file}: none of its {len(verdicts)} verdicts is of a document of this sample; it was exported "
            "from another one. Draw that sample again (equal layers and options give the same one)"
        )
    return verdicts


def _verdict(line: bytes, where: str) -> Verdict:
    try:
        return Verdict.model_validate_json(line)
    except ValidationError as error:
        complaints = [
            f"`{'.'.join(map(str, item['loc']))}`: {item['msg']}" if item["loc"] else item["msg"]
            for item in error.errors(include_url=False)[:MOST_SHOWN]
        ]
        raise ReviewError(
            f"{where} is no verdict: {'; '.join(complaints)}. A line is an object with `id`, `rule`, "
            "`verdict` (right, wrong or unsure) and, where wanted, `reviewer` and `time`"
        ) from None


def _most(counted: Counter[Label]) -> Label:
    (first, most), *others = counted.most_common()
    return "unsure" if others and others[0][1] == most else first
