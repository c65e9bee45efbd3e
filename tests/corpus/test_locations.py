from __future__ import annotations

import gzip
import http.server
import os
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.found_files import FoundFile, NoFile
from tasks.corpus.locations import locate
from tasks.corpus.store_errors import Interrupted, Unreadable
from tasks.stage import StageError


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    directory = tmp_path / "corpus"
    directory.mkdir()
    return directory


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name, "utf-8")


def find(path: str, corpus: Path, files: str = "*", **options: Any) -> list[FoundFile | NoFile]:
    return list(locate(path, corpus, options).find(files))


def names(path: str, corpus: Path, files: str = "*") -> list[str]:
    return [found.name for found in find(path, corpus, files) if isinstance(found, FoundFile)]


def faults(path: str, corpus: Path, files: str = "*") -> dict[str, str]:
    return {
        found.name: f"{found.rule}: {found.detail}"
        for found in find(path, corpus, files)
        if isinstance(found, NoFile)
    }


def test_a_path_is_a_file_or_a_directory(corpus: Path) -> None:
    write(corpus, "a.txt", "pages/b.txt", "pages/deep/c.txt")
    assert names("a.txt", corpus) == ["a.txt"]
    assert names("pages", corpus) == names("./pages/", corpus) == ["pages/b.txt", "pages/deep/c.txt"]
    assert names(".", corpus) == ["a.txt", "pages/b.txt", "pages/deep/c.txt"]


def test_files_selects_within_a_directory(corpus: Path) -> None:
    write(corpus, "pages/b.txt", "pages/deep/c.txt", "pages/d.bin")
    assert names("pages", corpus, "*.txt") == ["pages/b.txt", "pages/deep/c.txt"]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*.txt", ["a.txt", "b.txt"]),
        ("[b]?txt", ["b.txt"]),
        ("**/x.html", ["deep/er/x.html", "deep/x.html", "x.html"]),
        ("deep/*.html", ["deep/x.html"]),
        ("de*/er/*", ["deep/er/x.html"]),
        ("**", ["a.txt", "b.txt", "deep/er/x.html", "deep/x.html", "x.html"]),
    ],
)
def test_a_path_is_a_glob(corpus: Path, pattern: str, matches: list[str]) -> None:
    write(corpus, "a.txt", "b.txt", "x.html", "deep/x.html", "deep/er/x.html")
    assert names(pattern, corpus) == matches
    assert len(names(f"{corpus}/{pattern}", corpus)) == len(matches)


def test_a_file_whose_name_looks_like_a_glob_is_a_file(corpus: Path) -> None:
    write(corpus, "list[3].txt", "list3.txt")
    assert names("list[3].txt", corpus) == ["list[3].txt"]


def test_names_do_not_depend_on_where_the_corpus_lies(corpus: Path) -> None:
    write(corpus, "pages/b.txt")
    assert names("pages", corpus) == ["pages/b.txt"]
    assert names(str(corpus / "pages"), corpus) == names(f"file://{corpus}/pages", corpus) == ["b.txt"]
    assert names(str(corpus / "pages" / "b.txt"), corpus) == ["b.txt"]


def test_hidden_files_and_caches_are_left_out(corpus: Path) -> None:
    write(corpus, "a.txt", ".a.txt", ".git/config", "code/__pycache__/a.pyc", "code/__init__.py")
    assert names(".", corpus) == names("**", corpus) == ["a.txt", "code/__init__.py"]


def test_links_that_lead_in_a_circle_are_followed_once_and_told(corpus: Path) -> None:
    write(corpus, "pages/a.txt")
    (corpus / "pages" / "again").symlink_to(corpus / "pages")
    (corpus / "pages" / "up").symlink_to(corpus)
    (corpus / "pages" / "self").symlink_to(corpus / "pages" / "self")
    assert names(".", corpus) == ["pages/a.txt"]
    told = faults(".", corpus)
    assert list(told) == ["pages/again", "pages/self", "pages/up"]
    assert told["pages/again"] == told["pages/up"] == "not_a_file: a link to a folder that is read already"
    assert told["pages/self"].startswith("unreadable: ")


def test_a_folder_is_read_under_its_own_name_though_a_link_to_it_comes_first(corpus: Path) -> None:
    write(corpus, "z/a.txt")
    (corpus / "a").symlink_to(corpus / "z")
    assert names(".", corpus) == ["z/a.txt"]


def test_a_link_to_a_folder_elsewhere_is_followed(corpus: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "a.txt")
    (corpus / "link").symlink_to(tmp_path / "elsewhere")
    assert names(".", corpus) == ["link/a.txt"]


def test_what_is_no_file_is_told_and_not_opened(corpus: Path) -> None:
    write(corpus, "a.txt")
    os.mkfifo(corpus / "pipe")
    (corpus / "null").symlink_to("/dev/null")
    (corpus / "nowhere").symlink_to(corpus / "gone")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(corpus / "socket"))
        told = faults(".", corpus)
    assert names(".", corpus) == ["a.txt"]
    assert told["pipe"] == "not_a_file: a named pipe"
    assert told["socket"] == "not_a_file: a socket"
    assert told["null"] == "not_a_file: a device"
    assert told["nowhere"].startswith("unreadable: FileNotFoundError")
    assert faults(".", corpus, "*.txt") == {}


