"""What a document repeats: Gopher's measures of repetition (Rae et al. 2021, table A1), in compiled loops."""

from __future__ import annotations

from tasks.compiled import compiled
from tasks.corpus.scoring.hashing import START, capacity_for, extended, hash_of, seen_before, slot_of


@compiled()
def repeated_pieces(chars, starts, stops, count, table, stamp):
    """Pieces (lines, paragraphs) that repeat an earlier one, and their characters."""
    mask = capacity_for(count) - 1
    pieces, characters = 0, 0
    for i in range(count):
        if seen_before(hash_of(chars, starts[i], stops[i]), table, stamp, mask):
            pieces += 1
            characters += stops[i] - starts[i]
    return pieces, characters


@compiled()
def extend_grams(grams, hashes, count, n):
    """Turn the hashes of n-1 words from each place on into those of n; returns how many there are."""
    places = count - n + 1
    for i in range(places):
        grams[i] = extended(grams[i], hashes[i + n - 1])
    return places


@compiled()
def top_gram_characters(grams, places, reach, n, table, stamp):
    """The characters (with a blank between words) of the most frequent n-gram, times its occurrences.

    Of several that are as frequent the first one counts. ``reach[i]`` is the number of characters before
    word i.
    """
    if places < 1:
        return 0
    mask = capacity_for(places) - 1
    best, best_first = 0, 0
    for i in range(places):
        slot = slot_of(grams[i], table, stamp, mask)
        if table.stamps[slot] != stamp:
            table.keys[slot], table.stamps[slot], table.counts[slot], table.firsts[slot] = (
                grams[i],
                stamp,
                0,
                i,
            )
        table.counts[slot] += 1
        times, first = table.counts[slot], table.firsts[slot]
        if times > best or (times == best and first < best_first):
            best, best_first = times, first
    return best * (reach[best_first + n] - reach[best_first] + n - 1)


@compiled()
def repeated_gram_characters(grams, places, reach, n, table, stamp):
    """The characters of n-grams that were seen before, read from left to right without overlap."""
    mask = capacity_for(places) - 1
    characters = 0
    i = 0
    while i < places:
        if seen_before(grams[i], table, stamp, mask):
            characters += reach[i + n] - reach[i]
            i += n
        else:
            i += 1
    return characters


@compiled()
def paragraphs_of(chars, begin, count, starts, stops):
    """The paragraphs, parted by blank lines, of ``chars[begin:count]``; returns their number."""
    found = 0
    i = begin
    while i <= count:
        if i == count or (chars[i] == 10 and i + 1 < count and chars[i + 1] == 10):
            starts[found], stops[found] = begin, i
            found += 1
            while i < count and chars[i] == 10:
                i += 1
            begin = i
            if i == count:
                break
        else:
            i += 1
    return found


@compiled()
def lines_of(chars, count, starts, stops):
    """The lines of ``chars[:count]``, blank ones too; returns their number."""
    found = 0
    begin = 0
    for i in range(count + 1):
        if i == count or chars[i] == 10:
            starts[found], stops[found] = begin, i
            found += 1
            begin = i + 1
    return found


@compiled()
def without_empty(starts, stops, count):
    """Move the pieces that are not empty to the front, in place; returns their number."""
    found = 0
    for i in range(count):
        if stops[i] > starts[i]:
            starts[found], stops[found] = starts[i], stops[i]
            found += 1
    return found


@compiled()
def characters_before(lengths, count, reach):
    """Fill ``reach[i]`` with the characters of the words before word i."""
    reach[0] = 0
    for i in range(count):
        reach[i + 1] = reach[i] + lengths[i]


@compiled()
def start_grams(hashes, count, grams):
    """1-grams, in the form that `extend_grams` goes on from."""
    for i in range(count):
        grams[i] = extended(START, hashes[i])
