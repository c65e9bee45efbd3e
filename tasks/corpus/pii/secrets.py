"""Keys, tokens and passwords in code and configuration."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from tasks.corpus.pii.context import EDGE, positions


def find_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Private key blocks (whole), tokens in the form of their issuer, and values given to a key or password.

    Of an assignment, a header or a URL only the value is taken, so that the code around it can still be
    learned from. What stands for a secret in documentation is none: see `_is_stand_in`.
    """
    if "-----BEGIN " in text:
        for block in _PRIVATE_KEY.finditer(text):
            yield block.span()
    for hint, beginnings in _BEGINNINGS.items():
        for beginning in beginnings if hint.search(text) else ():
            for position in positions(text, beginning):
                token = _ISSUED.match(text, position)
                if token and not _is_stand_in(token[0]):
                    yield token.span()
    for position in positions(text, "://"):
        password = _IN_URL.match(text, position)
        if password and not _is_stand_in(password[1]):
            yield password.span(1)
    lower = _lowered(text)
    for scheme in ("bearer ", "basic "):
        for position in positions(lower, scheme):
            credential = _IN_HEADER.match(text, position)
            if credential and _looks_random(credential[1]):
                yield credential.span(1)
    for stem in _STEMS:
        for position in positions(lower, stem):
            assignment = _ASSIGNED.match(text, position)
            if assignment and (stem != "key" or _KEY_OF.search(lower, max(0, position - 24), position)):
                group = assignment.lastindex or 0
                if _is_secret_value(stem, assignment[group], group == _UNQUOTED):
                    yield assignment.span(group)


def _lowered(text: str) -> str:
    """In lower case, character for character."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(sign.lower()[0] for sign in text)


# Base64 in lines, the headers of old formats, and marks of comments or strings around them. It ends at two
# hyphens: many beginnings without an end are each read once.
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[A-Za-z0-9+/=\s:,.()\\\"'*#|>]++|-(?!-)){1,2000}+"
    r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
)

# By what they all contain: a pattern that begins with a fixed sign is looked for much faster than each of
# them.
_BEGINNINGS = {
    re.compile("_[A-Za-z0-9]{16}"): ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk_live_",
    "sk_test_",
                                     "rk_live_", "rk_test_", "whsec_", "npm_", "hf_"),
    re.compile("-[A-Za-z0-9_-]{20}"): ("glpat-", "xox", "GOCSPX-", "pypi-AgE", "sk-"),
    re.compile("A(?:[KS]IA|Iza)"): ("AKIA", "ASIA", "AIza"),
    re.compile("eyJ[A-Za-z0-9_-]{8}"): ("eyJ",),
    re.compile("SG[.][A-Za-z0-9_-]{22}"): ("SG.",),
    re.compile("ya29[.]"): ("ya29.",),
}  # fmt: skip
_ISSUED = re.compile(
    rf"(?<![{EDGE}])(?:"
    r"(?:AKIA|ASIA)[A-Z2-7]{16}"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"  # GitHub
    r"|glpat-[A-Za-z0-9_-]{20,64}"  # GitLab
    r"|xox[abeoprs]-[A-Za-z0-9-]{20,250}"  # Slack
    r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,247}|whsec_[A-Za-z0-9+/=]{32,64}"  # Stripe
    r"|AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{28}|ya29[.][A-Za-z0-9_-]{20,250}"  # Google
    r"|npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{50,250}|hf_[A-Za-z0-9]{34}"  # npm, PyPI, Hugging Face
    r"|SG[.][A-Za-z0-9_-]{22}[.][A-Za-z0-9_-]{43}"  # SendGrid
    r"|sk-(?:ant-|proj-|svcacct-|or-)?[A-Za-z0-9][A-Za-z0-9_-]{30,200}"  # Anthropic, OpenAI and those alike
    r"|eyJ[A-Za-z0-9_-]{8,2000}[.]eyJ[A-Za-z0-9_-]{8,4000}[.][A-Za-z0-9_-]{16,1000}"  # JWT (RFC 7519)
    rf")(?![{EDGE}])"
)

_IN_URL = re.compile(r"://[^\s:/@<>\x00\"'`]{0,64}+:([^\s:/@<>\x00\"'`]{4,128}+)@(?=[A-Za-z0-9\[])")
_IN_HEADER = re.compile(
    rf"(?<![{EDGE}])(?:bearer|(?<=authorization: )basic) ([A-Za-z0-9._~+/-]{{16,4096}}+={{0,2}})",
    re.IGNORECASE,
)

_STEMS = ("pass", "pwd", "secret", "token", "credential", "key")
_KEY_OF = re.compile(
    "(?:api|access|auth|account|encryption|signing|private|client|master|shared|secret|service|license|aws"
    "|azure|app|webhook)[_ -]?$"
)
# The rest of an identifier, a type or nothing, the sign, then a quoted value (of any signs but blanks) or an
# unquoted one to the end of the word.
_ASSIGNED = re.compile(
    r"(?:pass(?:w(?:or)?d|phrase)?|pwd|secret|token|credentials?|key)(?:[_ -]?(?:key|value|str|string"
    r"|access[_ -]?key))?[\"']?\]?(?:: ?(?:str|string))?[ \t]{0,8}(?:=>|:=|[=:])[ \t]{0,8}"
    r"(?:[rbuf]?\"([^\s\"<>\x00]{8,200}+)\"|[rbuf]?'([^\s'<>\x00]{8,200}+)'|"
    r"([A-Za-z0-9_+/=.!@#%^&*~-]{12,200}+)(?=[\s;,#]|$))",
    re.IGNORECASE,
)
_UNQUOTED = 3
_PASSWORDS = ("pass", "pwd")

_STAND_IN = re.compile(
    r"example|sample|change|your|dummy|placeholder|secret|passw|redacted|insert|replace|fake|mock|todo"
    r"|undefined|default|"
    r"localhost|xxxx|0123456|1234567|abcdef|qwerty|foobar|deadbeef|\.\.\.|\*\*\*|\$[{(A-Za-z]|\{\{?|%[(s]"
    r"|\[|<",
    re.IGNORECASE,
)
_WORDS = re.compile(r"(?:[A-Za-z]+|[0-9]+)(?:[_.-](?:[A-Za-z]+|[0-9]+))*")
_MIN_ENTROPY = (
    2.8  # bits a character; eight different characters have 3, English words of that length 2 to 2.75
)


def _is_stand_in(value: str) -> bool:
    """Whether a value only stands for a secret: says so, is a variable or a format, or repeats two signs."""
    return _STAND_IN.search(value) is not None or len(set(value)) < 4


def _is_secret_value(stem: str, value: str, unquoted: bool) -> bool:
    if stem not in _PASSWORDS and _WORDS.fullmatch(value):
        return False
    if _is_stand_in(value) or not _is_mixed(value) or _entropy(value) < _MIN_ENTROPY:
        return False
    if unquoted and (not _looks_random(value) or value.count(".") > 1 or "(" in value):
        return False
    return stem in _PASSWORDS or len(value) >= 16


def _looks_random(value: str) -> bool:
    return not _is_stand_in(value) and len(value) >= 16 and _is_mixed(value) and _entropy(value) >= 3


def _is_mixed(value: str) -> bool:
    """Letters and digits: what is one of both alone is a word or a number."""
    return re.search("[0-9]", value) is not None and re.search("[A-Za-z]", value) is not None


def _entropy(value: str) -> float:
    """Shannon's, in bits a character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
