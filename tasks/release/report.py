"""One page that shows a run from its documents to its release."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from tasks.parameters import StageParams
from tasks.release.circumstances import look_around
from tasks.release.evidence import gather
from tasks.release.page import absent, render
from tasks.resources import Resources
from tasks.stage import Input, Output, StageReport, Tracker, run_as_stage, stage


class ReportParams(StageParams):
    """What the page shows."""

    title: str = Field(default="Gristmill", min_length=1, description="the heading of the page")
    duplicate_examples: int = Field(default=2, ge=0, description="pairs shown for each rule of duplicates")
    excerpt_characters: int = Field(default=420, ge=40, description="of each document of a pair")


class ReportSummary(StageReport):
    """What the page found: nothing in it depends on when or where it was written."""

    checks_passed: int
    checks_failed: int
    checks_without_data: int
    absent: list[str]
    """Parts of the journey that left nothing to show."""


@stage
def report(
    data: Input,
    artifacts: Input,
    reports: Input,
    reviews: Input,
    page: Output,
    params: ReportParams,
    resources: Resources,
    tracker: Tracker,
) -> ReportSummary:
    """Write one self-contained HTML page about the run; it loads nothing and runs no script.

    A part whose stage did not run says "no data".

    Raises:
        StageError: naming a file that is there and is broken.
    """
    evidence = gather(data, artifacts, reports, params.duplicate_examples, params.excerpt_characters, reviews)
    page.write_text(render(params.title, evidence, look_around(resources, Path.cwd())), "utf-8")
    checks = list(evidence.results.checks.values()) if evidence.results else []
    return ReportSummary(
        checks_passed=sum(check.passed is True for check in checks),
        checks_failed=sum(check.passed is False for check in checks),
        checks_without_data=sum(not isinstance(check.passed, bool) for check in checks),
        absent=absent(evidence),
    )


if __name__ == "__main__":
    run_as_stage(report)
