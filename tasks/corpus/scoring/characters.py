"""What a character is: one byte of flags for each code point, looked up by the compiled loops."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata

import numpy as np

SPACE, ALPHABETIC, WORD, UNSEGMENTED, SYMBOL, TERMINAL, DIGIT = (1 << bit for bit in range(7))
"""White space; letters; what words are made of (letters, digits, marks, ``_``); characters that are a word
each; what a word of symbols alone is made of; what ends a sentence or a line; decimal digits."""

# Scripts that put no space between words: Han, kana, Thai, Lao, Khmer, Myanmar.
UNSEGMENTED_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)

# What the filters of datatrove and FineWeb count as punctuation, beside the terminal marks and the controls.
_SYMBOLS = "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»"

# Unicode's Sentence_Terminal (UAX #29) of the scripts that have full stops, as FineWeb takes it.
_TERMINALS = (
    ".?!։؝؞؟۔܀܁܂߹࠷࠹࠽࠾।॥၊။።፧፨᙮᜵᜶។៕៖៙៚᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟\u1b7d\u1b7e᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼\u2e53\u2e54。꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？｡"
    "𐩖𐩗𐽕𐽖𐽗𐽘𐽙\U00010f86\U00010f87\U00010f88\U00010f89𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗"
    "𑙁𑙂𑜼𑜽𑜾𑥄𑥆𑩂𑩃𑪛𑪜𑱁𑱂𑻷𑻸\U00011f43\U00011f44𖩮𖩯𖫵𖬷𖬸𖭄𖺘𛲟𝪈"
)


@functools.cache
def character_flags() -> np.ndarray:
    """The flags of every code point (uint8, 0x110000 of them)."""
    flags = np.zeros(sys.maxunicode + 1, dtype=np.uint8)
    unsegmented = re.compile(f"[{UNSEGMENTED_RANGES}]")
    symbols = {*_SYMBOLS, *_TERMINALS, *map(chr, [*range(32), *range(127, 160)])} - {"\t", "\n"}
    # Beyond the third plane there are no letters.
    for code in [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0100, 0xE01F0)]:
        character = chr(code)
        category = unicodedata.category(character)
        flag = 0
        if character.isspace():
            flag |= SPACE
        if category[0] == "L":
            flag |= ALPHABETIC | WORD
        elif category[0] == "M" or character.isalnum() or character == "_":
            flag |= WORD
        if category == "Nd":
            flag |= DIGIT
        if flag & WORD and unsegmented.match(character):
            flag |= UNSEGMENTED
        flags[code] = flag
    for characters, flag in ((symbols, SYMBOL), (_TERMINALS, TERMINAL)):
        for character in characters:
            flags[ord(character)] |= flag
    return flags


@functools.cache
def lower_case() -> np.ndarray:
    """The lower case of every code point that has one of a single code point, else itself (int32)."""
    lowered = np.arange(sys.maxunicode + 1, dtype=np.int32)
    for code in range(0x20000):
        lower = chr(code).lower()
        if len(lower) == 1:
            lowered[code] = ord(lower)
    return lowered
