"""How a directory says that its model makes one vector of a text.

A directory of sentence-transformers says it in ``modules.json`` and the files that are named there; any other
directory of the Hugging Face layout says nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tasks.stage import StageError

Pooling = Literal["mean", "cls", "max"]
"""Of the vectors of a text's tokens: their mean, that of the first token, the largest of each number."""

_MODES: dict[str, Pooling] = {"mean_tokens": "mean", "cls_token": "cls", "max_tokens": "max"}
_SHORT_MODES: dict[str, Pooling] = {"mean": "mean", "cls": "cls", "max": "max"}


@dataclass(frozen=True)
class EmbeddingLayout:
    """Where the network is, and what is made of what it says."""

    network: Path
    """directory of ``config.json``, weights and tokenizer"""
    pooling: Pooling = "mean"
    tokens: int | None = None
    """of a text, at most"""
    lower_case: bool = False
    """whether texts are put in lower case first"""


def read_embedding_layout(directory: Path) -> EmbeddingLayout:
    """What a directory says of itself; pooled by the mean where it says nothing.

    Raises:
        StageError: if a file that says it is broken, or asks for what is not done here.
    """
    modules_file = directory / "modules.json"
    if not modules_file.exists():
        return _layout(directory, "mean")
    modules = _read_json(modules_file, list)
    kinds = [str(_entry(modules_file, module, "type")).rpartition(".")[2] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise StageError(
            f"{modules_file}: the modules are {', '.join(kinds) or 'none'}, but only Transformer, Pooling "
            "and Normalize, in this order, are known here"
        )
    paths = [directory / str(_entry(modules_file, module, "path")) for module in modules]
    return _layout(paths[0], _pooling(paths[1] / "config.json"))


def _layout(network: Path, pooling: Pooling) -> EmbeddingLayout:
    limits = network / "sentence_bert_config.json"
    said = _read_json(limits, dict) if limits.exists() else {}
    tokens = said.get("max_seq_length")
    if tokens is not None and (not isinstance(tokens, int) or tokens < 1):
        raise StageError(f"{limits}: max_seq_length is {tokens!r}, but must be a number of tokens")
    return EmbeddingLayout(network, pooling, tokens, bool(said.get("do_lower_case", False)))


def _pooling(path: Path) -> Pooling:
    said = _read_json(path, dict)
    if "pooling_mode" in said:  # newer versions name the mode, older ones have a switch for each
        given = said["pooling_mode"]
        modes = [str(mode) for mode in given] if isinstance(given, list) else [str(given)]
        known = _SHORT_MODES
    else:
        before = "pooling_mode_"
        modes = sorted(
            key.removeprefix(before) for key in said if key.startswith(before) and said[key] is True
        )
        known = _MODES
    if len(modes) != 1 or modes[0] not in known:
        raise StageError(
            f"{path}: the pooling is {' and '.join(modes) or 'not said'}, must be one of {', '.join(known)}"
        )
    return known[modes[0]]


def _entry(path: Path, module: Any, key: str) -> Any:
    if not isinstance(module, dict) or key not in module:
        raise StageError(f"{path}: a module has no `{key}`")
    return module[key]


def _read_json(path: Path, kind: type) -> Any:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise StageError(f"{path}: there is no such file") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StageError(f"{path} is no JSON: {error}") from None
    if not isinstance(content, kind):
        raise StageError(f"{path} must hold a JSON {'list' if kind is list else 'object'}")
    return content
