"""IP addresses of hosts that can be reached, told from versions and section numbers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from tasks.corpus.pii.context import EDGE, preceding, stands_near, words


def find_ip_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Global unicast addresses (IANA's special-purpose registries): those that can lead to a person.

    Private, loopback, link-local, documentation, multicast and broadcast addresses and netmasks name nobody
    and stay. Four numbers with dots are an address where words for the net stand near, or where they are too
    large for a version or a section; a word for those directly before, or a title behind, speaks against it.
    """
    for rest in _THREE_NUMBERS.finditer(text):
        numbers = next(
            filter(None, (_FOUR_NUMBERS.match(text, max(0, rest.start() - digits)) for digits in (1, 2, 3))),
            None,
        )
        if numbers and _names_a_host(numbers[0]) and _is_no_network_or_version(text, numbers):
            yield numbers.span()
    for groups in _GROUPS.finditer(text) if _COLONS.search(text) else ():
        value = groups[0] if groups[0].endswith("::") else groups[0].rstrip(":")
        network = value.endswith("::") and text.startswith("/", groups.end())
        touches = _TOUCHING.match(text[max(0, groups.start() - 1) : groups.start()])
        if _names_a_host(value) and not network and not touches and sum(map(bool, value.split(":"))) > 2:
            yield groups.start(), groups.start() + len(value)


_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
# A pattern that begins with a fixed sign is looked for much faster than one that begins with a condition.
_THREE_NUMBERS = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.(?=[0-9])")
_FOUR_NUMBERS = re.compile(
    rf"(?<![{EDGE}.])(?<![A-Za-z0-9)][\-+~])(?:{_OCTET}\.){{3}}{_OCTET}(?![{EDGE}]|\.[0-9A-Za-z]"
    rf"|[\-+~][0-9A-Za-z]{{1,3}}(?!\.))"
)
_COLONS = re.compile(":[0-9A-Fa-f]{0,4}:")
# The only unicast space that is given out is 2000::/3.
_GROUPS = re.compile(rf"[23][0-9A-Fa-f]{{3}}:[0-9A-Fa-f:]{{3,36}}+(?![{EDGE}]|\.[0-9])")
_TOUCHING = re.compile(rf"[{EDGE}:.]")

_DOCUMENTATION = ipaddress.ip_network("3fff::/20")  # RFC 9637; Python's registry may be older

_NET_WORDS = words(
    r"ip(?:v[46])?(?![a-z])", "ip[_ -]?add", r"addr(?:ess(?:es)?)?(?![a-z])", "host", "server", "ping",
    r"ssh(?![a-z])", "inet",
    "gateway", "dns", "nameserver", "rout(?:e|ing)", "client", "connect", "network", "subnet", "firewall",
    "proxy", "peer", "remote",
    "login", "logged in", "https?://", "listen", "bind", "traceroute", "telnet", "rhost", "adresse",
    "dirección", "direccion",
    "indirizzo", "endereço", "adres", "serveur", "servidor", "serwer", "адрес", "сервер", "узел", "хост",
    "地址", "アドレス", "サーバ", "服务器",
    "伺服器", "主机", "主機", "주소", "서버",
)  # fmt: skip
_VERSION_WORDS = re.compile(
    r"(?:(?<![^\W\d_])(?:v|ver|vers|version(?:e|en|s|ión|ão)?|versión|versão|wersj[aię]|верси[яию]|rev"
    r"|revision|release|build|patch|"
    r"firmware|kernel|section|sect|sec|sections|chapter|chap|ch|appendix|annex|clause|article|paragraph"
    r"|para|part|figure|fig|table|"
    r"tab|listing|example|equation|eq|step|item|rule|oid|kapitel|abschnitt|abbildung|abb|tabelle|anhang"
    r"|chapitre|annexe|"
    r"capítulo|sección|seção|figura|tabla|tabela|capitolo|sezione|tabella|rozdział|sekcja|раздел|глава"
    r"|рисунок|таблица|пункт)"
    r"[.:]?|版本|版|章|節|节|图|圖|表|第|§|¶|[<>=]=?|[<>])[\s\"'(]{0,3}v?$"
)
_TITLE = re.compile(r"[.):]?[ \t]{1,4}[^\W\d_]")


def _names_a_host(value: str) -> bool:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    return address.is_global and not address.is_multicast and address not in _DOCUMENTATION


def _is_network(text: str, numbers: re.Match[str]) -> bool:
    """Whether a prefix length follows that leaves nothing to the host: 81.12.44.0/24."""
    prefix = re.compile("/([0-9]|[12][0-9]|3[01])(?![0-9])").match(text, numbers.end())
    return prefix is not None and int(ipaddress.IPv4Address(numbers[0])) % 2 ** (32 - int(prefix[1])) == 0


def _is_no_network_or_version(text: str, numbers: re.Match[str]) -> bool:
    start, end = numbers.span()
    octets = [int(octet) for octet in numbers[0].split(".")]
    if (
        _is_netmask(octets)
        or _is_network(text, numbers)
        or _VERSION_WORDS.search(preceding(text, start, 24).lower())
    ):
        return False
    if max(octets) >= 100 or sum(octet >= 20 for octet in octets) > 2:
        return True
    begins_line = not text[max(0, start - 200) : start].rpartition("\n")[2].strip(" \t*#=-•")
    if begins_line and _TITLE.match(text, end):
        return False
    return stands_near(_NET_WORDS, text, start, end, before=40, after=20)


def _is_netmask(octets: list[int]) -> bool:
    """Ones before zeros: 255.255.252.0; or the other way round, a wildcard mask."""
    bits = "".join(f"{octet:08b}" for octet in octets)
    return "01" not in bits or "10" not in bits