def test_a_name_that_is_no_utf_8_has_a_readable_form(corpus: Path) -> None:
    Path(os.fsdecode(os.fsencode(corpus) + b"/caf\xe9.txt")).write_text("here", "utf-8")
    (found,) = find(".", corpus)
    assert isinstance(found, FoundFile)
    assert found.name == "caf\\xe9.txt"
    with locate(".", corpus, {}).open(found) as opened:
        assert opened.read() == b"here"


def test_names_of_different_bytes_have_different_forms(corpus: Path) -> None:
    names = [b"\xff.txt", rb"\xff.txt", rb"\x5cxff.txt", rb"a\b.txt", b"\xfe.txt"]
    for name in names:
        Path(os.fsdecode(os.fsencode(corpus) + b"/" + name)).write_bytes(name)
    found = find(".", corpus)
    assert len({file.name for file in found}) == len(names)
    for file in found:
        assert isinstance(file, FoundFile)
        with locate(".", corpus, {}).open(file) as opened:
            assert opened.read() in names


def test_a_place_that_is_not_there_is_told(corpus: Path) -> None:
    with pytest.raises(StageError, match=r"none\.jsonl does not exist"):
        find("none.jsonl", corpus)
    with pytest.raises(StageError, match="does not exist"):
        find("none/*.jsonl", corpus)


def test_a_file_that_vanished_is_unreadable(corpus: Path) -> None:
    with pytest.raises(Unreadable, match="FileNotFoundError: No such file"):
        locate(".", corpus, {}).open(FoundFile(str(corpus / "gone"), "gone", 1))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("hdfs://127.0.0.1:1/corpus", "hdfs:// needs a Hadoop client.*JAVA_HOME, HADOOP_HOME.*webhdfs://"),
        ("nosuch://host/corpus", "nosuch"),
    ],
)
def test_a_file_system_that_lacks_something_says_what(corpus: Path, url: str, told: str) -> None:
    with pytest.raises(StageError, match=told):
        find(url, corpus)


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a directory; ``refused`` and the like answer with their status."""

    def send_head(self) -> Any:
        for part, status in (("refused", 403), ("broken", 503)):
            if part in self.path:
                self.send_error(status)
                return None
        return super().send_head()

    def end_headers(self) -> None:
        if self.path.endswith(".gz"):
            self.send_header("Content-Encoding", "gzip")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory and the URL that it is served at."""
    root = tmp_path / "served"
    root.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield root, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_file_comes_over_http_with_its_size_and_time_of_change(
    corpus: Path, served: tuple[Path, str]
) -> None:
    root, url = served
    write(root, "deep/a b.txt")
    location = locate(f"{url}/deep/a%20b.txt?version=3", corpus, {})
    (found,) = location.find("*")
    assert isinstance(found, FoundFile)
    assert (found.name, found.size) == ("a%20b.txt", len("deep/a b.txt"))
    assert (found.identity or "").startswith("modified:")
    with location.open(found) as opened:
        opened.seek(5)
        assert opened.read() == b"a b.txt"  # the server knows no ranges


def test_an_index_page_is_a_directory(corpus: Path, served: tuple[Path, str]) -> None:
    root, url = served
    write(root, "pages/a.txt", "pages/b.bin", "pages/deep/c.txt", "pages/.hidden.txt")
    assert names(f"{url}/pages/", corpus, "*.txt") == ["a.txt", "deep/c.txt"]
    assert names(f"{url}/pages/*.txt", corpus) == ["a.txt"]
    assert names(f"{url}/pages/**/*.txt", corpus) == ["a.txt", "deep/c.txt"]


def test_a_compressed_file_comes_as_it_lies_there(corpus: Path, served: tuple[Path, str]) -> None:
    root, url = served
    (root / "a.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    location = locate(f"{url}/a.jsonl.gz", corpus, {})
    (found,) = location.find("*")
    assert isinstance(found, FoundFile)
    with location.open(found) as opened:
        assert gzip.decompress(opened.read()) == b"{}"


def test_a_web_server_that_says_no_is_told_with_the_url(corpus: Path, served: tuple[Path, str]) -> None:
    _, url = served
    with pytest.raises(StageError, match=f"{url}/none.txt does not exist"):
        find(f"{url}/none.txt", corpus)
    with pytest.raises(StageError, match=f"{url}/none/.*(does not exist|404)"):
        find(f"{url}/none/", corpus)


def test_a_host_that_is_not_reached_is_told(corpus: Path, free_port: int) -> None:
    for path in ("a.txt", "pages/"):
        url = f"http://127.0.0.1:{free_port}/{path}"
        with pytest.raises(StageError, match=f"{url}.*Connect call failed"):
            find(url, corpus)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def test_a_refusal_is_final_and_a_failure_of_the_server_is_not(
    corpus: Path, served: tuple[Path, str]
) -> None:
    _, url = served
    location = locate(f"{url}/", corpus, {})

    def opened(name: str) -> object:
        return location.open(FoundFile(f"{url}/{name}", name, 1))

    with pytest.raises(Unreadable, match="403"):
        opened("refused.txt")
    with pytest.raises(Unreadable, match="FileNotFoundError"):
        opened("none.txt")
    with pytest.raises(Interrupted, match="broken.txt: .*503"):
        opened("broken.txt")
    with pytest.raises(StageError, match="access is denied.*403"):
        find(f"{url}/refused.txt", corpus)
