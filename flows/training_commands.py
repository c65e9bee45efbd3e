"""The commands of `gristmill` that look into training."""

from __future__ import annotations

from pathlib import Path

from flows.project import PARAMETERS, BadInput

EXCERPT = 96
"""Characters of a piece that are shown."""


def trace(project: Path, step: int, sequence: int | None) -> int:
    """Print the documents of a step of pretraining, one line for each piece of the batch."""
    from tasks.parameters import ParameterError, load_section
    from tasks.stage import StageError
    from tasks.training.pretrain import PretrainParams
    from tasks.training.trace import trace as trace_step

    data = project / "data"
    try:
        params = load_section(project / PARAMETERS, "pretrain", PretrainParams)
        if step > params.steps:
            raise BadInput(f"pretraining has {params.steps} steps (pretrain.steps): there is no step {step}")
        pieces = list(
            trace_step(
                step, data / "tokens", data / "snapshot", params.context, params.batch_size, params.seed
            )
        )
    except (ParameterError, StageError) as error:
        raise BadInput(str(error)) from None
    if sequence is not None and not 0 <= sequence < params.batch_size:
        raise BadInput(
            f"a batch has {params.batch_size} sequences (pretrain.batch_size), 0 to {params.batch_size - 1}"
        )
    print("row  from  tokens  document                          copy  characters")
    for piece in pieces:
        if sequence in (None, piece.sequence):
            place = f"{piece.sequence:3d}  {piece.position:4d}  {piece.tokens:6d}"
            where = f"{piece.document}  {piece.copy:4d}  {piece.start}–{piece.end}"
            print(f"{place}  {where}  {_excerpt(piece.text)}")
    print("\n`gristmill explain ID` tells a document's story")
    return 0


def _excerpt(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= EXCERPT else f"{shown[: EXCERPT // 2]} … {shown[-EXCERPT // 2 :]}"
