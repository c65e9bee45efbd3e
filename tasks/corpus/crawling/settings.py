"""A site's parameters as Scrapy's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tasks.corpus.crawling.parameters import SiteParams

ACCEPT = {
    "html": "text/html,application/xhtml+xml;q=0.9",
    "text": "text/plain;q=0.8,text/markdown;q=0.8",
    "pdf": "application/pdf;q=0.7",
}

_PACKAGE = "tasks.corpus.crawling"
_DOWNLOADER = "scrapy.downloadermiddlewares"
_SPIDER = "scrapy.spidermiddlewares"


def settings_of(params: SiteParams, job: Path) -> dict[str, Any]:
    """Everything in which a crawl differs from Scrapy's defaults."""
    hosts = len(params.allowed_domains or {urlsplit(seed).netloc for seed in params.seeds})
    headers = {"Accept": ",".join(ACCEPT[kind] for kind in params.content_types)}
    if params.email:
        headers["From"] = params.email
    return {
        # politeness
        "USER_AGENT": params.agent,
        "DEFAULT_REQUEST_HEADERS": headers,
        "DOWNLOAD_DELAY": params.delay,
        "DOWNLOAD_DELAY_JITTER": 0.0,  # else half of the requests come sooner than they may
        "CONCURRENT_REQUESTS": min(64, params.concurrency * hosts),
        "CONCURRENT_REQUESTS_PER_DOMAIN": params.concurrency,
        "AUTOTHROTTLE_ENABLED": params.autothrottle,
        "AUTOTHROTTLE_START_DELAY": params.delay,
        "AUTOTHROTTLE_TARGET_CONCURRENCY": float(params.concurrency),
        "RETRY_TIMES": params.retries,
        "RETRY_PRIORITY_ADJUST": 0,  # a page that comes late would pass its links on with a wrong depth
        "DOWNLOAD_TIMEOUT": params.timeout,
        "DOWNLOAD_MAXSIZE": params.max_page_bytes,
        "DOWNLOAD_WARNSIZE": 0,
        "DOWNLOAD_VERIFY_CERTIFICATES": True,
        # what the crawl sees to itself: nothing is dropped without a line in the ledger
        "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
        "REDIRECT_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "HTTPERROR_ALLOW_ALL": True,
        "ROBOTSTXT_OBEY": False,
        "DOWNLOADER_MIDDLEWARES": {
            f"{_DOWNLOADER}.offsite.OffsiteMiddleware": None,
            f"{_PACKAGE}.politeness.RobotsTxt": 100 if params.robots_txt else None,
            f"{_PACKAGE}.politeness.ContentEncoding": 595,  # between the network and HttpCompression's 590
        },
        "SPIDER_MIDDLEWARES": {
            f"{_SPIDER}.urllength.UrlLengthMiddleware": None,
            f"{_SPIDER}.depth.DepthMiddleware": None,
            f"{_SPIDER}.referer.RefererMiddleware": None,
        },
        # pending requests on disk, breadth first
        "JOBDIR": str(job),
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_START_DISK_QUEUE": None,
        "SCHEDULER_START_MEMORY_QUEUE": None,
        # nothing but HTTP and HTTPS, nothing remembered about us, no doors into the process
        "DOWNLOAD_HANDLERS": {"data": None, "file": None, "ftp": None, "s3": None},
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        # quiet
        "LOG_FILE": str(job / "scrapy.log"),
        "LOG_FILE_APPEND": False,
        "LOG_LEVEL": "WARNING",
        "STATS_DUMP": False,
    }
