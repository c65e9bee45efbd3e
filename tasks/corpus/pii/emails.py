"""E-mail addresses, also those written with "at" and "dot"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks.corpus.pii.context import EDGE, positions


def find_emails(text: str) -> Iterator[tuple[int, int]]:
    """Addresses as people have them: a subset of RFC 5321, with a dot in the domain and a name at its end.

    Not found are logins (``git@github.com:owner/repository``, ``ssh://user@host.org``), files and units that
    look alike (``icon@2x.png``, ``getty@tty1.service``), and hosts that no mail reaches from outside
    (``user@localhost``, ``user@printer.local``).
    """
    for at in positions(text, "@"):
        domain = _DOMAIN.match(text, at + 1)
        local = _LOCAL.search(text, max(0, at - 65), at) if domain else None
        if domain and local and domain[1].lower() not in _NO_MAIL_DOMAINS:
            start, end = local.start(), domain.end()
            if not _is_login(text, start, at, end):
                yield start, end
    if any(hint in text for hint in _SPELLED_HINTS):
        for pattern in (_BRACKETED, _SPELLED):
            for address in pattern.finditer(text):
                yield address.span()


def canonical_email(value: str) -> str:
    """An address in lower case, its "at" and "dot" as signs."""
    value = value.casefold()
    return value if "@" in value else _DOT_WORD.sub(".", _AT_WORD.sub("@", value, count=1))


# Every repeat is bounded, and a local part begins at no sign that could stand within one: hostile text costs
# no more than 64 characters an @.
_LOCAL = re.compile(rf"(?<![{EDGE}.+%-])(?:[DLOdlo]')?[A-Za-z0-9_][A-Za-z0-9_.+%-]{{0,63}}\Z")
_LABEL = "[A-Za-z0-9À-ÖØ-öø-ſ](?:[A-Za-z0-9À-ÖØ-öø-ſ-]{0,61}[A-Za-z0-9À-ÖØ-öø-ſ])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}\.){{1,8}}([A-Za-z]{{2,24}}|xn--[A-Za-z0-9-]{{2,59}})(?![{EDGE}])")

_NO_MAIL_DOMAINS = frozenset({
    "local", "localhost", "localdomain", "internal", "lan", "service", "socket", "target", "timer",
    "mount", "slice", "scope", "device", "path", "png", "jpg", "jpeg", "gif", "svg", "webp", "bmp", "ico",
    "css", "scss", "js", "ts", "json", "xml", "html", "htm", "php", "txt", "yaml", "yml", "exe", "dll",
    "class", "jar",
})  # fmt: skip
_URL_USER = re.compile(r"://(?:[^\s/@:]{0,64}:)?\Z")
_ACCOUNTS = ("git", "hg", "svn", "cvs", "anonymous", "anoncvs")

_SPELLED_HINTS = (" dot ", " DOT ", "(at)", "(AT)", "[at]", "[AT]")
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}+"
_HOST = r"[A-Za-z0-9][A-Za-z0-9-]{0,62}+"
_DOT_SIGN = r"(?: ?(?:\(dot\)|\[dot\]) ?| dot |\.)"
_ENDINGS = (
    "com|org|net|edu|gov|info|io|dev|ac|co|eu|uk|de|fr|es|it|pt|pl|ru|br|cn|jp|in|nl|se|ch|at|be|ca|au|us"
)
_BRACKETED = re.compile(
    rf"(?<![{EDGE}.+-]){_NAME} ?(?:\(at\)|\[at\]) ?(?:{_HOST}{_DOT_SIGN}){{1,4}}[a-z]{{2,24}}(?![{EDGE}])",
    re.IGNORECASE,
)
_SPELLED = re.compile(
    rf"(?<![{EDGE}.+-]){_NAME}(?: dot [a-z0-9]{{1,30}}){{0,2}} at (?!(?:the|an?|this|that|each|every) )"
    rf"(?:{_HOST} dot ){{1,4}}(?:{_ENDINGS})(?![{EDGE}])",
    re.IGNORECASE,
)
_AT_WORD = re.compile(r" ?[(\[]at[)\]] ?| at ")
_DOT_WORD = re.compile(r" ?[(\[]dot[)\]] ?| dot ")


def _is_login(text: str, start: int, at: int, end: int) -> bool:
    """Whether it is whose account a program uses (URL, or scp's ``user@host:path``), not where mail goes."""
    if _URL_USER.search(text, max(0, start - 80), start):
        return True
    path_follows = text[end : end + 1] == ":" and re.match(r"[\w~./-]", text[end + 1 : end + 2]) is not None
    return path_follows or text[start:at] in _ACCOUNTS
