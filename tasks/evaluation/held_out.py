"""Instructions as evaluation needs them: the held-out dialogues, and where each question is known from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tasks.training.chat import Message
from tasks.training.instructions import InstructionRow
from tasks.training.json_lines import read_rows


class SourcedRow(InstructionRow):
    """An instruction, and where it comes from."""

    source: str = "unknown"
    licence: str = "unknown"


@dataclass(frozen=True)
class Instructions:
    """What a directory of instructions holds.

    ``references`` gives the split and the first answer of every first question; ``origins`` counts the rows
    of each (source, licence).
    """

    held_out: list[list[Message]]
    references: dict[str, tuple[str, str]]
    origins: dict[tuple[str, str], int]
    broken: int


def read_instructions(directory: Path, max_broken: float) -> Instructions:
    """Read the instructions of a directory.

    Raises:
        StageError: as `tasks.training.json_lines.read_rows`.
    """
    rows = read_rows(directory, SourcedRow, max_broken=max_broken)
    found = Instructions([], {}, {}, rows.broken)
    for row in rows.good:
        origin = (row.source, row.licence)
        found.origins[origin] = found.origins.get(origin, 0) + 1
        dialogue = row.dialogue()
        found.references.setdefault(dialogue[0].content, (row.split, dialogue[1].content))
        if row.split == "held_out":
            found.held_out.append(dialogue)
    return found


def distinct_prompts(dialogues: list[list[Message]]) -> list[list[Message]]:
    """What stands before the last answer of each dialogue; equal ones once, in order of first appearance."""
    return [list(prompt) for prompt in dict.fromkeys(tuple(dialogue[:-1]) for dialogue in dialogues)]
