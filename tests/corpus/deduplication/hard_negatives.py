"""Documents that look alike and are no duplicates, and edited copies that are, with the truth about pairs.

The truth is the Jaccard index of the sets of all runs of five words, compared pair by pair in plain Python:
no hash, no signature and no band has a part in it.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tasks.code import ROOT
from tasks.corpus.scoring.segments import segment_words

SIZE, THRESHOLD = 5, 0.8

PLACES = ["Ashford", "Brindle", "Corran", "Dunmore", "Eastlow", "Farley", "Glenbeck", "Harwick", "Inverley"]
NAMES = [
    "Abel", "Bridget", "Conrad", "Delia", "Edmund",
    "Flora", "Gareth", "Hester", "Ivor", "Judith", "Nora",
]  # fmt: skip
GOODS = [
    "barley", "oats", "rye", "wheat", "millet", "spelt",
    "maize", "bran", "malt", "straw", "hay", "flour",
]  # fmt: skip

LICENCE = """# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file
# except in compliance with the License. You may obtain a copy of the License at
#     http://www.apache.org/licenses/LICENSE-2.0
# Unless required by applicable law or agreed to in writing, software distributed under the License is
# distributed on an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and limitations under the License.
"""

WEATHER = """Weather report for {place}, {day}: {sky}, wind from the {side} at {speed} knots, {noon}
degrees, {rain} millimetres of rain.

All figures are read at the station of the mill, at the seventh hour, by instruments that are tested
every spring. Temperatures are taken in the shade, two metres above the grass. Wind is the mean of ten
minutes before the reading, on a mast of ten metres. Those who work on the river should keep watch on the
gauge at the weir, and heed what the keeper of the locks may say. Warnings are given by three strokes of
the bell, and are called off by one.
"""

FORM = """This agreement is made on the {day} between {one} of {place}, the lessor, and {two} of
{other}, the lessee. The lessor lets to the lessee the mill by the weir with its stones, its wheel and
all that belongs to it, as it stands, for a term of {years} years at a rent of {rent} crowns. The lessee
keeps the wheel, the sluice and the stones in good repair, and gives them back at the end of the term as
they were found. Nothing may be built on the land, and no tree be felled, unless the lessor agrees in
writing. The lessee grinds for the lessor free of charge what the house needs in a year. The lessor bears
the cost of what a flood or a fire destroys, if the lessee has done what was reasonable against it. If
the rent is late by more than a month, the lessor may end the agreement at once. Notice is otherwise to
be given in writing before the last quarter of the term. Should a part of this agreement be void, the
rest of it stands. Disputes go before the court at {court}. Signed by {one} and by {two}.
"""

INVOICE = """Gristmill and Sons, millers since 1802, to {name} of {place}. Invoice {number} of {day}.

{lines}

The whole is to be paid within thirty days of the date above, without deduction, at our office or by a
draft on any of the banks that are named on the back. Goods remain ours until they are paid for. Sacks
are lent, not sold, and are to be sent back empty and dry with the next cart. Complaints about weight are
heard on the day of delivery only, about quality within a week, and need a sample of not less than a
pound. Interest is asked for what is late, at the rate that the guild lays down every winter. We thank
you for your custom, and commend ourselves for all that you may need in flour, meal and bran.
"""

TABLE = """Sacks ground at our stations, as the books of the year have it, checked by two clerks of
the guild.

A sack is taken at two hundred pounds. What was ground for the poor is not counted, nor what a station
used for its own beasts. A station that stood still for a quarter is left out, and the reason is given in
the yearly report. Figures in the column of the whole year are those of the books, and may differ by a
few sacks from the sum of the quarters, since carts on the road at the end of a quarter are counted in
the next.

