"""A tokenizer of the Hugging Face layout, made elsewhere: checked, completed, and written for this corpus.

What it lacks of the special tokens is added behind its vocabulary, and the chat template is this project's.
Both files that are written stand alone: ``vocab.json``, ``merges.txt``, ``tokenizer.model`` and the like hold
nothing that ``tokenizer.json`` does not hold, and would contradict it once tokens are added.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.directory_digest import directory_digest
from tasks.stage import StageError
from tasks.training.chat import (
    ASSISTANT,
    CHAT_TEMPLATE,
    ROLES,
    TOKENIZER_FILES,
    USER,
    ChatTokenizer,
    token_name,
    tokenizer_config,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER, CONFIG = TOKENIZER_FILES
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
MODEL_CONFIG = "config.json"
READ = (TOKENIZER, CONFIG, SPECIAL_TOKENS_MAP, MODEL_CONFIG)
"""The files of a directory that decide what becomes of it."""


def digest(directory: Path) -> str:
    """SHA-256 over the names and contents of those files of `READ` that are there.

    Raises:
        StageError: the directory has no ``tokenizer.json``.
    """
    if not directory.is_dir():
        raise StageError(f"encode.tokenizer: {directory} is no directory")
    if not (directory / TOKENIZER).is_file():
        raise StageError(
            f"encode.tokenizer: {directory} has no {TOKENIZER}. A tokenizer that has only vocab.txt, "
            f"merges.txt or tokenizer.model becomes one with transformers: "
            f"AutoTokenizer.from_pretrained({str(directory)!r}).save_pretrained(…)"
        )
    return directory_digest(directory, READ)


def check_digest(directory: Path, expected: str | None) -> None:
    """Make sure that the directory is what ``params.yaml`` says, the only thing that DVC sees of it.

    Raises:
        StageError: naming the digest that it has.
    """
    found = digest(directory)
    if found != expected:
        said = "is not set" if expected is None else f"is {expected}"
        raise StageError(
            f"encode.tokenizer_digest {said}, but {directory} has the digest {found}. Is that the tokenizer "
            f"you mean? Then write it into params.yaml: DVC knows the tokenizer by it"
        )


def adopt(directory: Path, out: Path, context: int) -> None:
    """Write the tokenizer of a directory as `TOKENIZER_FILES` of ``out``, with all tokens of dialogues.

    Its own begin, end and pad are kept; one that it lacks, and a pad that is another special token too, is
    added under this project's name, and so are ``<|user|>`` and ``<|assistant|>``.

    Raises:
        StageError: naming the file that is missing or broken, or does not belong to the others.
    """
    tokenizer = _load(directory / TOKENIZER)
    config = _settings(directory / SPECIAL_TOKENS_MAP) | _settings(directory / CONFIG)
    roles = _roles(tokenizer, config, directory)
    _check_settings(tokenizer, directory, config)
    from tokenizers import AddedToken

    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in (*roles.values(), USER, ASSISTANT)]
    )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / TOKENIZER))
    # A list of added tokens is that of before; the file of the tokenizer has them all.
    kept = {key: value for key, value in config.items() if key != "added_tokens_decoder"}
    content = kept | tokenizer_config(context) | roles | {"chat_template": CHAT_TEMPLATE}
    write_config(out, content)
    _check_text_stays_text(ChatTokenizer(out), tokenizer, directory)


def write_config(out: Path, content: dict[str, Any]) -> None:
    """Write ``tokenizer_config.json``."""
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    (out / CONFIG).write_text(text + "\n", "utf-8")


def _load(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for whatever is wrong with the file
        raise StageError(f"{path} is no file of the library tokenizers: {error}") from None


def _settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise StageError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise StageError(f"{path} must hold an object of settings, not a {type(content).__name__}")
    return content


def _roles(tokenizer: Tokenizer, config: dict[str, Any], directory: Path) -> dict[str, str]:
    """The token of every role, by the keys of `ROLES`."""
    roles: dict[str, str] = {}
    for key, ours in ROLES.items():
        named = token_name(config.get(key))
        if named is not None and tokenizer.token_to_id(named) is None:
            raise StageError(
                f"{directory / CONFIG}: {key} is {named!r}, which {TOKENIZER} beside it does not have: the "
                "two are not of one tokenizer"
            )
        taken = named in roles.values() or named == token_name(config.get("unk_token"))
        roles[key] = ours if named is None or (key == "pad_token" and taken) else named
    return roles


def _check_settings(tokenizer: Tokenizer, directory: Path, config: dict[str, Any]) -> None:
    """The other files must speak of the same vocabulary."""
    for id, token in (config.get("added_tokens_decoder") or {}).items():
        named = token_name(token)
        if named is not None and tokenizer.token_to_id(named) != int(id):
            raise StageError(
                f"{directory / CONFIG}: added_tokens_decoder has {named!r} as token {id}, but {TOKENIZER} "
                f"has it as {tokenizer.token_to_id(named)}: the two are not of one tokenizer"
            )
    rows = _settings(directory / MODEL_CONFIG).get("vocab_size")
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if isinstance(rows, int) and rows <= largest:
        raise StageError(
            f"{directory / MODEL_CONFIG}: vocab_size is {rows}, but {TOKENIZER} gives ids up to {largest}: "
            "the two do not belong together"
        )


def _check_text_stays_text(written: ChatTokenizer, tokenizer: Tokenizer, directory: Path) -> None:
    """The words of a special token, met in a document, must not become that token."""
    special = {
        id: token.content
        for id, token in tokenizer.get_added_tokens_decoder().items()
        if token.special and id != written.unknown_id
    }
    for token in special.values():
        found = [special[id] for id in written.encode(f"a {token} b") if id in special]
        if found:
            raise StageError(
                f"encode.tokenizer: {directory} reads {token!r} within a text as the special token "
                f"{found[0]!r}, so that a text could end a document. A unigram model does if its special "
                "tokens are pieces of it"
            )
