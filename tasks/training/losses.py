from torch import Tensor
from torch.nn import functional as F

IGNORED = -100


def token_cross_entropy(
    logits_BTV: Tensor, targets_BT: Tensor, mask_BT: Tensor, label_smoothing: float = 0.0
) -> Tensor:
    """Cross-entropy in nats, summed over the targets where ``mask_BT`` is True; a scalar in fp32.

    ``targets_BT[b, t]`` is the token that ``logits_BTV[b, t]`` predict: the caller has shifted them, once.
    With ``label_smoothing`` ε the target has probability 1 - ε and the rest is spread evenly over the whole
    vocabulary (Szegedy et al. 2016, section 7). The softmax is taken in fp32 whatever the type of the logits.
    Without any target the loss is 0.
    """
    return F.cross_entropy(
        logits_BTV.flatten(0, 1).float(),
        targets_BT.masked_fill(~mask_BT, IGNORED).flatten(),
        ignore_index=IGNORED,
        reduction="sum",
        label_smoothing=label_smoothing,
    )
