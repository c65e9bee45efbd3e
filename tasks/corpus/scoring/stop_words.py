"""Function words by language: prose has several of them, lists and junk have none.

English has the eight of Gopher (Rae et al. 2021, appendix A1.1); the others have as common ones. A
character is a word in Chinese, Japanese and Thai.
"""

from __future__ import annotations

import functools

import numpy as np

STOP_WORDS: dict[str, str] = {
    "en": "the be to of and that have with",
    "ar": "في من على أن إلى هذا التي ما لا عن",
    "bg": "и на да се не за от с че е",
    "ca": "de la que el en i els les per un",
    "cs": "a se na v je že to s z do ve si o pro",
    "da": "og i at det er en til på som for ikke der",
    "de": "der die und das in den von zu mit ist nicht ein",
    "el": "και να το του της η ο με για που",
    "eo": "la de kaj en al estas ne ke por kun mi",
    "es": "de la que el en y los del se las por un no",
    "et": "ja on ei et see kui oli ka ta mis",
    "fa": "و در به از که این را با است برای",
    "fi": "ja on ei se että oli hän mutta niin kun",
    "fr": "de la le et les des en un du une que est dans",
    "he": "של את על לא זה הוא כי גם אל עם",
    "hr": "i je u na se da za od su ne",
    "hu": "a az és hogy nem is egy ez de meg van",
    "id": "dan yang di ini itu dengan untuk dari tidak pada",
    "it": "di e che la il in un a per non è i le si",
    "ja": "の は に を た が で て と し な い",
    "ko": "이 그 수 것 등 및 있다 한 를 을",
    "lt": "ir kad į iš yra su tai o bet kaip",
    "lv": "un ir ka no ar uz par tas bet lai",
    "nl": "de het een en van in is dat op te zijn niet met",
    "no": "og i det er en til på som for ikke av med",
    "pl": "i w na z się nie do że to jest o jak a",
    "pt": "de a que o e do da em um para não com os se",
    "ro": "de și în la a cu pe nu că este un din",
    "ru": "и в не на что с он по это как но а у я",
    "sk": "a na v sa je že to s z do o pre",
    "sl": "in je v na se da za so ki z ne",
    "sr": "и је у на се да за од су не",
    "sv": "och i att det är en som på för av inte med",
    "th": "ท แ ใ ก ข ม ไ เ น า",
    "tr": "ve bir bu da de için ile ne çok gibi",
    "uk": "і в не на що з у та як до це а",
    "vi": "và của là có không một cho được trong với",
    "zh": "的 是 不 了 在 有 我 他 这 這 和 人 一 中",
}

MOST_STOP_WORDS = 32
"""No language has more."""


@functools.cache
def stop_word_hashes() -> tuple[dict[str, int], np.ndarray, np.ndarray]:
    """The number of each language, and the hashes of language l: ``hashes[offsets[l]:offsets[l + 1]]``,
    sorted."""
    import pyarrow as pa

    from tasks.corpus.scoring.segments import segment_words

    numbers: dict[str, int] = {}
    offsets = [0]
    hashes: list[int] = []
    for number, (language, words) in enumerate(STOP_WORDS.items()):
        numbers[language] = number
        found = segment_words(pa.array([words])).hashes_W
        hashes.extend(sorted({int(hashed) for hashed in found}))
        offsets.append(len(hashes))
    return numbers, np.array(hashes, np.uint64), np.array(offsets, np.int64)
