"""The commands of `gristmill` that look at rules, and the one that fetches documents."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from flows.project import PARAMETERS, BadInput

if TYPE_CHECKING:
    from tasks.corpus.policies.verdict_changes import VerdictChanges
    from tasks.resources import Resources

HOW_TO_NAME_A_SITE = """\
crawl:
  sites:
    - name: manuals
      seeds: [https://www.example.org/manuals/]
      contact: you@example.org # by which the site's owner reaches you
docs/crawling.md has the other keys"""


def sweep(project: Path, arguments: argparse.Namespace) -> int:
    """Sweep a rule or signal: a table on the terminal, a page and its figures in a folder."""
    from tasks.corpus.policies.policy import CleanParams
    from tasks.corpus.sweeping import page, table
    from tasks.corpus.sweeping.selection import Selection, SweepError
    from tasks.corpus.sweeping.sweep import sweep as sweep_rule
    from tasks.parameters import ParameterError, load_section

    if arguments.examples < 0:
        raise BadInput(f"--examples {arguments.examples}: it must be 0 or more")
    try:
        found = sweep_rule(
            project / "data" / "scored",
            load_section(project / PARAMETERS, "clean", CleanParams),
            arguments.rule,
            selection=Selection(arguments.sources, arguments.kinds, arguments.languages),
            examples=arguments.examples,
            at=arguments.at,
        )
    except (ParameterError, SweepError) as error:
        raise BadInput(str(error)) from None
    out = arguments.out or project / "reports" / "sweeps"
    out.mkdir(parents=True, exist_ok=True)
    _write(out / f"{found.name}.json", found.model_dump_json(indent=1) + "\n")
    _write(out / f"{found.name}.html", page.render(found))
    print(table.render(found))
    print(f"\n{out / found.name}.html has the curves and the documents at the border")
    return 0


def verdicts(project: Path, resources: Resources, before: Path | None, after: Path | None) -> int:
    """Tell which documents changed verdict between two clean layers."""
    if before is None:
        changes = _of_last_change(project, resources)
    elif before.is_file():
        if after is not None:
            raise BadInput(
                f"{before} tells of two layers by itself: leave out {after}, or name a layer first"
            )
        changes = _stored(before)
    else:
        changes = _compared(_layer(before), _layer(after or project / "data" / "clean"), resources)
    if changes is None:
        print(
            "no change of rules is known yet: `gristmill run` compares each run of clean with the one before"
        )
        return 0
    print(changes)
    if changes.changed:
        print("\n`gristmill explain ID` tells a document's story")
    return 0


def review(project: Path, work: Path, arguments: argparse.Namespace) -> int:
    """Draw documents for people to judge the rules by, or take their verdicts."""
    from pydantic import ValidationError

    from tasks.corpus.reviewing.draw import draw_review
    from tasks.corpus.reviewing.sample import ReviewError, ReviewParams
    from tasks.corpus.reviewing.verdicts import take_verdicts

    try:
        if arguments.verdicts:
            taken = take_verdicts(
                work / "review", arguments.verdicts, project / "reviews", replace=arguments.replace
            )
            print(f"{taken.verdicts} verdicts of {taken.reviewers} reviewers in {taken.path}")
            if taken.unknown:
                print(f"{len(taken.unknown)} are of documents or rules that were not drawn, and do not count")
            print("`gristmill run` shows each rule's rate of false removals in the report")
            return 0
        params = ReviewParams(
            removed=arguments.removed,
            kept=arguments.kept,
            seed=arguments.seed,
            by_source=arguments.by_source,
            text_characters=arguments.text_characters,
        )
        drawn = draw_review(project / "data", work / "review", params)
    except ValidationError as error:
        complaints = [f"--{str(item['loc'][0]).replace('_', '-')}: {item['msg']}" for item in error.errors()]
        raise BadInput("\n".join(complaints)) from None
    except ReviewError as error:
        raise BadInput(str(error)) from None
    print(f"{drawn.documents} documents to judge: open {drawn.page}, export verdicts.jsonl there,")
    print("and give it to `gristmill review verdicts.jsonl`")
    return 0


def crawl(
    project: Path, work: Path, site: str | None, out: Path | None, *, stop_after: int | None, fresh: bool
) -> int:
    """Crawl a site of section `crawl`, or go on with it."""
    from tasks.corpus.crawling.crawl import main
    from tasks.corpus.crawling.parameters import CrawlParams
    from tasks.parameters import ParameterError, load_section

    try:
        sites = [given.name for given in load_section(project / PARAMETERS, "crawl", CrawlParams).sites]
    except ParameterError as error:
        raise BadInput(str(error)) from None
    if not sites:
        raise BadInput(f"{project / PARAMETERS} names no site to crawl; write\n{HOW_TO_NAME_A_SITE}")
    if site is None and len(sites) > 1:
        raise BadInput(f"which site? `crawl.sites` has {', '.join(sites)}")
    order = [site or sites[0], str(out or project / "data" / "crawl")]
    order += ["--job", str(work / "crawl"), "--params", str(project / PARAMETERS)]
    if stop_after is not None:
        order += ["--stop-after", str(stop_after)]
    return main([*order, "--fresh"] if fresh else order)


def advance(project: Path) -> int:
    """Let the next run go on from this one, and say what is to be committed."""
    from flows.advance import advance as go_on_from_here

    changed = go_on_from_here(project)
    if not changed:
        print("the next run goes on from this one already: nothing changed")
        return 0
    print("the next run collects what is new, and compares it with what has been kept. To record that:")
    print(f"  git add {' '.join(changed)} && git commit -m 'Go on from here'")
    return 0


def _of_last_change(project: Path, resources: Resources) -> VerdictChanges | None:
    """What the last change of rules changed: as clean told it, unless data/clean has been made otherwise
    since (by `dvc checkout`, or from DVC's cache of runs)."""
    from tasks.corpus.policies.verdict_changes import same_policy

    current = _layer(project / "data" / "clean")
    kept, told = (project / resources.kept / "clean" / name for name in ("before", "changes.json"))
    if (kept / "lineage.json").exists() and not same_policy(kept, current):
        return _compared(kept, current, resources)
    return _stored(told) if told.exists() else None


def _compared(before: Path, after: Path, resources: Resources) -> VerdictChanges:
    from tasks.corpus.policies.verdict_changes import compare_verdicts
    from tasks.spark import spark_session
    from tasks.stage import StageError

    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        with spark_session("verdicts", resources) as spark:
            return compare_verdicts(spark, before, after)
    except StageError as error:
        raise BadInput(str(error)) from None


def _stored(path: Path) -> VerdictChanges:
    from pydantic import ValidationError

    from tasks.corpus.policies.verdict_changes import VerdictChanges

    try:
        return VerdictChanges.model_validate_json(path.read_bytes())
    except ValidationError:
        raise BadInput(f"{path} is not what clean writes of a change of rules (changes.json)") from None


def _layer(path: Path) -> Path:
    """The clean layer that a path names: its own folder, or the folder of a run that has one."""
    for folder in (path, path / "data" / "clean"):
        if all(any((folder / part).glob("*.parquet")) for part in ("documents", "ledger")):
            return folder
    raise BadInput(
        f"{path} is no layer with documents and ledger, nor the folder of a run that has data/clean; "
        "`gristmill run corpus` makes it"
    )


def _write(path: Path, content: str) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(content, "utf-8")
    partial.replace(path)