| station | first quarter | second quarter | third quarter | fourth quarter | of the whole year |
|---|---|---|---|---|---|
{rows}
"""

REVISED = ["He", "She", "They", "miller", "farmer", "evening", "morning", "without", "beneath", "because"]


@dataclass(frozen=True)
class LookAlike:
    """A document; ``family`` names the kind of likeness."""

    family: str
    text: str


def look_alikes() -> list[LookAlike]:
    """Several hundred documents, in an order that puts no two of a family beside each other by plan."""
    coin = random.Random(20)
    made = [
        LookAlike(family, text)
        for family, make in (NEGATIVES | POSITIVES).items()
        for text in make(random.Random(family))
    ]
    coin.shuffle(made)
    return made


def true_pairs(texts: list[str]) -> dict[tuple[int, int], float]:
    """The pairs of a Jaccard index of ``THRESHOLD`` or more."""
    sets = [shingles_of(text) for text in texts]
    found = {}
    for one, other in itertools.combinations(range(len(sets)), 2):
        sizes = sorted((len(sets[one]), len(sets[other])))
        if sizes[0] and sizes[0] >= THRESHOLD * sizes[1]:  # else the index cannot reach it
            value = jaccard(sets[one], sets[other])
            if value >= THRESHOLD:
                found[one, other] = value
    return found


def shingles_of(text: str) -> set[tuple[str, ...]]:
    """The runs of five words, as words."""
    words, raw = segment_words(pa.array([text])), text.encode()
    bounds = zip(words.starts_W.tolist(), words.ends_W.tolist(), strict=True)
    found = [raw[begin:end].decode().lower() for begin, end in bounds]
    return {tuple(found[i : i + SIZE]) for i in range(max(1, len(found) - SIZE + 1))} if found else set()


def jaccard(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> float:
    """The share of what both have in what either has."""
    return len(one & other) / len(one | other)


def _weather(coin: random.Random) -> Iterator[str]:
    for _ in range(50):
        yield WEATHER.format(
            **_values(coin),
            sky=coin.choice(["clear", "grey", "misty", "wet", "cold", "mild"]),
            side=coin.choice(["north", "east", "south", "west"]),
            speed=coin.randint(3, 60),
            noon=coin.randint(1, 39),
            rain=coin.randint(1, 90),
        )


def _forms(coin: random.Random) -> Iterator[str]:
    for _ in range(50):
        one, two = coin.sample(NAMES, 2)
        years, rent = coin.randint(2, 30), coin.randint(30, 900)
        yield FORM.format(
            **_values(coin), one=one, two=two, years=years, rent=rent, court=coin.choice(PLACES)
        )


def _invoices(coin: random.Random) -> Iterator[str]:
    for number in range(50):
        goods = sorted(coin.sample(GOODS, 2))
        lines = [f"{good}: {coin.randint(2, 99)} sacks at {coin.randint(2, 99)} crowns" for good in goods]
        yield INVOICE.format(
            **_values(coin), name=coin.choice(NAMES), number=1000 + 7 * number, lines="\n".join(lines)
        )


def _tables(coin: random.Random) -> Iterator[str]:
    for _ in range(30):
        rows = [
            f"| {place} | " + " | ".join(str(coin.randint(100, 999)) for _ in range(5))
            for place in coin.sample(PLACES, 3)
        ]
        yield TABLE.format(rows="\n".join(rows))


def _values(coin: random.Random) -> dict[str, str]:
    place, other = coin.sample(PLACES, 2)
    month = coin.choice(["March", "June", "September", "December"])
    return {
        "place": place,
        "other": other,
        "day": f"{coin.randint(1, 28)} {month} {coin.randint(1850, 1999)}",
    }


def _changelogs(coin: random.Random) -> Iterator[str]:
    verbs = ["Fixes", "Adds", "Drops", "Moves", "Renames"]
    things = ["reader", "writer", "parser", "cache", "loop"]
    entries = [
        f"Version 1.{number}: {coin.choice(verbs)} the {coin.choice(things)} of {coin.choice(GOODS)} that "
        f"{coin.choice(NAMES)} of {coin.choice(PLACES)} wrote about in report {coin.randint(100, 9999)}."
        for number in range(130)
    ]
    # Each was written three entries after the one before, and shows the last twenty.
    for first in range(0, 110, 3):
        yield "Changes, newest last.\n" + "\n".join(entries[first : first + 20])


def _licensed(coin: random.Random) -> Iterator[str]:
    pieces = [
        piece
        for module in _sample("python-code")
        for piece in re.split(r"\n(?=def |class )", module)
        if 25 <= len(piece.split()) <= 80
    ]
    chosen = list(dict.fromkeys(coin.sample(pieces, 70)))
    yield from (f"{LICENCE}\n{piece}" for piece in chosen)


def _books(coin: random.Random) -> Iterator[str]:
    """Books, and each once more with another's end."""
    books = coin.sample(_long_books(), 12)
    yield from books
    for one, other in zip(books, books[1:] + books[:1], strict=True):
        words, end = one.split(), other.split()
        kept = 5 * len(words) // 6
        yield " ".join(words[:kept] + end[-(len(words) - kept) :])


