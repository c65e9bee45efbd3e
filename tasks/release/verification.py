"""Proof that a release computes what the model it was made from computes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from tasks.stage import StageError
from tasks.training.chat import TOKENIZER_FILES

if TYPE_CHECKING:
    import torch

SEQUENCES, LENGTH, SEED = 4, 48, 0
TOLERANCE = 1e-5


class Verification(BaseModel):
    """Logits of the release against those of the aligned model in fp32, over ``tokens`` positions.

    ``top_token_agreement`` is the share of positions at which both find the same token most probable.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: int
    largest_logit_difference: float
    top_token_agreement: float


def verify_release(aligned: Path, release: Path, dtype: torch.dtype) -> Verification:
    """Load both from their files and compare a forward pass over fixed pseudo-random tokens.

    The release must compute what the aligned model computes with its weights rounded to ``dtype``; how far
    the rounding itself moves the logits is returned, not judged.

    Raises:
        StageError: if a tokenizer file differs, a logit is not finite, or the two do not agree.
    """
    import torch

    from tasks.training.model_directory import open_model

    for name in TOKENIZER_FILES:
        if (aligned / name).read_bytes() != (release / name).read_bytes():
            raise StageError(f"{release / name} is not a copy of {aligned / name}; nothing was released")
    exact, _ = open_model(aligned)
    released, _ = open_model(release)
    config = exact.config
    generator = torch.Generator().manual_seed(SEED)
    length = min(LENGTH, config.max_position_embeddings)
    tokens_BT = torch.randint(config.vocab_size, (SEQUENCES, length), generator=generator)
    with torch.inference_mode():
        exact_BTV = exact.eval()(tokens_BT)
        released_BTV = released.eval()(tokens_BT)
        for parameter in exact.parameters():
            parameter.copy_(parameter.to(dtype))
        expected_BTV = exact(tokens_BT)
    if not bool(torch.isfinite(released_BTV).all()):
        raise StageError(
            f"{release}: logits are not finite with weights in {dtype}; set release.dtype to float32"
        )
    difference = float((released_BTV - expected_BTV).abs().max())
    if difference > TOLERANCE:
        raise StageError(
            f"{release} does not compute what {aligned} computes: logits differ by up to {difference:.3g}, "
            f"more than {TOLERANCE:g}. Nothing was released"
        )
    agreement = (released_BTV.argmax(-1) == exact_BTV.argmax(-1)).float().mean()
    return Verification(
        tokens=tokens_BT.numel(),
        largest_logit_difference=float(f"{float((released_BTV - exact_BTV).abs().max()):.4g}"),
        top_token_agreement=round(float(agreement), 6),
    )
