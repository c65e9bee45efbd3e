"""One run of a crawl, in a process of its own: Twisted's reactor runs once in a process.

The order comes as one line of JSON on standard input, which stays open: when it closes, whoever gave the
order is gone, and the crawl stops. Lines of JSON go to standard output: `progress`, and at last `report` or
`error`. Exit status 0: there is a report; 2: bad input; 1: anything else.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tasks.corpus.crawling.frontier import Frontier
from tasks.corpus.crawling.parameters import SiteParams
from tasks.corpus.crawling.report import CrawlReport, Ending
from tasks.corpus.crawling.scope import Scope
from tasks.corpus.crawling.warc_writer import WarcDamaged, WarcWriter, salvage, saved_pages, warc_files

PROGRESS_SECONDS = 10.0
LOCK_SECONDS = 20.0
"""How long a crawl waits for one of the same job that is stopping."""


class Order(BaseModel):
    """What `crawl` asks for."""

    out: Path
    job: Path
    params: SiteParams
    stop_after: int | None
    fresh: bool


class Refused(Exception):
    """The crawl cannot be run as it is asked for; the message says why and what to do."""


def main() -> int:
    """Run the crawl that standard input asks for."""
    order = Order.model_validate_json(sys.stdin.buffer.readline())
    threading.Thread(target=_stop_with_the_caller, daemon=True).start()
    try:
        report = run(order)
    except (Refused, WarcDamaged) as error:
        _say("error", str(error))
        return 2
    except OSError as error:
        full = error.errno == errno.ENOSPC
        hint = "; free some space, the same command goes on" if full else ""
        _say("error", f"{error}{hint}")
        return 2 if full else 1
    _say("report", report.model_dump(mode="json"))
    return 0


def run(order: Order) -> CrawlReport:
    """Begin a crawl, or go on with it.

    Raises:
        Refused: it is being run already, was begun with other parameters, or its job directory is lost.
        WarcDamaged: a file of it cannot be read.
        OSError: the disk is full, or the like.
    """
    params, out = order.params, order.out
    out.mkdir(parents=True, exist_ok=True)
    order.job.mkdir(parents=True, exist_ok=True)
    with _alone(order.job):
        if order.fresh:
            _forget(order)
        earlier = CrawlReport.read(out, params.name)
        begun = order.job / "crawl.json"
        _check_same(earlier.parameters if earlier else None, params)
        if earlier and earlier.ended == "complete":
            return earlier
        if begun.exists():
            _check_same(json.loads(begun.read_text("utf-8")), params)
        elif warc_files(out, params.name):
            raise Refused(
                f"{out} has files of an unfinished crawl, but {order.job} does not know of it: bring that "
                "directory back, or crawl anew with --fresh"
            )
        else:
            (out / f"{params.name}.ledger.jsonl").unlink(missing_ok=True)
            partial = begun.with_suffix(".partial")
            partial.write_text(json.dumps(params.what_decides()), "utf-8")
            partial.replace(begun)
        salvage(out, params.name)
        report = _crawl(order)
        report.write(out)
        return report


def _crawl(order: Order) -> CrawlReport:
    params, out = order.params, order.out
    scope = Scope(params)
    frontier = Frontier(
        order.job / "discovered.jsonl",
        out / f"{params.name}.ledger.jsonl",
        scope,
        params.depth,
        saved_pages(out, params.name),
    )
    software = f"Gristmill {version('gristmill')}, Scrapy {version('scrapy')}, warcio {version('warcio')}"
    info = {
        "software": software,
        "format": "WARC File Format 1.1",
        "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "robots": "obey" if params.robots_txt else "ignore",
        "http-header-user-agent": params.agent,
        "operator": params.contact,
    }
    writer = WarcWriter(out, params.name, params.max_file_bytes, info)
    try:
        ended = _fetch(order, scope, frontier, writer)
    finally:
        writer.close()
        frontier.flush()
    pending = 0 if ended == "complete" else frontier.pending
    frontier.close()
    return CrawlReport(
        name=params.name,
        ended=ended,
        pages=frontier.pages,
        bytes=frontier.bytes,
        skipped=dict(sorted(frontier.skipped.items())),
        pending=pending,
        files=[path.name for path in warc_files(out, params.name)],
        parameters=params.what_decides(),
    )


def _fetch(order: Order, scope: Scope, frontier: Frontier, writer: WarcWriter) -> Ending:
    """Let the reactor run until the crawl ends, and say how it ended."""
    from scrapy.crawler import CrawlerProcess
    from twisted.internet.task import LoopingCall

    from tasks.corpus.crawling.settings import settings_of
    from tasks.corpus.crawling.spider import PageSpider

    scrapy_job = order.job / "scrapy"
    shutil.rmtree(scrapy_job, ignore_errors=True)  # the frontier knows better what is pending
    scrapy_job.mkdir()
    process = CrawlerProcess(settings_of(order.params, scrapy_job))
    crawler = process.create_crawler(PageSpider)
    process.crawl(crawler, order.params, scope, frontier, writer, order.stop_after)
    progress = LoopingCall(_progress(frontier))
    progress.start(PROGRESS_SECONDS, now=False)
    process.start()
    spider = crawler.spider
    if not isinstance(spider, PageSpider):
        raise Refused(f"Scrapy did not start; see {scrapy_job / 'scrapy.log'}")
    if spider.failure is not None:
        raise spider.failure
    if spider.ended == "unreachable" or (spider.failures and not frontier.pages):
        return "unreachable"
    if frontier.pages < order.params.max_pages:
        if spider.ended == "enough":
            return "stop_after"
        if spider.ended != "finished":
            return "stopped"
    spider.give_up_failures()
    frontier.settle()
    return "complete"


def _progress(frontier: Frontier) -> Any:
    last = [time.monotonic(), frontier.pages]

    def tell() -> None:
        now = time.monotonic()
        rate = (frontier.pages - last[1]) / (now - last[0])
        last[:] = [now, frontier.pages]
        counts = f"{frontier.pages} pages saved, {frontier.pending} pending"
        skipped = sum(frontier.skipped.values())
        _say("progress", f"{counts}, {skipped} skipped, {rate:.2f} pages/s")

    return tell


@contextmanager
def _alone(job: Path) -> Iterator[None]:
    """Keep a second crawl out of the job; the lock goes with the process."""
    with (job / "lock").open("w") as lock:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Refused(f"another crawl is at work in {job}; stop it first") from None
                time.sleep(0.1)
        yield


def _forget(order: Order) -> None:
    name = order.params.name
    files = [order.out / f"{name}.json", order.out / f"{name}.ledger.jsonl"]
    for path in [
        *files,
        *warc_files(order.out, name),
        order.job / "crawl.json",
        order.job / "discovered.jsonl",
    ]:
        path.unlink(missing_ok=True)


def _check_same(before: dict[str, Any] | None, params: SiteParams) -> None:
    now = params.what_decides()
    changed = [f"`{key}` was {before[key]!r}" for key in now if before and before.get(key) != now[key]]
    if changed:
        raise Refused(
            f"{params.name} was begun with other parameters: {', '.join(changed)}. Put them back, or crawl "
            "anew with --fresh (the pages that are saved are then removed)"
        )


def _stop_with_the_caller() -> None:
    while os.read(sys.stdin.fileno(), 1):  # not through a buffer, whose lock the interpreter wants at its end
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _say(kind: str, content: Any) -> None:
    try:
        print(json.dumps({kind: content}), flush=True)
    except BrokenPipeError:  # the caller is gone; what matters is on disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