def _prefaces(coin: random.Random) -> Iterator[str]:
    """A preface of many pages that is longer than what follows it."""
    preface, *books = coin.sample(_long_books(), 17)
    before = " ".join(preface.split()[:2500])
    yield from (before + "\n\n" + " ".join(book.split()[:500]) for book in books)


def _revised(coin: random.Random) -> Iterator[str]:
    """A text and a revision of it that has another word in every thirtieth place."""
    for text in _chapters(0, 20):
        words = text.split()
        yield text
        yield " ".join(coin.choice(REVISED) if i % 30 == 10 else word for i, word in enumerate(words))


def _excerpts(_: random.Random) -> Iterator[str]:
    """A text and the first seven tenths of it, which it contains."""
    for text in _chapters(20, 35):
        words = text.split()
        yield text
        yield " ".join(words[: 7 * len(words) // 10])


def _edited(coin: random.Random) -> Iterator[str]:
    """A text, and it with a few words replaced, with a line before and behind, and with another spacing."""
    for number, text in enumerate(_chapters(35, 75)):
        words = text.split()
        yield text
        yield " ".join(coin.choice(REVISED) if i % 250 == 99 else word for i, word in enumerate(words))
        yield f"Read at the mill on day {number}.\n\n{text}\n\nPrinted for {coin.choice(NAMES)}."
        yield text.upper().replace(",", " ;").replace(".", " .")


def _shortened(coin: random.Random) -> Iterator[str]:
    """A chain: each text without the last twentieth of the one before."""
    for text in _chapters(75, 85):
        words = text.split()
        for _ in range(5):
            yield " ".join(words)
            words = words[: 19 * len(words) // 20]


def _chapters(first: int, last: int) -> list[str]:
    """Texts of a few hundred words that are like no other; of other numbers others."""
    chapters = [text for text in _sample("bible") if 300 <= len(text.split()) <= 1500]
    random.Random(0).shuffle(chapters)
    return chapters[first:last]


def _long_books() -> list[str]:
    """Books, each once: the sample has several twice."""
    by_beginning = {" ".join(text.split()[200:260]): text for text in _sample("books")}
    return [text for text in by_beginning.values() if 3000 <= len(text.split()) <= 12000]


def _sample(name: str) -> list[str]:
    with gzip.open(ROOT / "sample" / "corpus" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["raw"].replace("\r\n", "\n") for line in lines]


Make = Callable[[random.Random], Iterator[str]]

NEGATIVES: dict[str, Make] = {
    "weather": _weather, "forms": _forms, "invoices": _invoices, "tables": _tables, "changelogs": _changelogs,
    "licensed": _licensed, "books": _books, "prefaces": _prefaces, "revised": _revised, "excerpts": _excerpts,
}  # fmt: skip
"""Families of which no two documents are duplicates."""

POSITIVES: dict[str, Make] = {"edited": _edited, "shortened": _shortened}
"""Families of true duplicates, in groups."""
