"""Crawl a site into WARC files, in as many runs as it takes.

A command and not a stage: the network is no function of its inputs. What a crawl saved is input of a stage.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.corpus.crawling.parameters import CrawlParams, SiteParams
from tasks.corpus.crawling.report import CrawlReport
from tasks.parameters import ParameterError, load_section, nearest
from tasks.stage import StageError

log = logging.getLogger("gristmill")

GRACE_SECONDS = 15.0
"""For the requests under way when a crawl is stopped; killed after that, it loses at most those."""


class CrawlFailed(Exception):
    """The crawl broke off; what it saved stays, and the next run goes on from there."""


def crawl(
    out: Path, job: Path, params: SiteParams, *, stop_after: int | None = None, fresh: bool = False
) -> CrawlReport:
    """Crawl one site, or go on with the crawl of it that ``job`` knows.

    ``out`` gets `NAME-00000.warc.gz` and its successors, `NAME.ledger.jsonl` with every URL that is not in
    them and why, and `NAME.json`, the report. ``job`` holds what is pending; once it is complete, that may
    be removed. A complete crawl is not run again. ``stop_after`` ends this run when so many pages more are
    saved; ``fresh`` removes what an earlier crawl of this name left and begins anew.

    Raises:
        StageError: the crawl was begun with other parameters or is running already, its files are damaged,
            its job directory is lost, or the disk is full.
        CrawlFailed: anything else that broke it off.
    """
    order = {
        "out": str(out.absolute()),
        "job": str(job.absolute()),
        "params": params.model_dump(mode="json"),
        "stop_after": stop_after,
        "fresh": fresh,
    }
    said: dict[str, object] = {}
    with _session() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            said = json.loads(line)
            if "progress" in said:
                log.info("%s: %s", params.name, said["progress"])
        status = process.wait()
    if status == 0 and "report" in said:
        return CrawlReport.model_validate(said["report"])
    message = f"{params.name}: {said.get('error', f'the crawling process ended with status {status}')}"
    raise StageError(message) if status == 2 else CrawlFailed(message)


def main(argv: list[str] | None = None) -> int:
    """Run a crawl as a command.

    Status 0: complete, or as far as asked for; 1: failed, or the site cannot be reached; 2: bad input;
    130: stopped.
    """
    parser = argparse.ArgumentParser(description="Crawl a site into WARC files, or go on with it.")
    parser.add_argument("site", help="name of one of `crawl.sites`")
    parser.add_argument("out", type=Path, help="directory of the WARC files")
    parser.add_argument(
        "--job", type=Path, default=Path("work/crawl"), help="what is pending, a folder a site"
    )
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--stop-after", type=int, metavar="N", help="end this run after N pages more")
    parser.add_argument(
        "--fresh", action="store_true", help="remove what is saved of the site and begin anew"
    )
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", datefmt="%H:%M:%S")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        params = site_of(load_section(arguments.params, "crawl", CrawlParams), arguments.site)
        report = crawl(
            arguments.out,
            arguments.job / params.name,
            params,
            stop_after=arguments.stop_after,
            fresh=arguments.fresh,
        )
    except (ParameterError, StageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CrawlFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on with what is pending", file=sys.stderr)
        return 130
    print(summary(report))
    return {"complete": 0, "stop_after": 0, "unreachable": 1, "stopped": 130}[report.ended]


def site_of(params: CrawlParams, name: str) -> SiteParams:
    """The site of that name.

    Raises:
        ParameterError: if there is none; the message names those there are.
    """
    for site in params.sites:
        if site.name == name:
            return site
    known = [site.name for site in params.sites]
    hint = nearest(name, known) if known else "`crawl.sites` is empty"
    raise ParameterError(f"`crawl.sites` has no site named {name}; {hint}")


def summary(report: CrawlReport) -> str:
    """The report in words."""
    how = {
        "complete": "complete; --fresh crawls it anew",
        "stop_after": "stopped as asked for; the same command goes on",
        "stopped": "stopped; the same command goes on",
        "unreachable": "the site cannot be reached; nothing was given up, the same command goes on",
    }[report.ended]
    skipped = ", ".join(f"{count} {reason}" for reason, count in report.skipped.items()) or "none"
    return (
        f"{report.name}: {report.pages} pages ({report.bytes / 2**20:.1f} MiB) in {len(report.files)} files, "
        f"{report.pending} pending, skipped: {skipped}. {how}"
    )


@contextmanager
def _session() -> Iterator[subprocess.Popen[bytes]]:
    """The crawling process, in a group of its own; it is gone when the block is left, however that is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tasks.corpus.crawling.session"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.stdin.close()  # which asks it to stop
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            process.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
